"""A candidate of the search, the style it shares with others, and how many weights it has."""

from dataclasses import dataclass
from typing import final

__all__ = ["Candidate", "Style", "Width"]


@final
@dataclass(frozen=True)
class Candidate:
    """What a search decides about a model; everything else is the user's configuration.

    Attributes
    ----------
    rank, n_basis : int
        Rank-one terms, and basis functions per column.
    warp, prior_groups : str
        Names in `fitting.registry`.
    lengthscale : float or None
        Of the cosine basis; None leaves smoothness to the prior precisions of single orders.
    additive, rotate : bool
        Whether there is an additive part, and whether columns are whitened first.
    basis : str
        Name in `fitting.registry`.
    """

    rank: int
    n_basis: int
    warp: str
    prior_groups: str
    lengthscale: float | None
    additive: bool
    rotate: bool
    basis: str = "cosine"

    @property
    def plain(self) -> bool:
        """Whether it is no more than a constant or a straight line."""
        constant = self.rank == 1 and self.n_basis == 1
        return self.basis == "legendre" and (constant or self.straight)

    @property
    def straight(self) -> bool:
        """Whether it is a line in each column, after its warp, and nothing else."""
        return self.rank == 0 and self.additive and self.n_basis == 2 and self.basis == "legendre"

    @property
    def style(self) -> "Style":
        """All but its size."""
        return Style(
            *(self.warp, self.lengthscale, self.additive, self.rotate),
            basis=self.basis,
            prior_groups=self.prior_groups,
        )


@final
@dataclass(frozen=True)
class Style:
    """All that makes up a candidate but its size.

    Attributes
    ----------
    warp, lengthscale, additive, rotate, basis, prior_groups
        As in `Candidate`.
    """

    warp: str
    lengthscale: float | None
    additive: bool
    rotate: bool
    basis: str = "cosine"
    prior_groups: str = "column_order"

    def of_size(self, rank: int, n_basis: int) -> Candidate:
        """Candidate of this style."""
        return Candidate(
            *(rank, n_basis, self.warp, self.prior_groups),
            *(self.lengthscale, self.additive, self.rotate, self.basis),
        )


@final
@dataclass(frozen=True)
class Width:
    """How many functions the columns of a table have.

    Attributes
    ----------
    free : int
        Columns that have ``n_basis`` functions.
    fixed : int
        Functions of all other columns together: the levels of categories.
    """

    free: int
    fixed: int = 0

    def weights(self, c: Candidate) -> int:
        """Weights P of a candidate."""
        return (c.rank + c.additive) * (c.n_basis * self.free + self.fixed)
