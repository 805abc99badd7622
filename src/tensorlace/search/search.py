"""``rank="auto"``: many small fits, judged on rows they have not seen, and mixed.

Single best models are overconfident, and so are mixtures of few: the mixture weighs all candidates
that were tried, partly by what helps the mixture on unseen rows, else by their own scores. A
constant or a straight line may stand alone.
"""

from dataclasses import replace

import numpy as np

from tensorlace.fitting.outcome import Found
from tensorlace.machines.distrusted import Judge
from tensorlace.machines.noises.registry import NOISES
from tensorlace.search.cost_model import cost
from tensorlace.search.parallel import Workers
from tensorlace.search.speed import machine_speed
from tensorlace.search.strategies.few_rows import FewRows
from tensorlace.search.strategies.many_rows import ManyRows
from tensorlace.search.task import Budget, Task
from tensorlace.search.trials import Trials
from tensorlace.sources import Table
from tensorlace.sources.repetitions import written_out
from tensorlace.sources.sampling import fold_numbers, sample_of

__all__ = ["search"]


def search(task: Task, table: Table) -> Found:
    """Choose models for a table, fit them to all rows, and mix them."""
    settings = task.settings
    table = written_out(table, settings.rows.most_written_out)
    budget = Budget.of(task, table.n_rows)
    if budget.given:
        speed = machine_speed(settings.probe)
        settings = replace(settings, cost=replace(settings.measured, speed=speed))
        task = replace(task, settings=settings)
    sample = sample_of(table, settings.rows.sample_size)
    n, n_folds = len(sample.y), settings.rows.n_folds
    folds = fold_numbers(sample.X, sample.y, n_folds)
    parts = [(folds != k, folds == k) for k in range(n_folds)]
    least = settings.rows.least_trained
    parts = [(train, held) for train, held in parts if held.any() and train.sum() >= least]
    parts = parts[: -(-settings.rows.held_out * n_folds // n)]
    config = replace(task.config, stop=replace(budget.trials, to_the_end=True))
    trials = Trials(
        *(config, sample, table.names, table.missing, parts, settings), task.memory_budget
    )
    many = n > settings.rows.few
    # small fits are short calls, for which threads take turns
    processes = (
        not many
        and table.in_memory
        and n >= settings.few.processes_from
        and task.threads > 1
        and budget.seconds >= settings.few.processes_budget
    )
    workers = Workers(task.threads, processes, settings.workers)
    if budget.given and not many and workers.count > 1 and not processes:
        # threads that take turns hold each other up at every short call
        costs = settings.cost
        contended = costs.contention * costs.step_overhead
        settings = replace(settings, cost=replace(costs, step_overhead=contended))
        task, trials = replace(task, settings=settings), replace(trials, settings=settings)
    if budget.given:
        needed = all(NOISES[kind].varies for kind in task.noise)
        budget = _for_fits(budget, trials, table.n_rows, workers, needs_varying=needed)
    strategy = (ManyRows if many else FewRows)(task, table, trials, budget, workers)
    found = strategy.search()
    heavy = any(np.isfinite(machine.fit.degrees) for machine in found.ensemble.machines)
    return replace(found, judge=Judge(found.ensemble) if heavy else strategy.judge)


def _for_fits(
    budget: Budget, trials: Trials, n_rows: int, workers: Workers, *, needs_varying: bool
) -> Budget:
    """What a budget that was given leaves for candidates and final fits."""
    settings, n_held = trials.settings, int(trials.held.sum()) if trials.parts else 0
    costs, noise, n_folds = settings.cost, settings.noise, settings.rows.n_folds
    overhead = costs.search_overhead * workers.count
    if workers.processes:
        overhead += costs.process_overhead * workers.count
    varying = 0.0
    if n_held >= noise.varying_from:
        # one fit without each of the folds and one to all
        part = n_held * (1.0 - 1.0 / n_folds)
        fits = ((n_folds, part), (1, n_held))
        varying = sum(
            k * cost(noise.network, trials.width, n, costs, noise.network_steps) for k, n in fits
        )
    constant = settings.candidates.constant
    reading = cost(constant, trials.width, n_rows, costs, 0)  # for the rows that a model keeps
    always = overhead / costs.speed + reading
    if needs_varying:
        return budget.less(always + varying, 0.0, settings.budget)
    return budget.less(always, varying, settings.budget)
