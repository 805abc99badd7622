"""Gaussian process regression: exact, and sparse where exact does not fit."""

from dataclasses import dataclass, replace
from typing import Any, Self, final

import numpy as np
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular
from sklearn.cluster import MiniBatchKMeans

from tensorlace.predictive.distributions import Normal
from tensorlace_lab.systems.parts.evidence import most_evident
from tensorlace_lab.systems.parts.kernel import SquaredExponential, most_likely
from tensorlace_lab.systems.regressor import Array, Baseline

__all__ = ["ExactGP", "ExactPosterior", "SparsePosterior"]

_BLOCK = 4096  # rows predicted at a time
_STRETCHES = (1.0, 1.5, 2.25)


@final
class ExactGP(Baseline):
    """Gaussian process, squared-exponential kernel with a length per column, Gaussian noise.

    Hyperparameters maximise the marginal likelihood on at most ``hyper_rows`` rows; with more, a
    common factor of signal and noise then maximises that of all. The posterior is exact up to
    ``exact_rows`` rows. Beyond, it is the sparse posterior of Titsias (2009) with ``n_inducing``
    k-means centres, and signal, noise and a common factor of the lengths maximise its bound over
    all rows.

    Parameters
    ----------
    hyper_rows, exact_rows, n_inducing : int
        See above.
    random_state : int, RandomState or None
        Which rows the hyperparameters see; the centres.

    Attributes
    ----------
    kernel_ : SquaredExponential
        For standardised data.

    Examples
    --------
    >>> X = np.linspace(-3, 3, 40)[:, None]
    >>> model = ExactGP(random_state=0).fit(X, np.sin(X[:, 0]))
    >>> bool(abs(model.predict([[1.0]])[0] - np.sin(1.0)) < 1e-3)
    True
    """

    def __init__(
        self,
        hyper_rows: int = 2000,
        exact_rows: int = 12_000,
        n_inducing: int = 512,
        random_state: Any = None,
    ) -> None:
        self.hyper_rows = hyper_rows
        self.exact_rows = exact_rows
        self.n_inducing = n_inducing
        self.random_state = random_state

    def _fit(self, X: Array, y: Array, rng: np.random.Generator) -> None:
        kernel = most_likely(X, y, rng, self.hyper_rows)
        self._posterior: ExactPosterior | SparsePosterior
        if len(X) <= self.exact_rows:
            self._posterior = ExactPosterior.of(kernel, X, y)
            if len(X) > self.hyper_rows:
                self._posterior = self._posterior.rescaled(y)
        else:
            seed = int(rng.integers(2**31 - 1))
            means = MiniBatchKMeans(self.n_inducing, random_state=seed, n_init=1, batch_size=4096)
            Z = means.fit(X).cluster_centers_
            fits = (SparsePosterior.of(kernel.stretched(f), Z, X, y) for f in _STRETCHES)
            self._posterior = max(fits, key=lambda fit: fit.bound)
        self.kernel_ = self._posterior.kernel

    def _predict(self, X: Array) -> Normal:
        parts = [self._posterior.moments(X[i : i + _BLOCK]) for i in range(0, len(X), _BLOCK)]
        mean, variance = (np.concatenate(part) for part in zip(*parts, strict=True))
        return Normal(mean, np.sqrt(variance), np.sqrt(self.kernel_.noise))


@final
@dataclass(frozen=True)
class ExactPosterior:
    """``K + noise I = L L^T`` and ``alpha = (K + noise I)^-1 y``."""

    kernel: SquaredExponential
    X: Array
    L: Array
    alpha: Array

    @classmethod
    def of(cls, kernel: SquaredExponential, X: Array, y: Array) -> Self:
        """Condition on all rows (Rasmussen & Williams, algorithm 2.1)."""
        K = kernel(X, X)
        K.flat[:: len(X) + 1] += kernel.noise + 1e-10
        factor = cho_factor(K, lower=True, overwrite_a=True, check_finite=False)
        return cls(kernel, X, factor[0], cho_solve(factor, y))

    def rescaled(self, y: Array) -> Self:
        """Signal and noise times the factor of greatest likelihood of all rows, ``y^T alpha / n``.

        At hyperparameters that were found on these rows it is one. Found on fewer, they can be far
        too sure: few rows of many columns are explained without noise.
        """
        factor = float(y @ self.alpha) / len(y)
        kernel = replace(
            self.kernel, signal=factor * self.kernel.signal, noise=factor * self.kernel.noise
        )
        return replace(self, kernel=kernel, L=np.sqrt(factor) * self.L, alpha=self.alpha / factor)

    def moments(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance of the function at X (n, D), each (n,)."""
        k = self.kernel(self.X, X)
        v = solve_triangular(self.L, k, lower=True, check_finite=False)
        return k.T @ self.alpha, np.maximum(self.kernel.signal - np.sum(v * v, axis=0), 0.0)


@final
@dataclass(frozen=True)
class SparsePosterior:
    """Variational posterior at inducing points Z (M, D) and its bound on ``log p(y)``.

    With ``K_ZZ = L L^T``, ``A = L^-1 K_ZX`` of unit signal and ``A A^T = U diag(lam) U^T``, bound
    and posterior for every signal s and noise v follow without touching the rows again.
    """

    kernel: SquaredExponential
    Z: Array
    L: Array
    U: Array
    lam: Array
    weights: Array
    bound: float

    @classmethod
    def of(cls, kernel: SquaredExponential, Z: Array, X: Array, y: Array) -> Self:
        """Condition on all rows; signal and noise maximise the bound, starting from ``kernel``."""
        unit = SquaredExponential(kernel.lengths, 1.0, 0.0)
        L = cholesky(unit(Z, Z) + 1e-8 * np.eye(len(Z)), lower=True)
        B, c = np.zeros((len(Z), len(Z))), np.zeros(len(Z))
        for i in range(0, len(X), _BLOCK):
            A = solve_triangular(L, unit(Z, X[i : i + _BLOCK]), lower=True, check_finite=False)
            B += A @ A.T
            c += A @ y[i : i + _BLOCK]
        lam, U = np.linalg.eigh(B)
        lam, c = np.maximum(lam, 0.0), U.T @ c
        start, rest = (kernel.signal, max(kernel.noise, 1e-6)), len(X) - lam.sum()
        s, v, bound = most_evident(lam, c, float(y @ y), len(X), start, trace=rest)
        fitted = SquaredExponential(kernel.lengths, s, v)
        return cls(fitted, Z, L, U, lam, s * c / (v + s * lam), bound)

    def moments(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance of the function at X (n, D), each (n,)."""
        s, v = self.kernel.signal, self.kernel.noise
        k = SquaredExponential(self.kernel.lengths, 1.0, 0.0)(self.Z, X)
        a = solve_triangular(self.L, k, lower=True, check_finite=False)
        u = self.U.T @ a
        inside = np.sum(u * u * (s * v / (v + s * self.lam))[:, None], axis=0)
        outside = s * np.maximum(1.0 - np.sum(a * a, axis=0), 0.0)
        return u.T @ self.weights, inside + outside
