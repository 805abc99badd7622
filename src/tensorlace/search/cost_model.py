"""Seconds that a fit takes on a reference machine, and which candidates a budget pays for.

No clock has a say, so that the same table gets the same candidates on a busy machine.
"""

from collections.abc import Iterable

from tensorlace.search.candidate import Candidate, Width
from tensorlace.search.settings import BudgetSettings, CostSettings, RowSettings

__all__ = ["affordable", "cost", "default_budget"]


def cost(
    c: Candidate, width: Width, n_rows: float, settings: CostSettings, steps: int | None = None
) -> float:
    """Seconds that a fit of ``steps`` solver steps takes on one thread, about.

    >>> from tensorlace.search.settings import CandidateSettings
    >>> model, lines = CostSettings(), CandidateSettings().lines
    >>> cost(lines, Width(8), 1000, model) < cost(lines, Width(8), 10_000, model)
    True
    """
    P = width.weights(c)
    small, large = min(P, n_rows), max(P, n_rows)
    work = (
        settings.gram_work * small * small * large
        + settings.factorisation_work * small**3
        + settings.row_work * n_rows * P
    )
    steps = settings.steps if steps is None else steps
    return steps * (settings.step_overhead + work / settings.rate)


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
        The first so many are taken whatever they cost.
    share : float
        Largest share of the work for one: many different models mix better than few. Models with
        more than ``most_weights`` are left out, unless there is nothing else.
    """
    chosen: list[Candidate] = []
    largest = share * work
    for candidate in candidates:
        seconds = fits * cost(candidate, width, n_rows, settings)
        if chosen and width.weights(candidate) > settings.most_weights:
            continue
        if len(chosen) >= at_least and seconds > min(work, largest):
            continue
        chosen.append(candidate)
        work -= seconds
    return chosen
