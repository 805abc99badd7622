"""Which models are tried, in which order."""

from dataclasses import dataclass
from typing import final

from tensorlace.search.candidate import Candidate, Style

__all__ = ["CandidateSettings"]


@final
@dataclass(frozen=True)
class CandidateSettings:
    """Building blocks of the candidates, in order of promise. One more line is one more to try."""

    constant: Candidate = Candidate(1, 1, "standardise", "all", None, False, False, "legendre")
    """The mean of the target. decisions.md#where-there-is-little-to-find"""

    line: Candidate = Candidate(0, 2, "standardise", "column", None, True, False, "legendre")
    """A straight line without products. decisions.md#where-there-is-little-to-find"""

    lines: Candidate = Candidate(1, 2, "standardise", "column", None, True, False, "legendre")
    """A straight line and one product of lines, which cosines approach slowly.
    decisions.md#order-of-candidates"""

    parabolas: Candidate = Candidate(
        2, 3, "standardise", "column_order", None, True, False, "legendre"
    )
    """Parabolas and two products of them, which cosines approach slowly.
    decisions.md#order-of-candidates"""

    sizes: tuple[tuple[int, int], ...] = (
        (4, 5),
        (8, 16),
        (8, 10),
        (2, 5),
        (4, 10),
        (2, 10),
        (8, 6),
        (4, 16),
        (8, 24),
        (2, 16),
    )
    """Rank and basis size of the small models, most useful first.
    decisions.md#order-of-candidates"""

    styles: tuple[Style, ...] = (
        Style("minmax", 0.3, additive=True, rotate=False),
        Style("mixed", None, additive=False, rotate=False),
        Style("quantile", None, additive=False, rotate=False),
        Style("mixed", 0.3, additive=True, rotate=True),
        Style("mixed", 0.3, additive=True, rotate=False),
        Style("quantile", 0.3, additive=False, rotate=False),
        Style("minmax", None, additive=False, rotate=False),
        Style("mixed", None, additive=True, rotate=False),
        Style("minmax", 0.3, additive=True, rotate=True),
        Style("quantile", None, additive=True, rotate=False),
        Style("minmax", 0.3, additive=False, rotate=False),
        Style("mixed", 0.3, additive=False, rotate=False),
    )
    """Styles of the small models, most useful first; each is tried in each size.
    decisions.md#order-of-candidates"""

    style_penalty: float = 0.7
    """Places in `sizes` that one place in `styles` is worth, in the order of all pairs.
    decisions.md#order-of-candidates"""

    parabolas_at: int = 5
    """Place of `parabolas` in the order of all candidates, and of `polynomials` before them.
    decisions.md#order-of-candidates"""

    polynomials: tuple[Candidate, ...] = (
        Candidate(8, 4, "minmax", "column_order", None, True, False, "legendre"),
        Candidate(8, 4, "minmax", "column_order", None, True, True, "legendre"),
        Candidate(8, 4, "minmax", "column_order", None, False, True, "legendre"),
        Candidate(8, 5, "quantile", "column_order", None, False, False, "legendre"),
    )
    """Polynomials for many rows: a smooth slope takes fewer of them than cosines.
    decisions.md#large-tables"""

    at_least: int = 3
    """Candidates that are tried whatever they cost. decisions.md#order-of-candidates"""

    largest_share: float = 0.12
    """Largest share of the work that one of the first candidates may take.
    decisions.md#order-of-candidates"""

    rows_per_candidate: float = 6.0
    """Rows that justify one more candidate. decisions.md#order-of-candidates"""

    fewest: int = 6
    """Most candidates of the smallest tables. decisions.md#order-of-candidates"""

    most: int = 40
    """Most candidates of any table. decisions.md#order-of-candidates"""

    leaps: tuple[tuple[float, float], ...] = (
        (2.0, 1.0),
        (1.0, 1.6),
        (1.5, 1.5),
        (3.0, 1.0),
        (2.0, 2.0),
    )
    """Factors on rank and basis size when few rows make models larger, in order.
    decisions.md#order-of-candidates"""

    steps: tuple[tuple[float, float], ...] = (
        (2.0, 0.6),
        (1.5, 1.0),
        (1.0, 1.4),
        (2.0, 1.0),
        (1.4, 1.4),
    )
    """Factors on rank and basis size when many rows make models larger: also from functions to
    terms. decisions.md#large-tables"""

    largest_rank: int = 40
    """Rank beyond which no model is made larger. decisions.md#order-of-candidates"""

    largest_basis: int = 24
    """Basis size beyond which no model is made larger. decisions.md#order-of-candidates"""

    smallest_basis: int = 3
    """Basis size below which no model trades functions for terms. decisions.md#large-tables"""
