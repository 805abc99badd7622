"""Which models an automatic choice looks at, and what they will cost."""

from dataclasses import dataclass
from typing import final

__all__ = ["Candidate", "cost", "default_budget", "plan"]


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


_STRAIGHT = [
    Candidate(1, 2, "standardise", "column", None, True, False, "legendre"),
    Candidate(2, 3, "standardise", "column_order", None, True, False, "legendre"),
]
"""Straight lines and parabolas, which cosines are slow to become."""

_SIZES = [(4, 5), (2, 5), (8, 10), (4, 10), (2, 10), (8, 16), (4, 16), (2, 16), (8, 6), (8, 24)]
"""Rank and basis size of small models, most useful first."""

_LARGE_SIZES = [(16, 6), (12, 10), (12, 20), (20, 8), (16, 12), (24, 10)]
"""Those that only many rows can fill."""

_STYLES: list[tuple[str, float | None, bool, bool]] = [
    ("minmax", 0.3, True, False),
    ("mixed", None, False, False),
    ("quantile", None, False, False),
    ("mixed", 0.3, True, True),
    ("mixed", 0.3, True, False),
    ("quantile", 0.3, False, False),
    ("minmax", None, False, False),
    ("mixed", None, True, False),
    ("minmax", 0.3, True, True),
    ("quantile", None, True, False),
    ("minmax", 0.3, False, False),
    ("mixed", 0.3, False, False),
]
"""Warp, length scale, additive part, rotation: most useful first."""

_STYLE_WEIGHT = 0.7
_LARGE_FROM_ROWS = 3000
_STEPS = 45.0
_RATE = 1.2e10
"""Multiplications per second and thread of a Gauss-Newton step with all that belongs to it."""

_OVERHEAD = 0.004
"""Seconds of a step that are not arithmetic."""


def cost(rank: int, n_basis: int, n_columns: int, n_rows: float, additive: bool) -> float:
    """Seconds on one thread that fitting a model will take, about.

    >>> cost(8, 10, 8, 1000, False) < cost(8, 20, 8, 1000, False) < cost(8, 20, 8, 10_000, False)
    True
    """
    P = (rank + additive) * n_basis * n_columns
    small, large = min(P, n_rows), max(P, n_rows)
    work = small * small * large * 3.0 + 12.0 * small**3 + 60.0 * n_rows * P
    return _STEPS * (_OVERHEAD + work / _RATE)


def default_budget(n_rows: float) -> float:
    """Seconds that a search may take: half a minute for hundreds of rows, minutes for thousands."""
    return min(25.0 + n_rows / 60.0, 400.0)


def most(n_rows: float) -> int:
    """Candidates that a table of this size deserves: few rows cannot tell many models apart."""
    return int(min(max(n_rows / 6, 6), 80))


def plan(n_rows: float, n_columns: int, budget: float, threads: int) -> tuple[Candidate, ...]:
    """Candidates in order of promise, as many as fit the budget by the cost model.

    The clock has no say, so a busy machine chooses the same.
    """
    left = budget * threads
    chosen: list[Candidate] = []
    for candidate in _all(n_rows):
        seconds = cost(candidate.rank, candidate.n_basis, n_columns, n_rows, candidate.additive)
        if len(chosen) >= 3 and seconds > left:
            continue
        chosen.append(candidate)
        left -= seconds
        if len(chosen) == most(n_rows):
            break
    return tuple(chosen)


def _all(n_rows: float) -> list[Candidate]:
    """Every candidate once; a small model in an unlikely style comes after a larger, likely one."""
    sizes = [*_SIZES]
    if n_rows >= _LARGE_FROM_ROWS:
        sizes = [size for pair in zip(_LARGE_SIZES, _SIZES, strict=False) for size in pair]
        sizes += _SIZES[len(_LARGE_SIZES) :]
    ranked = [
        (
            k + _STYLE_WEIGHT * j,
            k,
            Candidate(rank, n_basis, warp, "column_order", lengthscale, additive, rotate),
        )
        for k, (rank, n_basis) in enumerate(sizes)
        for j, (warp, lengthscale, additive, rotate) in enumerate(_STYLES)
    ]
    waves = [candidate for _, _, candidate in sorted(ranked, key=lambda entry: entry[:2])]
    return [*_STRAIGHT[:1], *waves[:3], *_STRAIGHT[1:], *waves[3:]]
