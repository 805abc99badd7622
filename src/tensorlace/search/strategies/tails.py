"""Whether candidates are fitted with tails: what rows that the first of them have not seen say."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tensorlace._types import Array
from tensorlace.fitting.tails import MOST_DISTRUSTED, dominated
from tensorlace.likelihoods.student import (
    DISTRUSTED,
    furthest,
    log_density,
    row_weights,
    shape_of,
    size_counts,
)
from tensorlace.predictive.distributions import Distribution
from tensorlace.search.parallel import Workers
from tensorlace.search.stacking import mean_and_error
from tensorlace.search.task import Task
from tensorlace.search.trials import Trial, Trials

__all__ = ["Robust", "degrees_of", "tails_allowed", "tails_help", "trusted", "with_tails"]


def tails_allowed(task: Task) -> bool:
    """Whether the noise may have tails, and fits have none yet."""
    return not task.config.tails and any("student" in name for name in task.noise)


def with_tails(task: Task) -> Task:
    """The same search, all of whose fits have tails."""
    settings = task.settings
    noise = replace(settings.noise, coarse_degrees=settings.tails.degrees)
    return replace(
        task,
        config=replace(task.config, tails=True),
        settings=replace(settings, noise=noise),
    )


def degrees_of(degrees: Sequence[float], weights: Array) -> float:
    """Degrees of freedom of members on average; infinite if one has no tails."""
    return float(np.exp(np.average(np.log(degrees), weights=weights)))


def trusted(dist: Distribution, y: Array, weight: Array | None, degrees: float) -> Array | None:
    """Weights (n,) of unseen rows in a choice: a row that is distrusted has no say.

    Parameters
    ----------
    dist : Distribution of n rows
        What fits with tails say of them.
    y : (n,) array
    weight : (n,) array or None
    degrees : float
        Of the fits; infinite without tails, where weights stay what they are.
    """
    if np.isinf(degrees):
        return weight
    tau = row_weights(((y - dist.mean) / dist.std) ** 2, degrees)
    return np.where(tau < DISTRUSTED, tau, 1.0) * (1.0 if weight is None else weight)


class Robust(NamedTuple):
    """A candidate fitted with tails.

    Attributes
    ----------
    trial : Trial
    better : bool
        Whether it is clearly better so. If not, a single row has a large share of the variance of
        the target, and no row that was held out can tell.
    """

    trial: Trial
    better: bool


def tails_help(
    probes: Sequence[Trial], trials: Trials, task: Task, workers: Workers, deadline: float
) -> Robust | None:
    """The best of the first candidates with tails, if rows that it has not seen allow them.

    It is tried with them only if some row is wild: in the target, or beside what is said of it.
    Both ways are judged by Student's t with the shape that suits each, which no wild row rules.

    Parameters
    ----------
    probes : sequence of Trial
        Without tails.
    trials : Trials
        Rows that they were fitted to and judged on.
    task : Task
    workers : Workers
    deadline : float
        Reading of the clock from which no fit begins.
    """
    if not (probes and tails_allowed(task)):
        return None
    settings = task.settings.tails
    y, weight = trials.targets
    judged = [_judgement(trial, y, weight) for trial in probes]
    best = int(np.argmax([np.average(j.scores, weights=weight) for j in judged]))
    sample = trials.sample
    alone = dominated(sample.y, sample.weight)
    if not (judged[best].wild > settings.wild or alone):
        return None
    heavy = replace(trials, config=replace(trials.config, tails=True))
    again = heavy.run([probes[best].candidate], [probes[best].seed], workers, deadline)
    if not again:
        return None
    robust = _judgement(again[0], y, weight)
    if robust.distrusted > MOST_DISTRUSTED:
        return None
    mean, error = mean_and_error(robust.scores - judged[best].scores, weight)
    if mean > max(settings.standard_errors * error, task.settings.noise.gain):
        return Robust(again[0], better=True)
    worse = mean < -settings.standard_errors * error
    return Robust(again[0], better=False) if alone and not worse else None


class _Judgement(NamedTuple):
    scores: Array
    wild: float
    distrusted: float


def _judgement(trial: Trial, y: Array, weight: Array | None) -> _Judgement:
    """Log scores (n,) under Student's t of the best shape, and which rows it finds wild."""
    std = np.hypot(trial.epistemic, trial.aleatoric)
    squares = ((y - trial.means) / std) ** 2
    counts = size_counts(squares, weight)
    shape = shape_of(counts)
    squares = shape.precision * squares
    scores = log_density(squares, shape.degrees) + 0.5 * np.log(shape.precision) - np.log(std)
    distrusted = np.average(row_weights(squares, shape.degrees) < DISTRUSTED, weights=weight)
    return _Judgement(scores, furthest(counts), float(distrusted))
