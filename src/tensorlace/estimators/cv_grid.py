"""The grid of models that cross-validation chooses from, and which of them share a fit."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from numbers import Integral, Real
from typing import Any, final

from tensorlace.errors import InputError

__all__ = [
    "MOST_WEIGHTS",
    "SIZES",
    "THRESHOLDS",
    "Family",
    "cut_levels",
    "families",
    "sizes_within",
    "whole_numbers",
]

SIZES = (2, 4, 8, 16, 24, 32, 48, 64)
"""Ranks, and numbers of basis functions, of the paper's experiments."""

THRESHOLDS = (1e-5, 1e-3, 1e-1)
"""Values of t̂ in the paper's experiments."""

MOST_WEIGHTS = 1000
"""Most weights R·I·D of a model in the paper's experiments."""


@final
@dataclass(frozen=True)
class Family:
    """Models that differ only in where the posterior is cut, so that one fit serves all.

    Attributes
    ----------
    rank, n_basis : int
    curvature : str
    thresholds : tuple of float or None
        In rising order; None is a family of its own.
    """

    rank: int
    n_basis: int
    curvature: str
    thresholds: tuple[float | None, ...]

    def members(self) -> list[dict[str, Any]]:
        """Arguments of the estimator, one dictionary per threshold."""
        shared = {"rank": self.rank, "n_basis": self.n_basis, "curvature": self.curvature}
        return [{**shared, "threshold": t} for t in self.thresholds]


def sizes_within(
    ranks: Sequence[int],
    n_bases: Sequence[int],
    n_columns: int,
    n_rows: int,
    max_weights: int | None = MOST_WEIGHTS,
) -> list[tuple[int, int]]:
    """Pairs (R, I) with ``R·I·D ≤ min(N, max_weights)``, the paper's rule; all if that is None.

    If none is small enough, the smallest one is left.

    Examples
    --------
    >>> len(sizes_within(SIZES, SIZES, n_columns=6, n_rows=277))  # the paper's grid for yacht
    10
    >>> sizes_within([2, 4], [3], n_columns=10, n_rows=5)
    [(2, 3)]
    """
    pairs = list(product(ranks, n_bases))
    if max_weights is None:
        return pairs
    most = min(n_rows, max_weights)
    within = [(R, I) for R, I in pairs if R * I * n_columns <= most]
    return within or [min(pairs, key=lambda pair: pair[0] * pair[1])]


def families(
    sizes: Sequence[tuple[int, int]],
    thresholds: Sequence[float | None],
    curvatures: Sequence[str],
) -> list[Family]:
    """All combinations, those that share a fit together.

    A threshold cuts a finished posterior, but for the full Hessian: there it also has a say in the
    noise, and every value needs a fit. Without one (None) the posterior is not made by way of
    eigenvalues.

    Examples
    --------
    >>> [family.thresholds for family in families([(2, 3)], [0.1, None, 1e-3], ["last"])]
    [(0.001, 0.1), (None,)]
    """
    numbers = sorted({float(t) for t in thresholds if t is not None})
    alone: list[tuple[float | None, ...]] = [(None,)] if None in thresholds else []
    found = []
    for curvature, (R, I) in product(dict.fromkeys(curvatures), dict.fromkeys(sizes)):
        together: list[tuple[float | None, ...]] = [tuple(numbers)] if numbers else []
        if curvature == "full":
            together = [(t,) for t in numbers]
        found += [Family(R, I, curvature, ts) for ts in together + alone]
    return found


def whole_numbers(name: str, values: Any) -> list[int]:
    """A list of whole numbers of at least 1."""
    found = list(values)
    if not found or not all(isinstance(v, Integral) and int(v) >= 1 for v in found):
        raise InputError(f"{name} is {found}: give one or more whole numbers of at least 1")
    return [int(v) for v in found]


def cut_levels(name: str, values: Any) -> list[float | None]:
    """A list of thresholds: numbers of at least 0, or None."""
    found = list(values)
    if not found or not all(v is None or (isinstance(v, Real) and float(v) >= 0) for v in found):
        raise InputError(f"{name} is {found}: give one or more numbers of at least 0, or None")
    return [None if v is None else float(v) for v in found]
