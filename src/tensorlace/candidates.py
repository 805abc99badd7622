"""Which models an automatic choice looks at, and what they will cost."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import final

__all__ = [
    "CHOOSE_FROM",
    "CONSTANT",
    "LINE",
    "MOST_WEIGHTS",
    "Candidate",
    "Width",
    "affordable",
    "cost",
    "default_budget",
    "enlarged",
    "plan",
]


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


CONSTANT = Candidate(1, 1, "standardise", "all", None, False, False, "legendre")
"""The mean and nothing else: where y does not depend on X, nothing is better."""

LINE = Candidate(0, 2, "standardise", "column", None, True, False, "legendre")
"""A straight line without products: the last word where y is just that."""

_STRAIGHT = [
    Candidate(1, 2, "standardise", "column", None, True, False, "legendre"),
    Candidate(2, 3, "standardise", "column_order", None, True, False, "legendre"),
]
"""Straight lines and parabolas, which cosines are slow to become."""

_SIZES = [(4, 5), (8, 16), (8, 10), (2, 5), (4, 10), (2, 10), (8, 6), (4, 16), (8, 24), (2, 16)]
"""Rank and basis size of small models, most useful first."""

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

_SMOOTH = [
    Candidate(8, 4, "minmax", "column_order", None, True, False, "legendre"),
    Candidate(8, 4, "minmax", "column_order", None, True, True, "legendre"),
    Candidate(8, 4, "minmax", "column_order", None, False, True, "legendre"),
    Candidate(8, 5, "quantile", "column_order", None, False, False, "legendre"),
]
"""Polynomials, for many rows: where y is smooth, few of them do what many cosines do."""

_STYLE_WEIGHT = 0.7
_LARGEST = (40, 24)

TIMES = ((2.0, 1.0), (1.0, 1.6), (1.5, 1.5), (3.0, 1.0), (2.0, 2.0))
"""How much larger in rank and in functions: leaps where fits are quick, ..."""

STEPWISE = ((2.0, 0.6), (1.5, 1.0), (1.0, 1.4), (2.0, 1.0), (1.4, 1.4))
"""... steps where they are dear, also from functions to terms."""

MOST_WEIGHTS = 13_000
"""Weights of the largest candidate: three matrices of them take 4 GB."""

CHOOSE_FROM = 40
"""Rows held out from which more is chosen by them than the members."""

STEPS, FINAL_STEPS = 45, 25
"""Solver steps of a fit from nothing, and of one that begins where another ended."""

_RATE = 2.2e10
"""Multiplications per second and thread of a Gauss-Newton step with all that belongs to it."""

_OVERHEAD = 0.003
"""Seconds of a step that are not arithmetic."""


def cost(c: Candidate, width: Width, n_rows: float, steps: float = STEPS) -> float:
    """Seconds on one thread that fitting a model will take, about.

    >>> small, large = _STRAIGHT
    >>> cost(small, Width(8), 1000) < cost(large, Width(8), 1000) < cost(large, Width(8), 10_000)
    True
    """
    P = width.weights(c)
    small, large = min(P, n_rows), max(P, n_rows)
    work = 0.9 * small * small * large + 3.0 * small**3 + 300.0 * n_rows * P
    return steps * (_OVERHEAD + work / _RATE)


def default_budget(n_rows: float) -> float:
    """Seconds that a search may take: under a minute for hundreds of rows, minutes for many."""
    return min(38.0 + n_rows / 150.0 if n_rows <= 2500 else n_rows / 20.0, 370.0)


def most(n_rows: float) -> int:
    """Candidates that a table of this size deserves: few rows cannot tell many models apart."""
    return int(min(max(n_rows / 6, 6), 40))


def plan(
    n_rows: float, width: Width, work: float, fits: float = 1.0, *, smooth: bool = False
) -> tuple[Candidate, ...]:
    """Candidates in order of promise, as many as the work allows by the cost model.

    The clock has no say, so a busy machine chooses the same.

    Parameters
    ----------
    n_rows : float
        That each is fitted to.
    width : Width
    work : float
        Seconds of one thread.
    fits : float
        Fits per candidate.
    smooth : bool
        Whether polynomials in all columns are among them.
    """
    candidates = _all()
    if smooth:
        candidates[5:5] = _SMOOTH
    chosen = affordable(candidates, n_rows, width, work, fits, at_least=3, share=0.12)
    return tuple(chosen[: most(n_rows)])


def affordable(
    candidates: Iterable[Candidate],
    n_rows: float,
    width: Width,
    work: float,
    fits: float = 1.0,
    *,
    at_least: int = 0,
    share: float = 1.0,
) -> list[Candidate]:
    """Those that still fit, in the order given; the first ``at_least`` in any case.

    None may take more than a ``share`` of the work: many different models mix better than few.
    Models with more weights than `MOST_WEIGHTS` are left out, unless there is nothing else.
    """
    chosen: list[Candidate] = []
    largest = share * work
    for candidate in candidates:
        seconds = fits * cost(candidate, width, n_rows)
        if chosen and width.weights(candidate) > MOST_WEIGHTS:
            continue
        if len(chosen) >= at_least and seconds > min(work, largest):
            continue
        chosen.append(candidate)
        work -= seconds
    return chosen


def enlarged(
    best: Sequence[Candidate], times: Sequence[tuple[float, float]] = TIMES
) -> list[Candidate]:
    """Larger models in the styles that did best: more terms, more functions, then both."""
    larger = []
    for rank_times, basis_times in times:
        for c in best:
            rank = min(round(c.rank * rank_times), max(_LARGEST[0], c.rank))
            n_basis = min(round(c.n_basis * basis_times), max(_LARGEST[1], c.n_basis))
            n_basis = max(n_basis, min(3, c.n_basis))
            larger.append(replace(c, rank=rank, n_basis=n_basis))
    return [c for c in dict.fromkeys(larger) if c not in best]


def _all() -> list[Candidate]:
    """Every candidate once; a small model in an unlikely style comes after a larger, likely one."""
    ranked = [
        (
            k + _STYLE_WEIGHT * j,
            k,
            Candidate(rank, n_basis, warp, "column_order", lengthscale, additive, rotate),
        )
        for k, (rank, n_basis) in enumerate(_SIZES)
        for j, (warp, lengthscale, additive, rotate) in enumerate(_STYLES)
    ]
    waves = [candidate for _, _, candidate in sorted(ranked, key=lambda entry: entry[:2])]
    return [CONSTANT, *_STRAIGHT[:1], *waves[:3], *_STRAIGHT[1:], *waves[3:]]
