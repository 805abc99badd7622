"""Widths of intervals: errors extrapolated to more rows, rows left out, and coverage."""

import numpy as np

from tensorlace._types import Array
from tensorlace.machines.ensemble import Ensemble
from tensorlace.machines.noise import Noise, with_noise
from tensorlace.metrics import calibration_error
from tensorlace.predictive.distributions import Distribution, Normal
from tensorlace.search.settings import WidthSettings
from tensorlace.search.stacking import mean_and_error

__all__ = ["coverage_scale", "learning_curve_factor", "leave_one_out"]


def learning_curve_factor(
    errors: Array,
    errors_by_half: Array,
    weight: Array | None,
    share: float,
    settings: WidthSettings,
) -> float:
    """Factor by which errors will shrink from the rows of a trial to all rows.

    Noise is judged on rows held out, by fits to fewer rows than the final ones see. The power of
    the number of rows with which errors fall follows from one more fit to half of the rows.

    Parameters
    ----------
    errors, errors_by_half : (n,) arrays
        Logarithms of absolute errors after fits to the rows of a trial and to half of them.
    weight : (n,) array or None
    share : float
        Rows of the trial in those of the final fits.
    settings : WidthSettings
    """
    mean, error = mean_and_error(errors_by_half - errors, weight)
    power = min(max(mean - settings.standard_errors * error, 0.0) / np.log(2.0), 1.0)
    return float(max(share, settings.least_extrapolated) ** power)


def leave_one_out(
    ensemble: Ensemble,
    X: Array,
    y: Array,
    weight: Array | None,
    settings: WidthSettings,
    threads: int = 1,
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
        stays = np.maximum(1.0 - times * (e / a) ** 2, settings.least_left)
        parts.append(Normal(y - (y - d.means[0]) / stays, e / np.sqrt(stays), a))
    return ensemble.mixed(parts, X, threads)


def coverage_scale(
    dist: Distribution, y: Array, weight: Array | None, settings: WidthSettings
) -> float:
    """Scale of all standard deviations with which intervals cover as often as they should.

    The log score, by which the noise was chosen, is ruled by few large errors, coverage by all. It
    has a say where chance does not explain what is wrong, and if that costs the score little.
    """
    count = len(y) if weight is None else weight.sum()
    chance = np.sqrt(1.0 / (6.0 * count))  # p (1 - p) is 1/6 on average over levels
    if calibration_error(y, dist, sample_weight=weight) <= settings.standard_errors * chance:
        return 1.0
    scores, errors = [], []
    for scale in settings.scales:  # one at a time: with heavy tails each is a large mixture
        scaled = with_noise(dist, Noise(shrink=scale), np.zeros(len(y)))
        scores.append(np.average(scaled.logpdf(y), weights=weight))
        errors.append(calibration_error(y, scaled, sample_weight=weight))
    allowed = np.asarray(scores) >= max(scores) - settings.coverage_price
    return settings.scales[int(np.argmin(np.where(allowed, errors, np.inf)))]
