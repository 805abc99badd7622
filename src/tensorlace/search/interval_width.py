"""How wide the intervals of the final members should be, from rows that were not seen."""

from dataclasses import replace

import numpy as np

from tensorlace._types import Array
from tensorlace.machines.ensemble import Ensemble
from tensorlace.machines.noise import Noise, with_noise
from tensorlace.metrics import calibration_error
from tensorlace.predictive.distributions import Distribution, Normal
from tensorlace.search.schedule import Runner
from tensorlace.search.trials import Trial
from tensorlace.sources.sampling import part_of

__all__ = ["covering", "left_out", "yet_to_learn"]

_LEAST_SHARE = 0.8
"""Of the rows, from which errors are extrapolated: that of four folds of five."""

_SCALES = tuple(0.05 * k for k in range(10, 31))
_NATS = 0.005
"""Scales of all standard deviations, and log score that right coverage may cost."""

_LEAST_LEFT = 0.01
"""Of a residual, that is not a row's own doing."""

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
        [best.candidate], [best.seed], run.workers, lambda *fit: None, run.expired
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


def left_out(
    ensemble: Ensemble, X: Array, y: Array, weight: Array | None = None, threads: int = 1
) -> Distribution:
    """What the members would say of rows (n, D) that they were fitted to, had each been left out.

    Near the fit a machine is linear in its weights. With leverage ``h = β gᵀΣg`` of a row, leaving
    it out divides its residual and its epistemic variance by ``1 - h``, exactly so if the machine
    is linear and its precisions stay as they are. Rows that are equal leave together, each as often
    as its weight says.
    """
    _, group = np.unique(np.column_stack([X, y]), axis=0, return_inverse=True)
    times = np.bincount(group.ravel(), weight)[group.ravel()]
    parts = []
    for machine in ensemble.machines:
        d = machine.linearized(X, threads)
        e, a = d.epistemic_stds[0], d.aleatoric_stds[0]
        stays = np.maximum(1.0 - times * (e / a) ** 2, _LEAST_LEFT)
        parts.append(Normal(y - (y - d.means[0]) / stays, e / np.sqrt(stays), a))
    return ensemble.mixed(parts, X, threads)


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
    scores, errors = [], []
    for scale in _SCALES:  # one at a time: with heavy tails each is a large mixture
        scaled = with_noise(dist, Noise(shrink=scale), np.zeros(len(y)))
        scores.append(np.average(scaled.logpdf(y), weights=weight))
        errors.append(calibration_error(y, scaled, sample_weight=weight))
    allowed = np.asarray(scores) >= max(scores) - _NATS
    return _SCALES[int(np.argmin(np.where(allowed, errors, np.inf)))]
