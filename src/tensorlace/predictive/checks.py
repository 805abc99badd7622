"""Whether held-out targets contradict predictive distributions.

If the distributions are right, the residuals ``z = Φ⁻¹(F(y))`` are standard normal. Four tests look
at them, each with a p-value for independent rows and with the size of what it finds:

- their mean (predictions too low or too high);
- their standard deviation (intervals too narrow or too wide);
- the largest gap between nominal and observed coverage of central intervals (wrong shape);
- the largest gap between q and the share of targets below the q-quantile (skewness).

With many rows everything is significant, so a finding must also be large enough to matter. Rows
that one fitted function predicts share its error. How they share it is not known from one row at a
time, so the worst is allowed for: a share ``ρ = mean(epistemic variance / variance)`` common to
all. It adds ρ to the variance ``1/n`` of the mean, and 2ρ² to the ``2/n`` of the variance.
"""

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtr, chdtrc, kolmogorov, ndtr

from tensorlace._types import Array
from tensorlace.errors import InputError
from tensorlace.predictive.distributions import Distribution, Normal
from tensorlace.predictive.quantile_residuals import residuals

__all__ = ["LEVELS", "Check", "check", "check_residuals"]

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
"""Nominal coverages that are reported."""

SIGNIFICANCE = 0.002
"""Chance of a false alarm, at most, over all four tests."""

SMALLEST_BIAS = 0.2
"""Least mean residual, in standard deviations, that counts as a contradiction."""

SMALLEST_FACTOR = 1.15
"""Least factor between predicted and observed standard deviation that counts as a contradiction:
95 % intervals then hold 91 %."""

SMALLEST_GAP = 0.08
"""Least gap between nominal and observed coverage that counts as a contradiction: that of a mean
residual of 0.2."""

_TESTS = 4
"""Tests made: bias, dispersion, shape and skewness. A p-value is multiplied by their number."""

_FARTHEST = 1e4
"""Largest size of a residual, in standard deviations: squares of larger ones say no more."""

_DRAWS = 32
"""Most draws of the targets by which the expected log score is estimated."""

_DRAWN_NUMBERS = 1 << 22
"""Most numbers drawn for it in all."""


@final
@dataclass(frozen=True, eq=False)
class Check:
    """What held-out targets say about predictive distributions; `str` gives the sentence.

    Attributes
    ----------
    contradicted : bool
        Some deviation is both significant and large enough to matter.
    message : str
        What is wrong, in one sentence.
    p_value : float
        Chance of a deviation as large as the most surprising one, over all tests (Bonferroni).
    n_rows : float
        Rows, or their total weight.
    n_effective : float
        Fewer, if the residuals were standardised with a limited number of other rows.
    bias : float
        Mean residual, in standard deviations: positive if predictions are too low.
    dispersion : float
        Standard deviation of the residuals: above 1 if the distributions are too narrow.
    levels, coverage : tuple of float
        Nominal coverage, and the share of targets in central intervals of that coverage.
    log_score, expected_log_score : float
        Mean log density at the targets, and what it would be on average if the distributions were
        right (for a mixture from draws). NaN if only residuals are known. Not part of the verdict.
    pit : (n,) array
        Probability integral transform: uniform if the distributions are right.
    """

    contradicted: bool
    message: str
    p_value: float
    n_rows: float
    n_effective: float
    bias: float
    dispersion: float
    levels: tuple[float, ...]
    coverage: tuple[float, ...]
    log_score: float
    expected_log_score: float
    pit: Array

    def __str__(self) -> str:
        return self.message


