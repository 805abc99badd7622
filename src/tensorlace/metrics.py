"""How good predictive distributions are: the scores of the paper's appendix B, CRPS and PIT.

Every score takes

- ``y``: targets, shape (n,), finite, n >= 1;
- ``dist``: a `Distribution` of the same n rows, `Normal`, `Mixture` or `Samples`;
- ``sample_weight``: shape (n,), non-negative, not all zero; default equal weights;

and returns one float, the (weighted) average over the rows. "Appendix B" is the paper's section
"Evaluation Metrics". Intervals here are exact; the published code takes them from 300 draws of y
(``Samples(dist.sample(300, rng).T)`` does the same).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tensorlace.errors import InputError
from tensorlace.predictive.distributions import Distribution, Samples

__all__ = ["calibration_error", "coverage", "crps", "nll", "pit", "rmse", "summary", "width"]

Array = NDArray[np.float64]

_LEVELS = tuple(k / 20 for k in range(1, 20))


def rmse(
    y: ArrayLike, mean: ArrayLike | Distribution, *, sample_weight: ArrayLike | None = None
) -> float:
    """Root mean squared error of a prediction (n,), or of the mean of a distribution.

    ``RMSE = sqrt(1/N sum_i (y_i - yhat_i)^2)`` (appendix B, RMSE).

    Examples
    --------
    >>> rmse([1.0, 2.0], [1.0, 4.0], sample_weight=[3.0, 1.0])
    1.0
    """
    predicted = mean.mean if isinstance(mean, Distribution) else np.asarray(mean, dtype=float)
    error = abs(_finite("y", y, predicted.shape) - _finite("mean", predicted, predicted.shape))
    largest = max(error.max(), np.finfo(float).tiny)  # squares could overflow or underflow
    return float(largest * np.sqrt(_average((error / largest) ** 2, sample_weight)))


def nll(y: ArrayLike, dist: Distribution, *, sample_weight: ArrayLike | None = None) -> float:
    """Negative log-likelihood per row (NLPD); lower is better.

    ``NLL = -1/N sum_i log p(y_i | x_i)`` (appendix B, NLL). It depends on the unit of y: in the
    unit of ``shift + scale * y`` it is larger by ``log(scale)``. `Samples` have no density and
    raise `InputError`.

    Examples
    --------
    >>> from tensorlace import Normal
    >>> round(nll([0.0], Normal([0.0], 0.0, 1.0)), 4)  # log(2 pi) / 2
    0.9189
    """
    target = _targets(y, dist)
    return -_average(dist.logpdf(target), sample_weight)


def crps(y: ArrayLike, dist: Distribution, *, sample_weight: ArrayLike | None = None) -> float:
    """Continuous ranked probability score per row, in the unit of y; lower is better.

    ``CRPS = 1/N sum_i int (F_i(t) - [t >= y_i])^2 dt`` (not in appendix B). For a prediction
    without any uncertainty it is the absolute error.

    Examples
    --------
    >>> from tensorlace import Normal
    >>> crps([3.0], Normal([1.0], 0.0, 0.0))
    2.0
    """
    target = _targets(y, dist)
    return _average(dist.crps(target), sample_weight)


def coverage(
    y: ArrayLike,
    dist: Distribution,
    coverage: float = 0.95,
    *,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Share of the targets inside their central interval; best when equal to ``coverage``.

    ``ECP = 1/N sum_i [l_i <= y_i <= u_i]`` (appendix B, ECP-95 for coverage 0.95).

    Examples
    --------
    >>> from tensorlace import Normal
    >>> coverage([0.0, 1.9, 2.0, -3.0], Normal([0.0] * 4, 0.0, 1.0))
    0.5
    """
    return _coverages(y, dist, [coverage], sample_weight)[0]


