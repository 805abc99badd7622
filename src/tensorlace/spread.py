"""How wide the intervals of the final members should be, from how the trials did on unseen rows."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tensorlace.bases.basis import Array
from tensorlace.metrics import calibration_error
from tensorlace.mixtures import Ensemble
from tensorlace.noise import Noise, with_noise
from tensorlace.predictive import Distribution
from tensorlace.rounds import Runner
from tensorlace.trials import Trial, Trials, mean_error, part_of

__all__ = ["covering", "learnt", "narrower", "yet_to_learn"]

_LEAST_SHARE = 0.8
"""Of the rows, from which errors are extrapolated: that of four folds of five."""

_SCALES = tuple(0.05 * k for k in range(10, 31))
_NATS = 0.005
"""Scales of all standard deviations, and log score that right coverage may cost."""

_MOST_LEARNT = 0.2
"""Least factor of the errors that is believed."""

_SURE = 2.0
"""Standard errors by which something must differ to be believed."""


def yet_to_learn(run: Runner, best: Trial, n_rows: int) -> float:
    """Factor by which errors will shrink from the rows of a trial to all rows.

    Noise is judged on rows held out, by fits to fewer rows than the final ones see. How fast errors
    fall with the number of rows, as a power of it, shows when one candidate is fitted to half.
    """
    trials, (y, weight) = run.trials, run.trials.targets
    halves = [(part_of(train, int(train.sum()) // 2), held) for train, held in trials.parts]
    again = replace(trials, parts=halves).run(
        [best.candidate], [best.seed], run.task.threads, lambda *fit: None, run.expired
    )
    if not again:
        return 1.0
    tiny = 1e-6 * float(np.std(y)) + np.finfo(float).tiny
    fall = np.log(np.abs(y - again[0].means) + tiny) - np.log(np.abs(y - best.means) + tiny)
    mean = float(np.average(fall, weights=weight))
    error = np.sqrt(np.average((fall - mean) ** 2, weights=weight) / _count(y, weight))
    power = min(max(mean - _SURE * error, 0.0) / np.log(2.0), 1.0)
    share = float(np.mean([train.sum() for train, _ in trials.parts])) / n_rows
    return float(max(share, _LEAST_SHARE) ** power)


def learnt(ensemble: Ensemble, trials: Trials, members: Sequence[Trial], n_rows: int) -> float:
    """Factor by which errors of unseen rows fell from the trials to the final members.

    Of the trials both errors are known, of rows seen and unseen; of the final members only that of
    rows seen. What is between the two falls as one over the number of rows.
    """
    y, weight = trials.targets
    share = float(np.mean([train.sum() for train, _ in trials.parts])) / n_rows
    everything = np.ones(len(trials.sample.y), dtype=np.bool_)
    fall = []
    for trial, machine in zip(members, ensemble.machines, strict=True):
        unseen = float(np.average(np.abs(y - trial.means), weights=weight))
        if unseen <= 0.0 or trial.seen <= 0.0:
            return 1.0
        gap = max(unseen / trial.seen - 1.0, 0.0)
        expected = mean_error(machine, trials.sample, everything) * (1.0 + share * gap)
        fall.append(np.log(max(expected / unseen, _MOST_LEARNT)))
    return float(min(np.exp(np.average(fall, weights=ensemble.weights)), 1.0))


def _count(y: Array, weight: Array | None) -> float:
    return float(len(y) if weight is None else weight.sum())


def covering(dist: Distribution, y: Array, weight: Array | None) -> float:
    """Scale of all standard deviations with which intervals cover as often as they should.

    The log score, by which the noise was chosen, is ruled by few large errors, coverage by all. It
    has a say where chance does not explain what is wrong, and if that costs the score little.
    """
    chance = np.sqrt(1.0 / (6.0 * _count(y, weight)))  # p (1 - p) is 1/6 on average over levels
    if calibration_error(y, dist, sample_weight=weight) <= _SURE * chance:
        return 1.0
    scaled = [with_noise(dist, Noise(shrink=k), np.zeros(len(y))) for k in _SCALES]
    scores = [np.average(d.logpdf(y), weights=weight) for d in scaled]
    errors = [calibration_error(y, d, sample_weight=weight) for d in scaled]
    allowed = np.asarray(scores) >= max(scores) - _NATS
    return _SCALES[int(np.argmin(np.where(allowed, errors, np.inf)))]


def narrower(ensemble: Ensemble, trials: Trials, dist: Distribution) -> float:
    """How much wider the trials were than the final members are.

    These see more rows and find a noise of their own there, so that part of the shrinking has
    happened already. With thousands of rows it matters little that they have seen the rows asked.
    """
    plain = replace(ensemble, noise=replace(ensemble.noise, shrink=1.0))
    stds = plain.dist(trials.sample.X[trials.held]).std
    weight = trials.targets[1]
    return float(np.exp(np.average(np.log(dist.std) - np.log(stds), weights=weight)))
