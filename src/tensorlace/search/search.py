"""``rank="auto"``: many small fits, judged on rows they have not seen, and mixed.

Single best models are overconfident, and so are mixtures of few: the mixture weighs all candidates
that were tried, partly by what helps the mixture on unseen rows, else by their own scores. A
constant or a straight line may stand alone.
"""

from tensorlace.fitting.outcome import Found
from tensorlace.search.parallel import Workers
from tensorlace.search.strategies.few_rows import FewRows
from tensorlace.search.strategies.many_rows import ManyRows
from tensorlace.search.task import Budget, Task
from tensorlace.search.trials import Trials
from tensorlace.sources import Table
from tensorlace.sources.sampling import fold_numbers, sample_of

__all__ = ["search"]


def search(task: Task, table: Table) -> Found:
    """Choose models for a table, fit them to all rows, and mix them."""
    budget, settings = Budget.of(task, table.n_rows), task.settings
    sample = sample_of(table, settings.rows.sample_size)
    n, n_folds = len(sample.y), settings.rows.n_folds
    folds = fold_numbers(sample.X, sample.y, n_folds)
    parts = [(folds != k, folds == k) for k in range(n_folds)]
    least = settings.rows.least_trained
    parts = [(train, held) for train, held in parts if held.any() and train.sum() >= least]
    parts = parts[: -(-settings.rows.held_out * n_folds // n)]
    trials = Trials(
        *(task.config, sample, table.names, table.missing, parts, settings), task.memory_budget
    )
    if n > settings.rows.few:
        return ManyRows(task, table, trials, budget, Workers(task.threads)).search()
    # small fits are short calls, for which threads take turns
    processes = (
        table.in_memory
        and n >= settings.few.processes_from
        and task.threads > 1
        and budget.seconds >= settings.few.processes_budget
    )
    workers = Workers(task.threads, processes, settings.workers)
    return FewRows(task, table, trials, budget, workers).search()
