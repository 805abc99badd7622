"""A model that chooses itself: many small fits, judged on rows they have not seen, and mixed.

With hundreds of rows every candidate is cross-validated; with more, a part is held out. The
mixture weighs all that were tried, partly by what helps the mixture on unseen rows, else equally,
and from twenty rows on row by row by how sure each is. Single best picks are overconfident, and so
are mixtures of few. A constant or a straight line may stand alone.
"""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import Any

import numpy as np

from tensorlace._types import Array, Mask
from tensorlace.errors import TimeBudgetWarning
from tensorlace.fitting.fit_machines import fit_machines
from tensorlace.fitting.outcome import Found
from tensorlace.laplace.curvature import GGN
from tensorlace.machines.ensemble import Ensemble
from tensorlace.machines.machine import KernelMachine
from tensorlace.machines.noise import GAUSSIAN, Noise, with_noise
from tensorlace.machines.pruning import prune
from tensorlace.predictive.distributions import Distribution
from tensorlace.search.candidate import Candidate
from tensorlace.search.interval_width import covering, left_out, yet_to_learn
from tensorlace.search.noise_selection import Residuals, choose_noise, choose_tails
from tensorlace.search.parallel import Workers
from tensorlace.search.plan import CHOOSE_FROM, plan
from tensorlace.search.schedule import Runner, Task, cross_validated, held_out
from tensorlace.search.trials import ROUGH_FROM, Trial, Trials, configured, width_of
from tensorlace.search.weights import FOLDS, Member, sure_of_themselves, weigh
from tensorlace.sources import ArraySource, Chunk, Table
from tensorlace.sources.sampling import fold_numbers, sample_of

__all__ = ["search"]

SEARCH_ROWS = 6500
"""Rows that candidates are fitted to; the members that are chosen see all rows."""

FEW_ROWS = 2500
"""Rows up to which members are small and many."""

HELD_ROWS = 350
"""Rows to be held out, one fold after the other: with few rows each is held out once."""

_NOISE_NETWORK = Candidate(2, 5, "mixed", "column_order", 0.3, True, False)
_APART_ROWS, _APART_BUDGET = 200, 10.0
"""Rows, and seconds of a budget, from which starting other processes is worth it."""

_OVERSHOOT, _GRACE = 4.0, 60.0
"""The clock stops a search that takes so many times its budget, and a minute."""


