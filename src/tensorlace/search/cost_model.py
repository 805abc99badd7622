"""Seconds that a fit takes by its size, and which candidates a budget pays for.

No clock has a say, so that the same table gets the same candidates on a busy machine.
"""

from collections.abc import Iterable
from math import inf

from tensorlace.search.candidate import Candidate, Width
from tensorlace.search.settings import BudgetSettings, CostSettings, RowSettings

__all__ = ["affordable", "affordable_steps", "cost", "default_budget"]


def cost(
    c: Candidate, width: Width, n_rows: float, settings: CostSettings, steps: int | None = None
) -> float:
    """Seconds that a fit of ``steps`` solver steps takes on one thread, about.

    >>> from tensorlace.search.settings import CandidateSettings
    >>> model, lines = CostSettings(), CandidateSettings().lines
    >>> cost(lines, Width(8), 1000, model) < cost(lines, Width(8), 10_000, model)
    True
    """
    once, per_step = _once_and_per_step(c, width, n_rows, settings)
    return once + (settings.steps if steps is None else steps) * per_step


def affordable_steps(
    c: Candidate, width: Width, n_rows: float, settings: CostSettings, work: float
) -> int:
    """Solver steps, perhaps none, of a fit that takes no more than ``work`` seconds."""
    once, per_step = _once_and_per_step(c, width, n_rows, settings)
    return max(0, int((work - once) / per_step))


def _once_and_per_step(
    c: Candidate, width: Width, n_rows: float, settings: CostSettings
) -> tuple[float, float]:
    """Seconds of a fit without steps, and of each step."""
    P, n_columns = width.weights(c), width.free + (width.fixed > 0)
    small, large = min(P, n_rows), max(P, n_rows)
    gram = small * small * large
    work = (
        settings.gram_work * gram
        + settings.factorisation_work * small**3
        + settings.row_work * n_rows * P
        + settings.column_work * n_rows * n_columns
    )
    posterior = settings.posterior_work if n_rows >= P else settings.low_rank_work
    once = settings.read_work * n_rows * n_columns + posterior * gram
    speed = settings.speed
    return (
        (settings.fit_overhead + once / settings.rate) / speed,
        (settings.step_overhead + work / settings.rate) / speed,
    )


def default_budget(n_rows: float, settings: BudgetSettings, rows: RowSettings) -> float:
    """Seconds that a search may take: under a minute for hundreds of rows, minutes for many."""
    seconds = n_rows / settings.many_rows_per_second
    if n_rows <= rows.few:
        seconds = settings.few_rows_start + n_rows / settings.few_rows_per_second
    return min(seconds, settings.largest)


def affordable(
    candidates: Iterable[Candidate],
    n_rows: float,
    width: Width,
    work: float,
    settings: CostSettings,
    *,
    fits: float = 1.0,
    at_least: int = 0,
    share: float = 1.0,
    ceiling: float = inf,
) -> list[Candidate]:
    """Candidates that fit into the work, in the order given.

    Parameters
    ----------
    candidates : iterable of Candidate
    n_rows : float
        Rows that each is fitted to.
    width : Width
    work : float
        Seconds of one thread.
    settings : CostSettings
    fits : float
        Fits per candidate.
    at_least : int
        The first so many are taken even if they cost more than the work, up to the ``ceiling``.
    share : float
        Largest share of the work for one: many different models mix better than few. Models with
        more than ``most_weights`` are left out, unless there is nothing else.
    ceiling : float
        Seconds that only the first of all may exceed.
    """
    chosen: list[Candidate] = []
    largest = share * work
    for candidate in candidates:
        seconds = fits * cost(candidate, width, n_rows, settings)
        if chosen and (width.weights(candidate) > settings.most_weights or seconds > ceiling):
            continue
        if len(chosen) >= at_least and seconds > min(work, largest):
            continue
        chosen.append(candidate)
        work -= seconds
    return chosen
