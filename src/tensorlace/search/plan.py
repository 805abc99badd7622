"""Which models an automatic choice looks at, and what they will cost."""

from collections.abc import Sequence
from dataclasses import replace

from tensorlace.search.candidate import Candidate, Width
from tensorlace.search.cost_model import affordable, most

__all__ = ["CHOOSE_FROM", "CONSTANT", "LINE", "enlarged", "plan"]

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


CHOOSE_FROM = 40
"""Rows held out from which more is chosen by them than the members."""


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
