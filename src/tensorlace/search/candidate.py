"""A candidate of the search: what differs from the configuration that the user gave."""

from dataclasses import dataclass
from typing import final

__all__ = ["Candidate", "Width"]


@final
@dataclass(frozen=True)
class Candidate:
    """Everything that is left to the data unless the user says otherwise.

    Attributes
    ----------
    rank, n_basis : int
    warp, prior_groups : str
    lengthscale : float or None
        Of the cosine basis; None leaves smoothness to the prior precisions of single orders.
    additive, rotate : bool
    basis : str
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
