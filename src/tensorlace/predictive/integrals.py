"""Integrals over the distribution function of mixtures of normals."""

import numpy as np
import scipy
from numpy.typing import NDArray

from tensorlace.scales.scale import REACH

__all__ = ["NODES", "panels", "squared_tail"]
Array = NDArray[np.float64]

_STEP = 0.0625
"""Step of the logarithm of the distance from the bound: the square of what is nine
standard deviations beyond rises with a standard deviation of 0.08 of it, and a sum over equal steps
is wrong by 1e-13 of such a rise."""

_FIRST = 1e-5
"""Distance, in the smallest standard deviation, below which the function counts as constant."""

_NUMBERS = 1 << 20
"""Most numbers in an array in the making."""

_MOST_PANELS = 48
"""Most panels of an integral over all of a mixture."""

_EDGES = np.array([-9.0, -5.0, -3.5, -2.25, -1.0, 0.0, 1.0, 2.25, 3.5, 5.0, 9.0])
"""Ends of panels, in standard deviations of a normal of the mixture."""


def _nodes(n: int) -> tuple[Array, Array]:
    x, w = np.polynomial.legendre.leggauss(n)
    return 0.5 * w, 0.5 * (1.0 + x)


NODES = _nodes(8)
"""Weights, and places from 0 to 1, of the rule for one panel."""


def panels(means: Array, stds: Array, target: Array) -> Array:
    """Ends (K, n) of panels between which the distribution function of a mixture is smooth, rising.

    They are where its M normals are, every few of them if there are many; and the target (n,).
    """
    ends = np.sort((means + _EDGES[:, None, None] * stds).reshape(-1, len(target)), axis=0)
    some = np.linspace(0, len(ends) - 1, min(len(ends), _MOST_PANELS)).astype(int)
    return np.sort(np.concatenate([ends[some], target[None]]), axis=0)


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