def width(
    y: ArrayLike,
    dist: Distribution,
    coverage: float = 0.95,
    *,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Mean width of the central intervals, in the unit of y; smaller is sharper.

    ``WCPI = 1/N sum_i (u_i - l_i)`` (appendix B, WCPI-95 for coverage 0.95). The values of y play
    no part.

    Examples
    --------
    >>> from tensorlace import Normal
    >>> round(width([0.0], Normal([0.0], 0.0, 1.0)), 4)
    3.9199
    """
    _targets(y, dist)
    lower, upper = dist.interval(coverage)
    return _average(upper - lower, sample_weight)


def calibration_error(
    y: ArrayLike,
    dist: Distribution,
    levels: Sequence[float] | Array = _LEVELS,
    *,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Mean distance between nominal and empirical coverage; 0 is best.

    ``RCE = 1/K sum_k |c(alpha_k) - alpha_k|``, c the ECP at the level (appendix B, RCE). The
    default levels are the 19 of the published code, 0.05, 0.10, ..., 0.95; the text of the paper
    names 0.5, 0.6, ..., 0.95.

    Examples
    --------
    >>> from tensorlace import Normal
    >>> calibration_error([0.0, 3.0], Normal([0.0, 0.0], 0.0, 1.0), levels=[0.5, 0.75])
    0.125
    """
    gaps = np.subtract(_coverages(y, dist, levels, sample_weight), levels)
    return float(np.mean(abs(gaps)))


def pit(y: ArrayLike, dist: Distribution) -> Array:
    """Probability integral transform ``F_i(y_i)``, shape (n,): uniform if calibrated.

    Examples
    --------
    >>> from tensorlace import Normal
    >>> pit([0.0, 9.0], Normal([0.0, 0.0], 0.0, 1.0))
    array([0.5, 1. ])
    """
    target = _targets(y, dist)
    return dist.cdf(target)


def summary(
    y: ArrayLike, dist: Distribution, *, sample_weight: ArrayLike | None = None
) -> dict[str, float]:
    """All scores: keys rmse, nll (NaN for `Samples`), crps, ecp95, wcpi95, rce.

    Examples
    --------
    >>> from tensorlace import Normal
    >>> scores = summary([0.0, 1.0], Normal([0.0, 0.0], 0.6, 0.8))
    >>> {name: round(value, 3) for name, value in scores.items()}
    {'rmse': 0.707, 'nll': 1.169, 'crps': 0.418, 'ecp95': 1.0, 'wcpi95': 3.92, 'rce': 0.189}
    """
    w = sample_weight
    return {
        "rmse": rmse(y, dist, sample_weight=w),
        "nll": np.nan if isinstance(dist, Samples) else nll(y, dist, sample_weight=w),
        "crps": crps(y, dist, sample_weight=w),
        "ecp95": coverage(y, dist, sample_weight=w),
        "wcpi95": width(y, dist, sample_weight=w),
        "rce": calibration_error(y, dist, sample_weight=w),
    }


def _coverages(
    y: ArrayLike, dist: Distribution, levels: Sequence[float] | Array, weight: ArrayLike | None
) -> list[float]:
    """ECP at each level.

    ``l <= y <= u`` is ``F(y) >= (1 - level) / 2`` and ``F(y-) <= (1 + level) / 2``, so one cdf
    serves all levels. Samples interpolate their quantiles: there the intervals are compared.
    """
    target, level = _targets(y, dist), np.asarray(levels, dtype=float)[:, None]
    if not level.size or not np.all((level > 0) & (level < 1)):
        raise InputError(f"coverage levels must be within (0, 1), got {levels}")
    low, high = (1 - level) / 2, (1 + level) / 2
    if isinstance(dist, Samples):
        inside = (target >= dist.quantile(low[:, 0]).T) & (target <= dist.quantile(high[:, 0]).T)
    else:
        inside = (low <= dist.cdf(target)) & (dist.cdf_below(target) <= high)
    return [_average(row, weight) for row in inside.astype(float)]


def _targets(y: ArrayLike, dist: Distribution) -> Array:
    if not isinstance(dist, Distribution):
        raise InputError(f"need a Normal, Mixture or Samples, got {type(dist).__name__}")
    return _finite("y", y, (len(dist),))


def _finite(name: str, values: ArrayLike, shape: tuple[int, ...]) -> Array:
    x = np.asarray(values, dtype=float)
    if x.shape != shape or x.ndim != 1 or not x.size:
        raise InputError(f"{name} has shape {x.shape}, the prediction {shape}; need (n,), n >= 1")
    if bad := np.count_nonzero(~np.isfinite(x)):
        raise InputError(
            f"{name} has {bad} of {x.size} values that are not finite; drop those rows"
        )
    return x


def _average(values: Array, weight: ArrayLike | None) -> float:
    w = np.ones(len(values)) if weight is None else _finite("sample_weight", weight, values.shape)
    if (w < 0).any() or not w.any():
        raise InputError(f"the {w.size} values of sample_weight must be >= 0, and one > 0")
    with np.errstate(invalid="ignore"):  # the mean of -inf and +inf is NaN
        return float(np.average(values[w > 0], weights=None if weight is None else w[w > 0]))
