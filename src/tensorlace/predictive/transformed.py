"""Predictive distributions of a target that is seen through a scale, such as one with bounds."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self, final

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from tensorlace.errors import InputError
from tensorlace.predictive.distributions import Distribution, Mixture
from tensorlace.predictive.integrals import NODES, panels, squared_tail
from tensorlace.scales.scale import REACH, Scale

__all__ = ["Transformed", "seen_through"]
Array = NDArray[np.float64]


@final
@dataclass(frozen=True, init=False, eq=False, slots=True)
class Transformed(Distribution):
    """Distributions of ``Y = scale.forward(U)`` for n rows, U a mixture of normals.

    ``means``, ``epistemic_stds``, ``aleatoric_stds`` and ``weights`` are those of U, the ``base``.
    Mean and standard deviation are those of Y. Its variance is shared out between not knowing the
    function and noise as that of U is, so the squares of both parts add up to it.

    >>> from tensorlace import Normal
    >>> from tensorlace.scales.clip import Clip
    >>> dist = Transformed(Normal([1.0, 50.0], 0.6, 0.8), Clip(low=0.0))
    >>> dist.interval(0.95)[0].round(3), dist.mean.round(3)
    (array([ 0.  , 48.04]), array([ 1.083, 50.   ]))
    """

    base: Distribution
    scale: Scale

    def __init__(self, base: Distribution, scale: Scale) -> None:
        if base.scale.trivial is False:
            raise InputError(f"a distribution on the scale {base.scale.name!r} has one already")
        object.__setattr__(self, "base", base)
        object.__setattr__(self, "scale", scale)
        for name in Distribution.__slots__:
            object.__setattr__(self, name, getattr(base, name))

    @property
    def mean(self) -> Array:
        """Mean, shape (n,)."""
        return self._moments()[0]

    @property
    def std(self) -> Array:
        """Standard deviation, shape (n,)."""
        return self._moments()[1]

    @property
    def epistemic_std(self) -> Array:
        """Part of the standard deviation that comes from not knowing the function, shape (n,)."""
        return self.base.epistemic_std * self._ratio()

    @property
    def aleatoric_std(self) -> Array:
        """Part of the standard deviation that comes from the noise, shape (n,)."""
        return self.base.aleatoric_std * self._ratio()

    def _stds(self) -> Array:
        """Standard deviations (M, n) of the normals of U."""
        return np.hypot(self.epistemic_stds, self.aleatoric_stds)

    def _changed(self) -> NDArray[np.bool_]:
        """Rows (n,) where Y is not U."""
        return np.asarray(~np.all(self.scale.straight(self.means, self._stds()), axis=0))

    def _moments(self) -> tuple[Array, Array]:
        """Mean and standard deviation (n,); those of U where Y is U."""
        mean, std, rows = np.array(self.base.mean), np.array(self.base.std), self._changed()
        if rows.any():
            w = self.weights[:, rows] if self.weights.ndim == 2 else self.weights[:, None]
            means, stds = self.scale.moments(self.means[:, rows], self._stds()[:, rows])
            middle = np.clip(np.sum(w * means, axis=0), self.scale.low, self.scale.high)
            away = np.hypot.reduce(np.sqrt(w) * (means - middle))
            mean[rows], std[rows] = middle, np.hypot(away, np.hypot.reduce(np.sqrt(w) * stds))
        return mean, std

    def _ratio(self) -> Array:
        """Standard deviation of Y in units of that of U, shape (n,)."""
        std, own = self._moments()[1], self.base.std
        return np.divide(std, own, out=np.ones_like(std), where=own > 0)

    def quantile(self, q: ArrayLike) -> Array:
        """Smallest value with ``cdf >= q``: shape (n,), or (n, k) for q of shape (k,)."""
        return self.scale.forward(self.base.quantile(q))

    def logpdf(self, y: ArrayLike) -> Array:
        """Log density (n,); where values pile up on a bound, or beyond it, that of U."""
        target = np.asarray(y, dtype=float)
        slope = self.scale.log_derivative(target)
        return np.asarray(self.base.logpdf(self.scale.inverse(target)) + slope)

    def cdf(self, y: ArrayLike) -> Array:
        """``P(Y <= y)``, shape (n,)."""
        target = np.asarray(y, dtype=float)
        inside = self.base.cdf(self.scale.inverse(target))
        inside = np.where(target < self.scale.low, 0.0, inside)
        return np.where(target >= self.scale.high, 1.0, inside)

    def cdf_below(self, y: ArrayLike) -> Array:
        """``P(Y < y)``, shape (n,)."""
        target = np.asarray(y, dtype=float)
        inside = self.base.cdf_below(self.scale.inverse(target))
        inside = np.where(target <= self.scale.low, 0.0, inside)
        return np.where(target > self.scale.high, 1.0, inside)

    def crps(self, y: ArrayLike) -> Array:
        """Continuous ranked probability score, shape (n,).

        To a millionth of it: that of U less what is beyond the bounds, where Y is U between them,
        and else by integration.
        """
        low, high = self.scale.low, self.scale.high
        if not self.scale.plain:
            return self._by_rows(self._integrated, y)
        target = np.broadcast_to(np.asarray(y, dtype=float), (len(self),))
        nearest = np.clip(target, low, high)
        score = np.array(self.base.crps(nearest))
        rows = np.flatnonzero(self._changed())
        if rows.size:
            few = self.base[rows]
            s = np.hypot(few.epistemic_stds, few.aleatoric_stds)
            # what is far beyond a bound may as well be a little less far
            means = np.clip(few.means, low - REACH * s, high + REACH * s)
            near = Mixture(means, few.epistemic_stds, few.aleatoric_stds, few.weights)
            score[rows] = near.crps(nearest[rows])
            score[rows] -= squared_tail(low - means, s, few.weights)
            score[rows] -= squared_tail(means - high, s, few.weights)
        return np.asarray(score + np.abs(target - nearest))

    def _integrated(self, y: Array, w: Array, mu: Array, s: Array) -> Array:
        """Score (n,) by integration."""
        u = np.asarray(self.scale.inverse(y))
        ends = (mu - REACH * s).min(axis=0), (mu + REACH * s).max(axis=0)
        top = self.scale.inverse(np.array(self.scale.high))
        edges = np.minimum(panels(mu, s, np.clip(u, *ends)), top)
        low, high = (self.scale.forward(edges[k]) for k in (0, -1))
        total = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
        for a, b in pairwise(edges):
            for share, at in zip(*NODES, strict=True):
                t = a + (b - a) * at
                F = np.sum(w * scipy.special.ndtr((t - mu) / s), axis=0)
                here = self.scale.forward(t)
                slope = np.exp(-self.scale.log_derivative(here)) * (here < self.scale.high)
                total += share * (b - a) * slope * (F - (t >= u)) ** 2
        return total

    def sample(self, n_samples: int = 1, rng: int | np.random.Generator | None = None) -> Array:
        """Draws of y, noise included, independent between rows, shape (n, n_samples)."""
        return self.scale.forward(self.base.sample(n_samples, rng))

    def affine(self, scale: float, shift: float = 0.0) -> Self:
        """Distribution of ``shift + scale * Y`` for a scale > 0."""
        return type(self)(self.base.affine(scale, shift), self.scale.moved(scale, shift))

    def __getitem__(self, rows: slice | Sequence[int] | NDArray[Any]) -> Self:
        """Distributions of the chosen rows: a slice, a mask or a list of row numbers."""
        return type(self)(self.base[rows], self.scale)


def seen_through(base: Distribution, scale: Scale) -> Distribution:
    """What ``base`` says of u as a distribution of y; itself on a scale that changes nothing."""
    return base if scale.trivial else Transformed(base, scale)
