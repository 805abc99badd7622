"""How candidates are fitted: to which rows, how far, and in which processes."""

from dataclasses import dataclass
from typing import final

__all__ = ["FitSettings", "RowSettings", "WorkerSettings"]


@final
@dataclass(frozen=True)
class RowSettings:
    """Rows that candidates are fitted to and judged on."""

    sample_size: int = 6500
    """Most rows that candidates see; final members see all rows. decisions.md#rows-of-a-search"""

    most_written_out: int = 20_000
    """Most rows of a table whose whole weights are written out as repeated rows. Set by hand.
    decisions.md#weights-of-rows"""

    few: int = 2500
    """Most rows of the strategy with many small members. decisions.md#rows-of-a-search"""

    n_folds: int = 5
    """Folds into which rows are cut, for candidates and for the noise. decisions.md#folds"""

    held_out: int = 350
    """Rows that are held out at least, fold by fold, if there are so many.
    decisions.md#rows-of-a-search"""

    least_trained: int = 3
    """Rows that must remain for training when a fold is held out. decisions.md#rows-of-a-search"""

    least_to_choose: int = 40
    """Rows held out from which trust, noise and plain models are chosen by cross-validation.
    decisions.md#rows-of-a-search"""


@final
@dataclass(frozen=True)
class FitSettings:
    """How a candidate is fitted."""

    tol: float = 1e-3
    """Relative gradient at which any fit has converged. decisions.md#fits-of-a-search"""

    rough_from: int = 200
    """Rows from which precision updates may lose half their digits to be quick.
    decisions.md#precisions"""

    dense_work: float = 4e12
    """Multiplications of min(P, N)² max(P, N) up to which the solver is dense Gauss-Newton.
    decisions.md#fits-of-a-search"""

    second_order_columns: int = 40
    """Columns up to which dense Gauss-Newton uses second derivatives near the optimum, at a cost
    quadratic in columns. decisions.md#fits-of-a-search"""


@final
@dataclass(frozen=True)
class WorkerSettings:
    """Processes that fit candidates."""

    look_every: float = 1.0
    """Seconds between two looks of a process at whether its parent lives. decisions.md#workers"""
