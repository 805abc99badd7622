"""What a fit costs, in seconds of a reference machine: the same plan on a busy machine."""

from collections.abc import Iterable

from tensorlace.search.candidate import Candidate, Width

__all__ = ["MOST_WEIGHTS", "affordable", "cost", "default_budget"]

MOST_WEIGHTS = 13_000
"""Weights of the largest candidate: three matrices of them take 4 GB."""


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
