"""Residuals on the scale of a standard normal, and the way back to the units of y.

The residual of a row is ``z = Φ⁻¹(F(y))``, F its predictive cdf: standard normal if the predictive
distribution is right, whatever its shape (a quantile residual). Beyond five the cdf has too few
digits left, and z goes on as a straight line, one per standard deviation. For a `Normal` that is
``(y - mean) / std`` throughout. Of a target that is seen through a scale, residuals are those of u:
they know how far a target is from what was said, where all of y that is beyond a bound is alike.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from tensorlace._types import Array
from tensorlace.errors import InputError
from tensorlace.predictive.distributions import Distribution, Samples

__all__ = ["from_residuals", "residuals"]

_EDGE = 5.0
"""Size of a residual beyond which the tail goes on as a straight line: the upper tail has nine
digits there, and thousands of rows."""


def residuals(y: ArrayLike, dist: Distribution) -> Array:
    """Residuals ``Φ⁻¹(F_i(y_i))`` (n,) of targets (n,).

    Infinite where a distribution without any spread misses its target.

    Examples
    --------
    >>> from tensorlace import Normal
    >>> residuals([0.0, 3.0, -90.0], Normal([0.0, 1.0, 10.0], 0.0, 2.0)).round(6)
    array([  0.,   1., -50.])
    """
    if not isinstance(dist, Distribution) or isinstance(dist, Samples):
        raise InputError(f"need a Normal or a Mixture, got {type(dist).__name__}")
    target = np.asarray(y, dtype=float)
    if target.shape != (len(dist),) or not target.size:
        raise InputError(f"y has shape {target.shape}, the distribution {len(dist)} rows")
    if bad := np.count_nonzero(~np.isfinite(target)):
        raise InputError(f"y has {bad} of {target.size} values that are not finite; drop them")
    dist, target = dist.base, dist.scale.inverse(target)
    z: Array = np.clip(ndtri(dist.cdf(target)), -_EDGE, _EDGE)
    spread = dist.std
    far = np.flatnonzero(abs(z) >= _EDGE)
    if far.size:
        few, side = dist[far], np.sign(z[far])
        edge = np.where(side > 0, few.quantile(ndtr(_EDGE)), few.quantile(ndtr(-_EDGE)))
        beyond = np.maximum(side * (target[far] - edge), 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.where(beyond > 0, beyond / few.std, 0.0)
        z[far] = side * (_EDGE + steps)
    z[(spread == 0) & (target == dist.mean)] = 0.0
    return z


def from_residuals(z: ArrayLike, dist: Distribution) -> Array:
    """Values of y (n, k) that have the residuals ``z`` (k,), rising with z.

    They are infinite where z is, unless y has a bound.

    Examples
    --------
    >>> from tensorlace import Normal
    >>> from_residuals([-1.0, 0.0, 50.0], Normal([10.0], 0.0, 2.0)).round(6)
    array([[  8.,  10., 110.]])
    """
    levels, base = np.asarray(z, dtype=float), dist.base
    inner = np.clip(levels, -_EDGE, _EDGE)
    with np.errstate(invalid="ignore"):
        beyond = np.multiply.outer(base.std, levels - inner)
    beyond[:, np.isinf(levels)] = levels[np.isinf(levels)]  # also where the spread is zero
    return dist.scale.forward(base.quantile(ndtr(inner)) + beyond)
