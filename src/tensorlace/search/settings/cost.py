"""Time and memory of fits, by size."""

from dataclasses import dataclass
from typing import final

__all__ = ["MEASURED", "CostSettings"]


@final
@dataclass(frozen=True)
class CostSettings:
    """Time and memory of a fit by its size, on one thread of a reference machine."""

    rate: float = 2.2e10
    """Multiplications per second of one thread in a Gauss-Newton step. decisions.md#cost-model"""

    step_overhead: float = 0.003
    """Seconds of a solver step that are not arithmetic. decisions.md#cost-model"""

    gram_work: float = 0.9
    """Multiplications of the Gram matrix, per min(P, N)² max(P, N). decisions.md#cost-model"""

    factorisation_work: float = 3.0
    """Multiplications of the factorisations, per min(P, N)³. decisions.md#cost-model"""

    row_work: float = 300.0
    """Multiplications of features and Jacobian, per N P. decisions.md#cost-model"""

    steps: int = 45
    """Solver steps of a fit that begins at random cores. decisions.md#cost-model"""

    final_steps: int = 25
    """Solver steps of a fit that begins where another one ended. decisions.md#cost-model"""

    most_weights: int = 13_000
    """Weights of the largest candidate: three matrices of P² take 4 GB. decisions.md#cost-model"""

    column_work: float = 0.0
    """Multiplications of a step for its columns, per N D. decisions.md#cost-model"""

    fit_overhead: float = 0.0
    """Seconds of a fit that are neither arithmetic nor steps. decisions.md#cost-model"""

    read_work: float = 0.0
    """Multiplications of reading rows and warping columns, per N D. decisions.md#cost-model"""

    posterior_work: float = 0.0
    """Multiplications of the posterior, per P² N, if P ≤ N. decisions.md#cost-model"""

    low_rank_work: float = 0.0
    """Multiplications of the posterior, per N² P, if there are more weights P than rows N.
    decisions.md#cost-model"""

    search_overhead: float = 0.0
    """Seconds of a search that are not fits, on each of its threads. decisions.md#cost-model"""

    contention: float = 1.0
    """Factor on the overhead of a step where threads wait for each other at short calls.
    decisions.md#cost-model"""

    process_overhead: float = 0.0
    """Processor seconds until another process is ready to fit. decisions.md#cost-model"""

    speed: float = 1.0
    """Speed of this machine, in units of that of the reference machine. decisions.md#cost-model"""


MEASURED = CostSettings(
    rate=3e10,
    step_overhead=0.00033,
    gram_work=0.36,
    factorisation_work=1.7,
    row_work=135.0,
    column_work=150.0,
    fit_overhead=0.0015,
    read_work=4300.0,
    posterior_work=1.3,
    low_rank_work=10.0,
    search_overhead=0.25,
    contention=1.5,
    process_overhead=1.5,
)
"""Seconds, for a budget that was given. decisions.md#cost-model"""
