"""Widths of intervals: errors extrapolated to more rows, rows left out, and coverage."""

from dataclasses import dataclass
from functools import lru_cache
from typing import final

import numpy as np

from tensorlace._types import Array
from tensorlace.likelihoods.student import information, row_weights
from tensorlace.machines.ensemble import Ensemble
from tensorlace.machines.noise import Noise, with_noise
from tensorlace.predictive.distributions import Distribution, Normal
from tensorlace.predictive.quantile_residuals import residuals
from tensorlace.search.settings import WidthSettings
from tensorlace.search.stacking import mean_and_error

__all__ = ["learning_curve_factor", "leave_one_out", "scale_and_tails", "widened"]

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
    as its weight says; in a fit with tails a row counts for as much as it is trusted.
    """
    _, group = np.unique(np.column_stack([X, y]), axis=0, return_inverse=True)
    times = np.bincount(group.ravel(), weight)[group.ravel()]
    parts = []
    for machine in ensemble.machines:
        d = machine.linearized(X, threads)
        e, a = d.epistemic_stds[0], d.aleatoric_stds[0]
        counts_for = times.astype(np.float64)
        if np.isfinite(machine.fit.degrees):  # a row that is hardly trusted hardly holds the fit
            nu = machine.fit.degrees
            counts_for = times * information(nu) * row_weights(((y - d.means[0]) / a) ** 2, nu)
        stays = np.maximum(1.0 - counts_for * (e / a) ** 2, settings.least_left)
        parts.append(Normal(y - (y - d.means[0]) / stays, e / np.sqrt(stays), a))
    return ensemble.mixed(parts, X, threads)


def scale_and_tails(
    z: Array,
    dist: Distribution,
    y: Array,
    weight: Array | None,
    fall: float,
    settings: WidthSettings,
    *,
    tails: bool,
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
    dist : Distribution of n rows
    y : (n,) array
        What the residuals are of.
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
    >>> dist = Normal(np.zeros(999), 0.0, 1.0)
    >>> scale, degrees = scale_and_tails(z, dist, z, None, 1.0, WidthSettings(), tails=True)
    >>> round(scale, 2), degrees
    (1.0, inf)
    """
    least = np.finfo(float).tiny
    middle, wide = (max(_size_upto(z, weight, level), least) for level in (_MIDDLE, _WIDE))
    middle = max(middle * fall, least)
    degrees = np.inf
    if tails and wide * _half_widths(np.inf)[0] > middle * _half_widths(np.inf)[1]:
        gaps = {
            nu: abs(np.log(_half_widths(nu)[1] / _half_widths(nu)[0]) - np.log(wide / middle))
            for nu in settings.tails
        }
        degrees = min(gaps, key=lambda nu: gaps[nu])
    ends = _Ends(z, dist, y, weight, settings)
    scale = ends.scale(wide / _half_widths(degrees)[1], degrees)
    if np.isfinite(degrees):
        # of a forecast that has heavy tails itself the ratio says too much
        plain = ends.scale(wide / _half_widths(np.inf)[1], np.inf)
        if ends.middle_gap(plain, np.inf, fall) < ends.middle_gap(scale, degrees, fall):
            return plain, np.inf
    return scale, degrees


def widened(dist: Distribution, scale: float, degrees: float) -> Distribution:
    """All standard deviations scaled, the error of Student's t."""
    return with_noise(dist, Noise(shrink=scale, tails=degrees), np.zeros(len(dist)))


def _size_upto(z: Array, weight: Array | None, level: float) -> float:
    """Size that this share of residuals (n,) does not exceed, as split conformal counts it."""
    order = np.argsort(np.abs(z), kind="stable")
    upto = np.cumsum(np.ones(len(z)) if weight is None else weight[order])
    more = 1.0 if level == _WIDE else 0.0
    place = int(np.searchsorted(upto, level * (upto[-1] + more) * (1.0 - 1e-12)))
    return float(np.abs(z[order[min(place, len(z) - 1)]]))


@final
@dataclass(frozen=True, eq=False)
class _Ends:
    """Rows whose intervals get another width: residuals z (n,), distributions, targets, weights."""

    z: Array
    dist: Distribution
    y: Array
    weight: Array | None
    settings: WidthSettings

    def scale(self, first: float, degrees: float) -> float:
        """Scale with which the wide interval holds as many rows as it has to: the secant method.

        Residuals are proportional to the errors only if the distribution is normal; of another,
        the ``first`` scale, which takes them for it, is wrong. Rows whose residual is far from the
        end of the interval are not computed again.
        """
        settings, goal = self.settings, _half_widths(np.inf)[1]
        size, end = np.abs(self.z), _size_upto(self.z, self.weight, _WIDE)
        near = np.flatnonzero((size > end / settings.near) & (size < end * settings.near))
        if not (near.size and np.isfinite(end)):
            return first
        scores, part = np.where(size <= end / settings.near, 0.0, np.inf), self.dist[near]

        def excess(log_scale: float) -> float:
            wider = widened(part, float(np.exp(log_scale)), degrees)
            scores[near] = np.abs(residuals(self.y[near], wider))
            return float(np.log(max(_size_upto(scores, self.weight, _WIDE), 1e-9) / goal))

        at, value = [float(np.log(first))], [excess(float(np.log(first)))]
        for _ in range(settings.scale_steps):
            if abs(value[-1]) <= settings.scale_tolerance or not np.isfinite(value[-1]):
                break
            slope = -1.0 if len(at) == 1 else (value[-1] - value[-2]) / (at[-1] - at[-2])
            slope = min(slope, -settings.least_slope)
            at.append(at[-1] - value[-1] / slope)
            value.append(excess(at[-1]))
        best = min(range(len(at)), key=lambda k: abs(value[k]))
        return float(np.exp(at[best]))

    def middle_gap(self, scale: float, degrees: float, fall: float) -> float:
        """How far the share of rows in 50 % intervals is from a half; some of them, if many."""
        some = slice(None, None, max(1, len(self.y) // self.settings.middle_rows))
        z = residuals(self.y[some], widened(self.dist[some], scale, degrees))
        weight = None if self.weight is None else self.weight[some]
        inside = np.abs(z) * fall <= _half_widths(np.inf)[0]
        return abs(float(np.average(inside, weights=weight)) - _MIDDLE)


@lru_cache
def _half_widths(degrees: float) -> tuple[float, float]:
    """Half widths of 50 % and 95 % intervals of a standard error with such tails."""
    noise = Noise(tails=degrees)
    dist = with_noise(Normal(np.zeros(1), np.zeros(1), np.ones(1)), noise, np.zeros(1))
    middle, wide = (float(dist.interval(level)[1][0]) for level in (_MIDDLE, _WIDE))
    return middle, wide
