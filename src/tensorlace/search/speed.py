"""How fast this machine is, beside the one that the cost model was measured on.

A budget in seconds is a promise about this machine, and plans should be the same whenever they are
made on it. So the speed is measured once per process, in processor time of this thread, which does
not count what others do, as the least of many repetitions of a fixed piece of work; and it is
rounded coarsely.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import log
from time import thread_time
from typing import final

import numpy as np

from tensorlace.linalg.blas_threads import one_blas_thread

__all__ = ["ProbeSettings", "machine_speed", "rounded"]


@final
@dataclass(frozen=True)
class ProbeSettings:
    """The work by which the speed of a machine is measured, and how that is rounded."""

    arithmetic: float = 0.0069
    """Seconds of the reference machine for a Gram matrix and its factor. decisions.md#cost-model"""

    functions_of_rows: float = 0.00253
    """Seconds of the reference machine for cosines of rows. decisions.md#cost-model"""

    short_calls: float = 0.00162
    """Seconds of the reference machine for many calls with little to do. decisions.md#cost-model"""

    repetitions: int = 8
    """Repetitions of each, of which the quickest counts. decisions.md#cost-model"""

    grid: float = 2.0**0.5
    """Factor between two speeds that are told apart. decisions.md#cost-model"""

    largest: float = 4.0
    """Largest speed, and one over the smallest, that plans reckon with. decisions.md#cost-model"""

    shortest: float = 1e-6
    """Seconds that any clock can tell from zero. decisions.md#cost-model"""


@cache
def machine_speed(settings: ProbeSettings) -> float:
    """How many times as fast as the reference machine this one is, about."""
    rng = np.random.default_rng(0)
    A, small = rng.standard_normal((400, 1600)), rng.standard_normal((8, 64))
    rows = rng.standard_normal((4, 20_000))

    def arithmetic() -> None:
        K = A @ A.T
        K[np.diag_indices_from(K)] += 1.0
        np.linalg.cholesky(K)

    def functions_of_rows() -> None:
        f = rows
        for _ in range(4):
            f = f * np.cos(f)

    def short_calls() -> None:
        for _ in range(300):
            np.split(np.tanh(small @ small.T), 2)

    parts = (
        (arithmetic, settings.arithmetic),
        (functions_of_rows, settings.functions_of_rows),
        (short_calls, settings.short_calls),
    )
    with one_blas_thread:
        logs = [log(reference / _least(work, settings)) for work, reference in parts]
    return rounded(float(np.exp(np.mean(logs))), settings)


def rounded(speed: float, settings: ProbeSettings) -> float:
    """The nearest power of the grid, in its range.

    >>> [round(rounded(s, ProbeSettings()), 3) for s in (0.01, 0.9, 1.1, 1.3, 100.0)]
    [0.25, 1.0, 1.0, 1.414, 4.0]
    """
    power = round(log(speed) / log(settings.grid))
    return float(min(max(settings.grid**power, 1.0 / settings.largest), settings.largest))


def _least(work: Callable[[], None], settings: ProbeSettings) -> float:
    """Least processor seconds of several repetitions."""
    seconds = []
    for _ in range(settings.repetitions):
        start = thread_time()
        work()
        seconds.append(thread_time() - start)
    return max(min(seconds), settings.shortest)
