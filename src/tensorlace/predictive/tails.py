"""What the distribution function of a mixture of normals has beyond a bound."""

import numpy as np
import scipy
from numpy.typing import NDArray

from tensorlace.scales.scale import REACH

__all__ = ["squared_tail"]
Array = NDArray[np.float64]

_STEP = 0.0625
"""Step of the logarithm of the distance from the bound: the square of what is nine
standard deviations beyond rises with a standard deviation of 0.08 of it, and a sum over equal steps
is wrong by 1e-13 of such a rise."""

_FIRST = 1e-5
"""Distance, in the smallest standard deviation, below which the function counts as constant."""

_NUMBERS = 1 << 20
"""Most numbers in an array in the making."""


def squared_tail(beyond: Array, stds: Array, weights: Array) -> Array:
    """``∫ F(t)² dt`` (n,) below a bound, F of a mixture of M normals.

    Parameters
    ----------
    beyond : (M, n) array
        By how much each mean is below the bound, at most nine standard deviations; minus infinity
        is a bound that there is not.
    stds : (M, n) array
    weights : (M,) or (M, n) array

    Examples
    --------
    >>> two = np.array([[0.0]]), np.array([[1.0]]), np.array([1.0])
    >>> squared_tail(*two).round(6)  # (√2 - 1) / 2√π
    array([0.116847])
    """
    w = np.broadcast_to(weights[:, None] if weights.ndim == 1 else weights, beyond.shape)
    out = np.zeros(beyond.shape[1])
    reach = beyond + REACH * stds
    rows = np.flatnonzero((reach > 0.0).any(axis=0))
    if not rows.size:
        return out
    s = np.where(stds > 0.0, stds, np.inf).min(axis=0)[rows]
    last = reach.max(axis=0)[rows]
    first = np.where(np.isfinite(s), np.minimum(_FIRST * s, last), 1e-12 * last)
    count = int(np.ceil(np.log(np.max(last / first)) / _STEP)) + 1
    step = max(1, _NUMBERS // (count * len(w)))
    grid = np.exp(_STEP * np.arange(count))
    for start in range(0, len(rows), step):
        part = slice(start, start + step)
        at = rows[part]
        distance = first[part] * grid[:, None]  # (k, n)
        with np.errstate(divide="ignore", invalid="ignore"):
            z = (beyond[:, at] - distance[:, None, :]) / stds[:, at]
        F = np.sum(w[:, at] * scipy.special.ndtr(np.nan_to_num(z, nan=0.0)), axis=1)
        total = _STEP * np.sum(distance * F**2, axis=0)
        # nearer than the first distance F is as it is there: a geometric series
        out[at] = total + _STEP * distance[0] * F[0] ** 2 / np.expm1(_STEP)
    return out
