"""Predictive distributions: one object carries mean, spread, quantiles, density and scores."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from tensorlace.errors import InputError
from tensorlace.scales import IDENTITY, Scale

__all__ = ["Distribution", "Mixture", "Normal", "Samples"]
Array = NDArray[np.float64]


@dataclass(frozen=True, init=False, eq=False, slots=True)
class Distribution(ABC):
    """Predictive distributions of n rows: ``sum_m w_m N(mu_m, s_m^2)``, mu (M, n).

    Weights are (M,), or (M, n) if they differ by row. ``s_m^2 = e_m^2 + a_m^2``, epistemic plus
    aleatoric, may be 0. A ``y`` is a scalar or (n,).
    """

    means: Array
    epistemic_stds: Array
    aleatoric_stds: Array
    weights: Array

    @abstractmethod
    def __init__(self, means: ArrayLike, e: ArrayLike, a: ArrayLike, weights: ArrayLike) -> None:
        mu, e, a, w = (np.asarray(x, dtype=float) for x in (means, e, a, weights))
        if mu.ndim != 2 or w.shape not in (mu.shape[:1], mu.shape):
            raise InputError(f"need means (M, n) and weights (M,), got {mu.shape} and {w.shape}")
        total = w.sum(axis=0)
        positive = w > 0 if w.ndim == 1 else (w > 0).any(axis=1)
        keep = slice(None) if positive.all() else positive
        off = np.abs(total - 1).max(initial=0.0)
        if (w < 0).any() or not off <= 1e-12:
            raise InputError(f"{len(w)} weights must be >= 0 and sum to 1; they sum to {total}")
        for name, x in ("means", mu), ("epistemic_stds", e), ("aleatoric_stds", a):
            if x.shape not in ((), mu.shape):
                raise InputError(f"{name} has shape {x.shape}; give {mu.shape} or a scalar")
            if bad := np.count_nonzero(~np.isfinite(x) | ((x < 0) & (name != "means"))):
                raise InputError(f"{name} has {bad} of {x.size} values not finite or negative")
            object.__setattr__(self, name, np.broadcast_to(x, mu.shape)[keep])
        rounded = off <= len(w) * np.finfo(float).eps
        object.__setattr__(self, "weights", w[keep] if rounded else w[keep] / total)

    @property
    def scale(self) -> Scale:
        """Map from ``base`` to y."""
        return IDENTITY

    @property
    def base(self) -> "Distribution":
        """The mixture of normals behind it: itself, but for a `Transformed`."""
        return self

    @property
    def _w(self) -> Array:
        """Weights, shape (M, 1) or (M, n)."""
        return _by_row(self.weights)

    @property
    def mean(self) -> Array:
        """Mean, shape (n,)."""
        return np.asarray(sum(self._w * self.means))  # in the same order always

    @property
    def epistemic_std(self) -> Array:
        """Standard deviation from not knowing the function, shape (n,): spread of mu, and e."""
        return np.hypot(self._rms(self.means - self.mean), self._rms(self.epistemic_stds))

    @property
    def aleatoric_std(self) -> Array:
        """Standard deviation of the noise, shape (n,)."""
        return self._rms(self.aleatoric_stds)

    @property
    def std(self) -> Array:
        """Total standard deviation, shape (n,): the two variances add."""
        epistemic = np.hypot(self._rms(self.means - self.mean), self._rms(self.epistemic_stds))
        return np.hypot(epistemic, self._rms(self.aleatoric_stds))

    def _rms(self, x: Array) -> Array:
        return np.asarray(np.hypot.reduce(np.sqrt(self._w) * x))  # never overflows

    def quantile(self, q: ArrayLike) -> Array:
        """Smallest value with ``cdf >= q``: shape (n,), or (n, k) for q of shape (k,)."""
        p = np.asarray(q, dtype=float)
        if p.ndim > 1 or not np.all((p >= 0) & (p <= 1)):
            raise InputError(f"q must be a number or a vector within [0, 1], got {q!r}")
        return self._quantile(p.ravel()).reshape(len(self), *p.shape)

    def _quantile(self, q: Array) -> Array:
        x = np.stack([self._by_rows(_solve, p) for p in np.sort(q)], axis=1)
        return np.maximum.accumulate(x, axis=1)[:, np.argsort(np.argsort(q))]

    def interval(self, coverage: float = 0.95) -> tuple[Array, Array]:
        """Lower and upper end, each (n,), of the central interval with that coverage."""
        if not 0 < coverage < 1:
            raise InputError(f"coverage must be within (0, 1), got {coverage}")
        return self.quantile((1 - coverage) / 2), self.quantile((1 + coverage) / 2)

    def logpdf(self, y: ArrayLike) -> Array:
        """``log sum_m w_m phi((y - mu_m) / s_m) / s_m``, shape (n,)."""
        return self._by_rows(_logpdf, y)

    def pdf(self, y: ArrayLike) -> Array:
        """``exp(logpdf(y))``, shape (n,)."""
        with np.errstate(over="ignore"):
            return np.exp(self.logpdf(y))

    def cdf(self, y: ArrayLike) -> Array:
        """``sum_m w_m Phi((y - mu_m) / s_m)``, shape (n,)."""
        return self._by_rows(lambda y, w, mu, s: sum(w * scipy.special.ndtr(_z(y - mu, s))), y)

    def cdf_below(self, y: ArrayLike) -> Array:
        """``P(Y < y)``, shape (n,): the cdf but for a probability of y itself."""
        point = (self.means == y) & (self.epistemic_stds == 0) & (self.aleatoric_stds == 0)
        return np.asarray(self.cdf(y) - (self._w * point).sum(axis=0))

    def crps(self, y: ArrayLike) -> Array:
        """Continuous ranked probability score ``E|Y - y| - E|Y - Y'| / 2``, shape (n,)."""
        return self._by_rows(_crps, y)

    def sample(self, n_samples: int = 1, rng: int | np.random.Generator | None = None) -> Array:
        """Draws of y, noise included, independent between rows, shape (n, n_samples)."""
        rng, size = np.random.default_rng(rng), (len(self), n_samples)
        if self.weights.ndim == 1:
            member = rng.choice(len(self.weights), size, p=self.weights)
        else:
            edges = np.cumsum(self.weights[:-1], axis=0)[:, :, None]
            member = (rng.random(size) >= edges).sum(axis=0)
        at = member, np.arange(len(self))[:, None]
        s = np.hypot(self.epistemic_stds[at], self.aleatoric_stds[at])
        return self.means[at] + s * rng.standard_normal(size)

    def affine(self, scale: float, shift: float = 0.0) -> Self:
        """Distribution of ``shift + scale * Y`` for a scale > 0."""
        if not (0 < scale < np.inf and np.isfinite(shift)):
            raise InputError(f"need a finite shift and scale > 0, got {shift=} and {scale=}")
        return self._map(lambda x: scale * x, shift)

    def __getitem__(self, rows: slice | Sequence[int] | NDArray[Any]) -> Self:
        """Distributions of the chosen rows: a slice, a mask or a list of row numbers."""
        return self._map(lambda x: x[:, rows], rows=rows)

    def __len__(self) -> int:
        return len(self.means[0])

    def _map(self, f: Callable[[Array], Array], shift: float = 0.0, rows: Any = None) -> Self:
        new, e, a = object.__new__(type(self)), f(self.epistemic_stds), f(self.aleatoric_stds)
        by_row = self.weights.ndim == 2 and rows is not None
        w = self.weights[:, rows] if by_row else self.weights
        Distribution.__init__(new, shift + f(self.means), e, a, w)
        return new

    def _by_rows(self, f: Callable[[Array, Array, Array, Array], Array], y: ArrayLike) -> Array:
        out, target = np.empty(len(self)), np.asarray(y, dtype=float)
        if target.shape not in ((), out.shape):
            raise InputError(f"y has shape {target.shape}, the distribution has {len(self)} rows")
        target, step = np.broadcast_to(target, out.shape), max(1, 2**18 // len(self.weights))
        for b in (np.s_[..., i : i + step] for i in range(0, len(self), step)):  # bounds memory
            with np.errstate(all="ignore"):
                mu, s = self.means[b], np.hypot(self.epistemic_stds[b], self.aleatoric_stds[b])
                out[b] = f(target[b], self._w if self.weights.ndim == 1 else self._w[b], mu, s)
        return out


@final
@dataclass(frozen=True, init=False, eq=False, slots=True)
class Normal(Distribution):
    """``N(mean, epistemic_std^2 + aleatoric_std^2)``: mean (n,), each std (n,) or a scalar.

    >>> Normal([0.0, 1.0], epistemic_std=0.3, aleatoric_std=0.4).affine(2.0, shift=1.0).std
    array([1., 1.])
    """

    def __init__(self, mean: ArrayLike, epistemic_std: ArrayLike, aleatoric_std: ArrayLike) -> None:
        m, e, a = (np.array([x] if np.ndim(x) else x) for x in (mean, epistemic_std, aleatoric_std))
        Distribution.__init__(self, m, e, a, [1.0])


@final
@dataclass(frozen=True, eq=False, slots=True)
class Mixture(Distribution):
    """Gaussian mixture of M posterior draws or ensemble members; a std may be a scalar.

    >>> Mixture([[0.0], [2.0]], 0.0, 1.0, weights=[0.5, 0.5]).epistemic_std
    array([1.])
    """

    def __post_init__(self) -> None:
        e, a = self.epistemic_stds, self.aleatoric_stds
        Distribution.__init__(self, self.means, e, a, self.weights)

    @classmethod
    def of(cls, distributions: Sequence[Distribution], weights: ArrayLike | None = None) -> Self:
        """Mixture of Normals and Mixtures of the same rows, weights (M,) or (M, n)."""
        ds, kinds = distributions, [f"{type(d).__name__} of {len(d)} rows" for d in distributions]
        w = np.full(len(ds), 1 / max(len(ds), 1)) if weights is None else np.asarray(weights)
        n = len(ds[0]) if ds else 0
        right = w.shape in ((len(ds),), (len(ds), n))
        other = Samples in map(type, ds) or not all(d.scale.trivial for d in ds)
        if len(set(map(len, ds))) != 1 or not right or other:
            raise InputError(f"need Normals or Mixtures of equal length, got {kinds}, {w.shape}")
        mu, e, a = (np.concatenate([getattr(d, k) for d in ds]) for k in Distribution.__slots__[:3])
        by_row = w.ndim == 2 or any(d.weights.ndim == 2 for d in ds)
        parts = [
            v * (_by_row(d.weights) if by_row else d.weights) for v, d in zip(w, ds, strict=True)
        ]
        if by_row:
            parts = [
                np.broadcast_to(part, d.means.shape) for part, d in zip(parts, ds, strict=True)
            ]
        return cls(mu, e, a, np.concatenate(parts))


@final
@dataclass(frozen=True, init=False, eq=False, slots=True)
class Samples(Distribution):
    """Draws of y, values (S, n), and nothing else known. Quantiles are linear percentiles.

    >>> Samples([[1.0], [2.0], [4.0]]).quantile(0.75)
    array([3.])
    """

    def __init__(self, values: ArrayLike) -> None:
        v = np.asarray(values, dtype=float)
        Distribution.__init__(self, v, 0.0, 0.0, np.full(v.shape[:1], 1 / max(1, *v.shape[:1])))

    def _unknown(self, y: ArrayLike = 0.0) -> Array:
        raise InputError("Samples hold draws only, no density or noise part: use crps or a Mixture")

    values = property(lambda self: self.means)
    logpdf = _unknown
    epistemic_std = aleatoric_std = property(_unknown)

    def _quantile(self, q: Array) -> Array:
        return np.quantile(self.means, q, axis=0).T

    def cdf(self, y: ArrayLike) -> Array:
        """Share of draws below y, plus half the share equal to y (mid-rank), shape (n,)."""
        return self._by_rows(lambda y, _w, v, _s: ((v < y).mean(0) + (v <= y).mean(0)) / 2, y)


def _z(d: Array, s: Array) -> Array:
    return np.where((s == 0) & (d == 0), np.inf, d / s)  # s = 0: the cdf steps to 1 at d = 0


def _logpdf(y: Array, w: Array, mu: Array, s: Array) -> Array:
    log_phi = np.where(s > 0, -0.5 * _z(y - mu, s) ** 2 - np.log(s), np.inf * (2 * (y == mu) - 1))
    return np.asarray(scipy.special.logsumexp(log_phi - 0.5 * np.log(2 * np.pi), axis=0, b=w))


def _mean_abs(d: Array, s: Array) -> Array:
    z = _z(d, s)
    return np.asarray(
        d * scipy.special.erf(z / np.sqrt(2)) + s * np.sqrt(2 / np.pi) * np.exp(-0.5 * z * z)
    )


def _crps(y: Array, w: Array, mu: Array, s: Array) -> Array:
    """Evaluate the form of Grimit et al. 2006; point masses by sorting, in positive terms."""
    if not s.any():
        d, order = mu - y, np.argsort(mu, axis=0)
        d, v = (np.take_along_axis(x, order, axis=0) for x in (d, np.broadcast_to(w, mu.shape)))
        return np.asarray(2 * (v * d * ((d > 0) - np.cumsum(v, axis=0) + v / 2)).sum(axis=0))
    crps = np.asarray(sum(w * (_mean_abs(y - mu, s) - w * s / np.sqrt(np.pi))))  # pairs (m, m)
    for m in range(1, len(w)):
        crps -= w[m] * sum(w[:m] * _mean_abs(mu[m] - mu[:m], np.hypot(s[m], s[:m])))
    return crps


def _by_row(weights: Array) -> Array:
    """Weights (M,) or (M, n) as (M, 1) or (M, n)."""
    return weights[:, None] if weights.ndim == 1 else weights


def _solve(q: Array, w: Array, mu: Array, s: Array) -> Array:
    """Quantile by Newton on ``Phi^-1(cdf(x)) = Phi^-1(q)`` in a bracket, else by bisection."""
    sign = np.where(q > 0.5, -1.0, 1.0)  # the smaller tail keeps its digits
    z = scipy.special.ndtri(q)
    own = np.where(s > 0, mu + s * z, mu)  # the quantile of each component
    low = np.where(s > 0, own, np.nextafter(mu, -np.inf)).min(axis=0)  # just below a point mass
    high, x, last = own.max(axis=0), np.asarray(sum(w * own)), np.full(q.shape, np.inf)
    while np.any((np.nextafter(low, high) < high) & np.isfinite(high / 2 - low / 2)):
        t = _z(x - mu, s)
        h = sign * scipy.special.ndtri(np.minimum(sum(w * scipy.special.ndtr(sign * t)), 1.0))
        low, high, gap = np.where(h < z, x, low), np.where(h < z, high, x), abs(h - z)
        slope = sum(w * np.where(s > 0, np.exp(-0.5 * t * t) / s, 0.0))
        new = x - (h - z) * np.exp(-0.5 * h * h) / slope
        close = np.where(abs(new - x) <= np.spacing(abs(x)), 1e-8, 2e-15 * (1 + abs(z)))
        found, newton = (gap < close) & (slope > 0), (low < new) & (new < high) & (2 * gap <= last)
        low, high, last = np.where(found, x, low), np.where(found, x, high), gap
        x = np.where(newton & ~found, new, low / 2 + high / 2)
    return np.asarray(np.where(q > 0, high, own.min(axis=0)))