def check(y: ArrayLike, dist: Distribution, *, sample_weight: ArrayLike | None = None) -> Check:
    """Compare targets with their predictive distributions.

    Parameters
    ----------
    y : (n,) array
        Targets that the distributions were made without, n >= 2.
    dist : Normal or Mixture
    sample_weight : (n,) array, optional
        A weight is a number of repetitions of its row.

    Examples
    --------
    >>> import numpy as np
    >>> from tensorlace import Normal
    >>> y = np.random.default_rng(0).normal(size=500)
    >>> print(check(y, Normal(np.zeros(500), 0.0, 0.5)))
    intervals too narrow: 95 % intervals hold 66 % of 500 rows
    >>> check(y, Normal(np.zeros(500), 0.0, 1.0)).contradicted
    False
    """
    z = residuals(y, dist)
    spread = dist.base.std
    ratio = np.divide(dist.base.epistemic_std, spread, out=np.zeros(len(z)), where=spread > 0)
    w = _weights(sample_weight, z)
    scores = _mean(dist.logpdf(y), w), _mean(_expected_logpdf(dist), w)
    return check_residuals(z, sample_weight=w, shared=_mean(ratio**2, w), log_scores=scores)


def check_residuals(
    z: Array,
    *,
    sample_weight: ArrayLike | None = None,
    shared: float = 0.0,
    reference: float = np.inf,
    log_scores: tuple[float, float] = (np.nan, np.nan),
) -> Check:
    """Judge residuals (n,) that should be standard normal, see `residuals`.

    Parameters
    ----------
    z : (n,) array
    sample_weight : (n,) array, optional
    shared : float
        Share ρ of their variance that rows may have in common.
    reference : float
        Rows that the residuals were standardised with; few of them make the residuals of all rows
        wrong together, as the two samples of a two-sample test.
    log_scores : (float, float)
        Mean log density and its expectation, to be passed on.
    """
    w = _weights(sample_weight, z)
    z, n = np.clip(z, -_FARTHEST, _FARTHEST), float(w.sum())
    if np.count_nonzero(w) < 2:
        raise InputError(f"{np.count_nonzero(w)} row cannot be checked: give at least 2")
    bias = _mean(z, w)
    deviation = float(np.sqrt(w @ (z - bias) ** 2 / max(n - 1.0, 1e-300)))
    inside: Array = 1.0 - 2.0 * ndtr(-abs(z))  # the level of the interval that the target is on
    skew_gap, shape_gap = _gap(ndtr(z), w), _gap(inside, w)

    one_over_n = 1.0 / n + 1.0 / reference
    dof = 1.0 / (1.0 / (n - 1.0) + 1.0 / reference + shared**2)
    variance = dof * deviation**2
    p_bias = 2.0 * ndtr(-abs(bias) / np.sqrt(one_over_n + shared))
    p_deviation = 2.0 * min(chdtr(dof, variance), chdtrc(dof, variance))
    p_skew = _kolmogorov(skew_gap, 1.0 / (one_over_n + shared))
    p_shape = _kolmogorov(shape_gap, 1.0 / (one_over_n + shared**2))

    def found(p: float, matters: bool) -> bool:
        return bool(_TESTS * p < SIGNIFICANCE and matters)

    factor = max(deviation, 1.0 / max(deviation, 1e-300))
    coverage = tuple(_mean((inside <= level).astype(float), w) for level in LEVELS)
    wrong = []
    if found(p_bias, abs(bias) > SMALLEST_BIAS):
        wrong.append(
            f"predictions too {'low' if bias > 0 else 'high'}: targets are off by {bias:+.2g} "
            f"standard deviations in the mean of {n:.6g} rows"
        )
    if found(p_deviation, factor > SMALLEST_FACTOR):
        wrong.append(_spread_sentence(deviation, coverage, n, float(abs(z[w > 0]).max())))
    else:
        shape, skew = (
            found(p, gap > SMALLEST_GAP) for p, gap in ((p_shape, shape_gap), (p_skew, skew_gap))
        )
        if skew and not wrong and skew_gap > shape_gap:
            above = _percent(_mean((z > 0).astype(float), w))
            wrong.append(f"errors are skewed: {above} of {n:.6g} targets lie above the median")
        elif shape:
            shares = _shares(coverage, (0, -1))
            wrong.append(f"shape of the distributions wrong: {shares} {_rows(n)}")
    right = f"no contradiction: {_shares(coverage, (LEVELS.index(0.95),))} {_rows(n)}"
    return Check(
        contradicted=bool(wrong),
        message="; ".join(wrong) or right,
        p_value=float(min(1.0, _TESTS * min(p_bias, p_deviation, p_shape, p_skew))),
        n_rows=n,
        n_effective=1.0 / one_over_n,
        bias=bias,
        dispersion=deviation,
        levels=LEVELS,
        coverage=coverage,
        log_score=log_scores[0],
        expected_log_score=log_scores[1],
        pit=np.asarray(ndtr(z)),
    )


