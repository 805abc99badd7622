"""On which scale the target is modelled, by rows that first candidates have not seen."""

from dataclasses import dataclass, replace
from typing import final

import numpy as np

from tensorlace._types import Array
from tensorlace.predictive.distributions import Distribution, Normal
from tensorlace.predictive.transformed import seen_through
from tensorlace.scales import IDENTITY, Scale
from tensorlace.scales.registry import clipped, natural_bounds, open_scales
from tensorlace.search.candidate import Candidate
from tensorlace.search.cost_model import cost
from tensorlace.search.parallel import Workers
from tensorlace.search.plan import plan
from tensorlace.search.speed import machine_speed
from tensorlace.search.task import Budget, Task
from tensorlace.search.trials import Trials
from tensorlace.sources import Chunk, Table
from tensorlace.sources.sampling import fold_numbers, sample_of

__all__ = ["ScaleSettings", "with_scale"]


@final
@dataclass(frozen=True)
class ScaleSettings:
    """How scales of the target are compared."""

    probes: int = 6
    """Candidates of the search that are tried on each scale. decisions.md#scale-of-the-target"""

    fewest_probes: int = 3
    """Fewest that say anything: the first two are straight. decisions.md#scale-of-the-target"""

    parts: int = 2
    """Most folds of five that they are judged on. decisions.md#scale-of-the-target"""

    share: float = 0.1
    """Part of the budget that they may take. decisions.md#scale-of-the-target"""

    least_skewness: float = 0.5
    """Skewness of targets below which no other scale is tried. decisions.md#scale-of-the-target"""

    errors: float = 2.0
    """Standard errors by which the log score has to be better. decisions.md#scale-of-the-target"""


def with_scale(task: Task, table: Table, how: ScaleSettings | None = None) -> tuple[Task, Scale]:
    """Scale of the target that held-out rows speak for, and the search with what is left to spend.

    Only of tables in memory, whose targets are skewed and have bounds that none of them is on.
    """
    how = how or ScaleSettings()
    if not table.in_memory:
        return task, IDENTITY
    sample = sample_of(table, task.settings.rows.sample_size)
    y, n = sample.y, float(len(sample.y))
    bounds = natural_bounds(float(y.min()), float(y.max()), n)
    others = [s for s in open_scales(*bounds) if bool(np.all(s.contains(y)))]
    others = [scale for scale in others if _skewed(y, scale, how.least_skewness)]
    if not others or n < task.settings.rows.least_to_choose:
        return task, IDENTITY
    budget, settings = Budget.of(task, table.n_rows), task.settings
    costs = settings.cost
    if budget.given:
        costs = replace(settings.measured, speed=machine_speed(settings.probe))
    n_folds = settings.rows.n_folds
    folds = fold_numbers(sample.X, y, n_folds)
    parts = [(folds != k, folds == k) for k in range(n_folds) if np.any(folds == k)]
    parts = parts[: min(-(-settings.rows.held_out * n_folds // int(n)), how.parts)]
    config = replace(task.config, stop=replace(budget.trials, to_the_end=True))
    trials = Trials(
        *(config, sample, table.names, table.missing, parts, settings), task.memory_budget
    )
    planned = plan(n, trials.width, budget.work, settings.candidates, costs, fits=len(parts))
    probes: list[Candidate] = []
    spent = 0.0
    for candidate in task.distinct(planned):
        fits = len(parts) * (1 + len(others)) * cost(candidate, trials.width, n, costs)
        if len(probes) < how.probes and spent + fits <= how.share * budget.work:
            probes.append(candidate)
            spent += fits
    if len(probes) < how.fewest_probes:
        return task, IDENTITY
    seeds = np.random.default_rng(task.seed).integers(2**31, size=len(probes)).tolist()
    workers = Workers(task.threads, False, settings.workers)
    plain = _said(trials, IDENTITY, clipped(*bounds), probes, seeds, workers, budget)
    best: Scale = IDENTITY
    best_gain = 0.0
    for scale in others:
        other = _said(trials, scale, scale, probes, seeds, workers, budget)
        if plain is None or other is None:
            continue
        gain = _gain(other, plain, *trials.targets, how.errors)
        if gain > best_gain:
            best, best_gain = scale, gain
    if task.budget is not None:
        task = replace(task, budget=max(task.budget - spent / task.threads, 0.5 * task.budget))
    return task, best


def _skewed(y: Array, scale: Scale, least: float) -> bool:
    """Whether targets (n,) are skewed, and less so on a scale."""
    skewness, there = (abs(_skewness(x)) for x in (y, scale.inverse(y)))
    return bool(skewness > least and there < skewness)


def _skewness(x: Array) -> float:
    away = (x - x.mean()) / max(float(np.std(x)), np.finfo(float).tiny)
    return float(np.mean(away**3))


def _said(
    trials: Trials,
    fitted: Scale,
    seen: Scale,
    probes: list[Candidate],
    seeds: list[int],
    workers: Workers,
    budget: Budget,
) -> Distribution | None:
    """What the best probe, fitted on a scale, says of y in rows held out."""
    s = trials.sample
    u = fitted.inverse(s.y)
    moved = replace(trials, sample=Chunk(s.X, u, s.weight, s.first_row))
    tried = moved.run(probes, seeds, workers, budget.deadline)
    if not tried:
        return None
    best = max(tried, key=lambda t: t.score)
    if not fitted.trivial:
        seen = seen.held_within(float(u.min()), float(u.max()))
    return seen_through(Normal(best.means, best.epistemic, best.aleatoric), seen)


def _gain(
    other: Distribution, plain: Distribution, y: Array, weight: Array | None, errors: float
) -> float:
    """Gain in log score (> 0) if it is sure and the CRPS is not worse, or else 0."""
    w = np.ones(len(y)) if weight is None else weight
    more = other.logpdf(y) - plain.logpdf(y)
    mean = float(np.average(more, weights=w))
    error = float(np.sqrt(np.average((more - mean) ** 2, weights=w) / w.sum()))
    worse = float(np.average(other.crps(y) - plain.crps(y), weights=w))
    return mean if mean > errors * error and worse <= 0.0 else 0.0
