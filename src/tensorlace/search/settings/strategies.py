"""Rounds of a search, where rows are few, where they are many, and with tails."""

from dataclasses import dataclass
from typing import final

from tensorlace.fitting.tails import WILD

__all__ = ["FewRowsSettings", "ManyRowsSettings", "TailSettings"]


@final
@dataclass(frozen=True)
class FewRowsSettings:
    """Rounds of a search in which every row is held out once."""

    first_share: float = 0.5
    """Share of the work for the first round of candidates. decisions.md#budget"""

    larger_share: float = 0.5
    """Share of the work for larger models in the best styles. decisions.md#budget"""

    largest_share: float = 0.35
    """Largest share of the second round's work that one model may take. decisions.md#budget"""

    part_cost: float = 0.8
    """Cost of a fit to all folds but one, in fits to all rows. decisions.md#cost-model"""

    styles: int = 4
    """Best styles that are tried in larger sizes. decisions.md#order-of-candidates"""

    rows_per_larger: int = 40
    """Rows that justify one more of the larger models. decisions.md#order-of-candidates"""

    n_members: int = 30
    """Most members of the mixture. decisions.md#mixing-many-different-models"""

    processes_from: int = 200
    """Rows from which fits of small tables run in processes instead of threads.
    decisions.md#workers"""

    processes_budget: float = 10.0
    """Seconds of budget from which starting processes pays. decisions.md#workers"""


@final
@dataclass(frozen=True)
class ManyRowsSettings:
    """Rounds of a search in which one part of the rows is held out."""

    first_rows: int = 2000
    """Rows that styles are ranked on. decisions.md#large-tables"""

    first_share: float = 0.15
    """Share of the work for ranking the styles. decisions.md#budget"""

    larger_share: float = 0.4
    """Share of the work for larger models in the best styles. decisions.md#budget"""

    round_share: float = 0.5
    """Share of what is left of that which one round may take. decisions.md#budget"""

    largest_share: float = 0.5
    """Largest share of a round's work that one model may take. decisions.md#budget"""

    longer_share: float = 0.2
    """Share of the work for going on with the best fits, beside what rounds have left.
    decisions.md#budget"""

    final_share: float = 0.4
    """Share of the work for fitting the final members to all rows. decisions.md#budget"""

    styles: int = 4
    """Best styles of the first round that are tried in larger sizes. decisions.md#large-tables"""

    later_styles: int = 2
    """Best styles of a later round that are tried in larger sizes. decisions.md#large-tables"""

    rounds: int = 5
    """Most rounds of ever larger models. decisions.md#large-tables"""

    prolonged: int = 8
    """Most trials that are fitted for longer at a time. decisions.md#large-tables"""

    prolonging_gain: float = 0.01
    """Nats per row held out for which a longer fit is worth it. decisions.md#large-tables"""

    final_prolongations: int = 3
    """Times that the steps of a final member are added again where longer fits were better.
    decisions.md#large-tables"""

    n_members: int = 8
    """Most members of the mixture. decisions.md#mixing-many-different-models"""

    line_share: float = 0.02
    """Weight of the straight line in a mixture of many rows: where the others are unsure, weights
    that follow widths row by row leave the row to it. decisions.md#beyond-the-rows"""


@final
@dataclass(frozen=True)
class TailSettings:
    """Whether members are fitted with tails."""

    probes: int = 3
    """First candidates after which unseen rows say whether tails may matter: constant, line and a
    small model. decisions.md#a-fit-with-tails"""

    wild: float = WILD
    """Standard deviations of the core that some unseen row must be away.
    decisions.md#a-fit-with-tails"""

    standard_errors: float = 2.0
    """Standard errors by which a candidate with tails must be better than without.
    decisions.md#a-fit-with-tails"""

    degrees: tuple[float, ...] = (2.5, 4.0)
    """Degrees of freedom that are tried inside the cross-validation of weights where members have
    tails: a wild row would rule it under lighter ones. decisions.md#a-fit-with-tails"""
