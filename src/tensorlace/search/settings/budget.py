"""Seconds that a search may take."""

from dataclasses import dataclass
from typing import final

__all__ = ["BudgetSettings"]


@final
@dataclass(frozen=True)
class BudgetSettings:
    """Seconds that a search may take."""

    default_threads: int = 2
    """Threads whose work the default budget is, whatever number there is. Set by hand.
    decisions.md#cost-model"""

    few_rows_start: float = 38.0
    """Seconds of the default budget for no rows at all, where rows are few. decisions.md#budget"""

    few_rows_per_second: float = 150.0
    """Rows that add a second to the default budget, where rows are few. decisions.md#budget"""

    many_rows_per_second: float = 20.0
    """Rows per second of the default budget, where rows are many. decisions.md#budget"""

    largest: float = 370.0
    """Seconds of the largest default budget. decisions.md#budget"""

    overshoot: float = 4.0
    """Multiple of the budget after which, and `grace`, a clock ends the search.
    decisions.md#budget"""

    grace: float = 60.0
    """Seconds beyond `overshoot` budgets after which a clock ends the search.
    decisions.md#budget"""

    dear_share: float = 0.3
    """Share of a budget that was given which one candidate may take, even one of the first.
    decisions.md#budget"""

    noise_share: float = 0.25
    """Share of a budget that was given which a noise that varies may take. decisions.md#budget"""

    dear_final_share: float = 0.6
    """Share of a budget that was given which the final fit of one member may take.
    decisions.md#budget"""

    tolerance: float = 1.5
    """Multiple of a budget that was given which the least plan may take without a warning.
    decisions.md#budget"""

    unnoticed: float = 1.0
    """Seconds that the least plan may always take without a warning. decisions.md#budget"""

    fewest_final_steps: int = 4
    """Steps of the only final fit where a budget that was given pays for no more.
    decisions.md#budget"""

    planned_share: float = 0.65
    """Share of a time limit that plans are made for. decisions.md#budget"""

    trials_until: float = 0.65
    """Share of a time limit after which no candidate is tried any more. decisions.md#budget"""

    noise_until: float = 0.75
    """Share of a time limit after which no noise that varies is fitted. decisions.md#budget"""

    finals_until: float = 0.9
    """Share of a time limit after which no final fit goes on. decisions.md#budget"""

    wrap_up: float = 5.0
    """Seconds after an interrupt in which members are fitted if there are none yet.
    decisions.md#budget"""

    settled_share: float = 0.5
    """Share of its steps that a final fit from nothing must have made to count, if the clock ended
    it. decisions.md#budget"""