def search(task: Task, table: Table) -> Found:
    """Choose, fit and mix."""
    deadline = monotonic() + _OVERSHOOT * task.budget + _GRACE
    sample = sample_of(table, SEARCH_ROWS)
    n = len(sample.y)
    folds = fold_numbers(sample.X, sample.y, FOLDS)
    few = n <= FEW_ROWS
    parts = [(folds != k, folds == k) for k in range(FOLDS) if _usable(folds, k)]
    parts = parts[: -(-HELD_ROWS * FOLDS // n)]
    trials = Trials(task.config, sample, table.names, table.missing, parts, task.memory_budget)
    width = width_of(task.config, sample)
    apart = few and table.in_memory and n >= _APART_ROWS
    workers = Workers(task.threads, apart and task.threads > 1 and task.budget >= _APART_BUDGET)
    run = Runner(task, trials, width, partial(_past, deadline), workers)
    tried = list[Trial]()
    if parts:
        tried = cross_validated(run, n) if few else held_out(run)
    if not tried:  # two or three distinct rows, of which none can be held out, or no time at all
        _warn_if(run.expired(), task.budget)
        only = task.distinct(plan(n, width, 1.0))[:1]
        machines = _final(task, table, [Member(only[0], task.seed)], workers)
        return Found(Ensemble(machines, np.ones(1)), run.results({}))
    weights = weigh(task, trials, tried, few, table.n_rows, width)
    chosen = np.flatnonzero(weights)
    members = [tried[k] for k in chosen]
    noise, noises, dist = _noise(task, trials, members, weights[chosen])
    if noises and few:
        shrink = covering(dist, *trials.targets)
        dist = with_noise(dist, Noise(shrink=shrink), np.zeros(len(dist.mean)))
        # members that see all rows err less than those that the rows held out can speak of
        shrink *= yet_to_learn(run, members[int(np.argmax(weights[chosen]))], table.n_rows)
        noise = replace(noise, shrink=shrink)
    _warn_if(run.expired(), task.budget)
    # beginning where a fit to part of the rows ended pays only if there are many
    finals = [Member(t.candidate, t.seed) if few else Member.after(t) for t in members]
    machines = _final(task, table, finals, workers)
    sharp = sure_of_themselves(trials)
    ensemble = Ensemble(machines, weights[chosen], sharp=sharp, noise=noise)
    unseen = (dist, *trials.targets)
    if noises and not few:
        # leverages are those of the whole posterior
        whole = isinstance(task.config.curvature, GGN) and task.config.truncation.threshold is None
        if whole:
            ensemble, noises, unseen = _widths(task, ensemble, sample, noises)
        else:
            shrink = covering(*unseen)
            ensemble = replace(ensemble, noise=replace(noise, shrink=shrink))
            dist = with_noise(dist, Noise(shrink=shrink), np.zeros(len(dist.mean)))
            unseen = (dist, *trials.targets)
    shares = {id(tried[k]): float(weights[k]) for k in chosen}
    return Found(ensemble, run.results(shares), noises, unseen)


def _warn_if(expired: bool, budget: float) -> None:
    if expired:
        warnings.warn(
            f"the search took more than {_OVERSHOOT:g} times its budget of {budget:g} s and "
            f"a minute, and was cut short: give a larger time_budget, or a rank",
            TimeBudgetWarning,
            stacklevel=3,
        )


def _usable(folds: Any, k: int) -> bool:
    held = int(np.sum(folds == k))
    return held > 0 and len(folds) - held >= 3


def _noise(
    task: Task, trials: Trials, members: Sequence[Trial], weights: Array
) -> tuple[Noise, list[dict[str, Any]], Any]:
    """Noise that the rows held out speak for, and what the mixture says of them with it."""
    y, weight = trials.targets
    held = trials.held
    dist = Trials.unseen(members).mixture(weights)
    residuals = Residuals(trials.sample.X[held], y, weight, dist)
    if len(y) < CHOOSE_FROM:
        # too few to choose by, and to know the variance: a mean of n rows has n - 1 degrees left
        n = float(len(y) if weight is None else weight.sum())
        unsure = "student" in task.noise
        return (Noise(degrees=max(n - 1.0, 2.5)) if unsure else GAUSSIAN), [], dist
    names = trials.names

    def fit(target: Array, rows: Mask) -> KernelMachine:
        w = None if weight is None else weight[rows]
        source = ArraySource(residuals.X[rows], target[rows], w, names, missing=trials.missing)
        cut = replace(
            configured(task.config, _NOISE_NETWORK, source), max_steps=40, tol=1e-3, rough=True
        )
        return fit_machines(cut, source, seeds=[task.seed])[0]

    inner = fold_numbers(residuals.X, y, FOLDS)
    # a plain model is not one of many that differ, and knows its noise
    plain = len(members) == 1 and members[0].candidate.plain
    noise, results = choose_noise(
        residuals, inner, fit if inner.any() else None, task.noise, trusted=plain
    )
    return noise, results, with_noise(dist, noise, noise.log_variance(residuals.X))


def _widths(
    task: Task, ensemble: Ensemble, sample: Chunk, noises: list[dict[str, Any]]
) -> tuple[Ensemble, list[dict[str, Any]], tuple[Distribution, Array, Array | None]]:
    """Noise and widths of final members from what they say of rows left out.

    With fewer weights than rows, leaving one out is close to linear.
    """
    X, y, weight = sample.X, sample.y, sample.weight
    dist = left_out(replace(ensemble, noise=GAUSSIAN), X, y, weight, task.threads)
    noise, found = choose_tails(Residuals(X, y, weight, dist), ensemble.noise, task.noise)
    log_variance = noise.log_variance(X, task.threads)
    shrink = covering(with_noise(dist, noise, log_variance), y, weight)
    noise = replace(noise, shrink=shrink)
    lines = [{**line, "chosen": False} for line in noises]
    lines += [{**line, "rows": "left out"} for line in found]
    unseen = with_noise(dist, noise, log_variance), y, weight
    return replace(ensemble, noise=noise), lines, unseen


def _final(
    task: Task, table: Table, members: Sequence[Member], workers: Workers
) -> tuple[KernelMachine, ...]:
    """Members fitted to all rows."""
    config, memory_budget, report = task.config, task.memory_budget, task.report

    def fit(m: Member) -> KernelMachine:
        cut = replace(
            configured(config, m.candidate, table, bends=m.bends),
            max_steps=m.steps,
            tol=1e-3,
            rough=table.n_rows >= ROUGH_FROM,
        )
        how: dict[str, Any] = {"seeds": [m.seed], "memory_budget": memory_budget}
        return prune(fit_machines(cut, table, begin=m.begin, **how)[0])

    def told(number: int, _: KernelMachine) -> None:
        if report is not None:
            report(f"member {number + 1}/{len(members)}: {members[number].candidate}")

    return tuple(workers([partial(fit, m) for m in members], told))


def _past(deadline: float) -> bool:
    return monotonic() > deadline