def _spread_sentence(deviation: float, coverage: tuple[float, ...], n: float, worst: float) -> str:
    level = LEVELS.index(0.95)
    if deviation < 1.0:
        level = int(np.argmax(np.subtract(coverage, LEVELS)))  # 95 % and 100 % look alike
        return f"intervals too wide: {_shares(coverage, (level,))} {_rows(n)}"
    if coverage[level] < 0.95 - 0.01:
        return f"intervals too narrow: {_shares(coverage, (level,))} {_rows(n)}"
    return (
        f"a few errors far too large, up to {worst:.3g} standard deviations, while "
        f"{_shares(coverage, (level,))} {_rows(n)}"
    )


def _shares(coverage: tuple[float, ...], which: tuple[int, ...]) -> str:
    parts = [f"{100 * LEVELS[k]:.3g} % intervals hold {_percent(coverage[k])}" for k in which]
    return " and ".join(parts)


def _percent(share: float) -> str:
    return f"{100 * share:.{0 if 0.02 < share < 0.98 else 1}f} %"


def _rows(n: float) -> str:
    return f"of {n:.6g} rows"


def _gap(u: Array, w: Array) -> float:
    """Largest distance between the weighted distribution of ``u`` and the uniform one."""
    order = np.argsort(u)
    upto = np.cumsum(w[order]) / w.sum()
    below = np.concatenate([[0.0], upto[:-1]])
    return float(max((upto - u[order]).max(), (u[order] - below).max()))


def _kolmogorov(gap: float, n: float) -> float:
    """Chance of a larger `_gap` among n rows, by the asymptotic law with Stephens' correction."""
    return float(kolmogorov((np.sqrt(n) + 0.12 + 0.11 / np.sqrt(n)) * gap))


def _expected_logpdf(dist: Distribution) -> Array:
    """``E log p(Y)`` (n,) for Y from p itself: minus the entropy."""
    if not dist.scale.trivial:
        draws = dist.sample(_DRAWS, rng=0)
        slopes = dist.scale.log_derivative(draws)
        return np.asarray(_expected_logpdf(dist.base) + np.mean(slopes, axis=1))
    if isinstance(dist, Normal):
        with np.errstate(divide="ignore"):
            return np.asarray(-0.5 * np.log(2 * np.pi * math.e) - np.log(dist.std))
    size = len(dist) * len(dist.weights)
    draws = dist.sample(int(np.clip(_DRAWN_NUMBERS // size, 2, _DRAWS)), rng=0)
    return np.mean([dist.logpdf(column) for column in draws.T], axis=0)


def _weights(weight: ArrayLike | None, z: Array) -> Array:
    w = np.ones(len(z)) if weight is None else np.asarray(weight, dtype=float)
    if w.shape != z.shape or not np.all(np.isfinite(w) & (w >= 0)):
        raise InputError(f"sample_weight {w.shape} must be >= 0 and finite, one per row {z.shape}")
    return w


def _mean(x: Array, w: Array) -> float:
    with np.errstate(invalid="ignore"):
        return float(np.sum(w[w > 0] * x[w > 0]) / w.sum())
