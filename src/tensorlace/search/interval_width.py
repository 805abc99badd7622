"""Widths of intervals: errors extrapolated to more rows, rows left out, and coverage."""

from functools import lru_cache

import numpy as np

from tensorlace._types import Array
from tensorlace.machines.ensemble import Ensemble
from tensorlace.machines.noise import Noise, with_noise
from tensorlace.predictive.distributions import Distribution, Normal
from tensorlace.search.settings import WidthSettings
from tensorlace.search.stacking import mean_and_error

__all__ = ["learning_curve_factor", "leave_one_out", "scale_and_tails"]

_MIDDLE, _WIDE = 0.5, 0.95
"""Coverages of the two intervals that scale and tails are read off."""


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


def scale_and_tails(
    z: Array, weight: Array | None, fall: float, settings: WidthSettings, *, tails: bool
) -> tuple[float, float]:
    """Scale of all standard deviations, and degrees of freedom of the whole error.

    Two quantiles of what rows that nothing was chosen on say: 95 % intervals are as wide as split
    conformal prediction makes them, so that they hold a new target with that probability on
    average; 50 % intervals hold half of the rows, and shrink as errors are known to. Where the
    ratio of the two is larger than that of a normal, errors are Student's t.

    Parameters
    ----------
    z : (n,) array
        Residuals of the rows on the scale of a standard normal, see `predictive.residuals`.
    weight : (n,) array or None
    fall : float
        Factor by which errors shrink from the rows of a trial to all rows. The wide intervals do
        without it: it is an extrapolation.
    settings : WidthSettings
    tails : bool
        Whether the error may have heavier tails than the normal.

    Returns
    -------
    scale, degrees : float

    Examples
    --------
    >>> from scipy.special import ndtri
    >>> z = ndtri((np.arange(999) + 0.5) / 999)
    >>> scale, degrees = scale_and_tails(z, None, 1.0, WidthSettings(), tails=True)
    >>> round(scale, 2), degrees
    (1.0, inf)
    """
    order = np.argsort(np.abs(z), kind="stable")
    size = np.abs(z)[order]
    upto = np.cumsum(np.ones(len(z)) if weight is None else weight[order])
    middle, wide = (
        float(size[min(int(np.searchsorted(upto, rank)), len(z) - 1)])
        for rank in (_MIDDLE * upto[-1], _WIDE * (upto[-1] + 1.0) * (1.0 - 1e-12))
    )
    least = np.finfo(float).tiny
    wide = max(wide, least)
    middle = max(middle * fall, least)
    degrees = np.inf
    if tails and wide * _half_widths(np.inf)[0] > middle * _half_widths(np.inf)[1]:
        gaps = {
            nu: abs(np.log(_half_widths(nu)[1] / _half_widths(nu)[0]) - np.log(wide / middle))
            for nu in settings.tails
        }
        degrees = min(gaps, key=lambda nu: gaps[nu])
    return wide / _half_widths(degrees)[1], degrees


@lru_cache
def _half_widths(degrees: float) -> tuple[float, float]:
    """Half widths of 50 % and 95 % intervals of a standard error with such tails."""
    noise = Noise(tails=degrees)
    dist = with_noise(Normal(np.zeros(1), np.zeros(1), np.ones(1)), noise, np.zeros(1))
    middle, wide = (float(dist.interval(level)[1][0]) for level in (_MIDDLE, _WIDE))
    return middle, wide
