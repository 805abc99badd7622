"""Squared-exponential kernels and their hyperparameters by marginal likelihood."""

from dataclasses import dataclass, replace
from typing import Self, final

import numpy as np
from scipy.linalg import lapack
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from tensorlace_lab.systems.regressor import Array

__all__ = ["SquaredExponential", "likely", "log_likelihood", "most_likely"]

# where the logarithms of the hyperparameters may be
_LENGTHS, _SIGNALS, _NOISES = np.log([(1e-2, 1e3), (1e-4, 1e4), (1e-8, 1e1)])
_STARTS = (1e-1, 1e-3)  # noises from which a search begins
_SAME = 0.5  # by which the logarithms of two noises differ at most if their ends count as one


@final
@dataclass(frozen=True)
class SquaredExponential:
    """``k(x, z) = signal exp(-|(x - z) / lengths|^2 / 2)`` and the variance of the noise."""

    lengths: Array
    signal: float
    noise: float

    def __call__(self, X: Array, Z: Array) -> Array:
        """Covariances of the function at X (n, D) and Z (m, D), shape (n, m)."""
        distances = cdist(X / self.lengths, Z / self.lengths, "sqeuclidean")
        return np.asarray(self.signal * np.exp(-0.5 * distances))

    def stretched(self, factor: float) -> Self:
        """All lengths times a factor."""
        return replace(self, lengths=factor * self.lengths)


def likely(
    X: Array,
    y: Array,
    rng: np.random.Generator,
    max_rows: int,
    *,
    ard: bool = True,
    least_noise: float | None = None,
) -> list[SquaredExponential]:
    """Hyperparameters of great marginal likelihood on at most ``max_rows`` rows, likeliest first.

    One run of L-BFGS from each initial noise variance: from one start alone, small noise-free
    tables are often explained as noise. Ends of the same noise are one. With ``least_noise`` there
    is one more run, whose noise stays above it.
    """
    few = rng.permutation(len(X))[:max_rows]
    X, y = X[few], y[few]
    n_lengths = X.shape[1] if ard else 1
    free = [_LENGTHS] * n_lengths + [_SIGNALS, _NOISES]
    searches = [(noise, free) for noise in _STARTS]
    if least_noise is not None:
        searches.append((3 * least_noise, [*free[:-1], (np.log(least_noise), _NOISES[1])]))

    def negative(theta: Array) -> tuple[float, Array]:
        value, slope = log_likelihood(theta, X, y)
        return -value, -slope

    runs = [
        minimize(
            negative,
            np.append(np.zeros(n_lengths + 1), np.log(noise)),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
        )
        for noise, bounds in searches
    ]
    found: list[SquaredExponential] = []
    for run in sorted(runs, key=lambda run: run.fun):
        signal, noise = (float(v) for v in np.exp(run.x[-2:]))
        lengths = np.broadcast_to(np.exp(run.x[:-2]), X.shape[1]).copy()
        if all(abs(np.log(noise / other.noise)) > _SAME for other in found):
            found.append(SquaredExponential(lengths, signal, noise))
    return found


def most_likely(
    X: Array, y: Array, rng: np.random.Generator, max_rows: int, *, ard: bool = True
) -> SquaredExponential:
    """The first of `likely`."""
    return likely(X, y, rng, max_rows, ard=ard)[0]


def log_likelihood(theta: Array, X: Array, y: Array) -> tuple[float, Array]:
    """``log N(y | 0, K + noise I)`` and its gradient by theta = logs of lengths, signal, noise.

    One length is for all columns. ``dL = tr((a a^T - C^-1) dC) / 2`` with ``C a = y`` (Rasmussen &
    Williams, eq. 5.9); the sums over squared differences are taken without an (n, n, D) array.
    """
    lengths, signal, noise = np.exp(theta[:-2]), float(np.exp(theta[-2])), float(np.exp(theta[-1]))
    n = len(y)
    K = SquaredExponential(np.broadcast_to(lengths, X.shape[1]), signal, noise)(X, X)
    C = K.copy()
    C.flat[:: n + 1] += noise + 1e-10
    L, failed = lapack.dpotrf(C, lower=1, clean=1, overwrite_a=1)
    if failed:
        return -1e25, np.zeros_like(theta)
    a, _ = lapack.dpotrs(L, y, lower=1)
    value = -0.5 * float(y @ a) - float(np.log(np.diagonal(L)).sum()) - 0.5 * n * np.log(2 * np.pi)
    inverse, _ = lapack.dpotri(L, lower=1, overwrite_c=1)
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    by_noise = 0.5 * noise * (float(a @ a) - float(np.trace(inverse)))
    W = (np.outer(a, a) - inverse) * K
    # sum_ij W_ij (x_i - x_j)^2 = 2 sum_i x_i^2 w_i - 2 x^T W x, column by column
    squares = 2 * (X**2).T @ W.sum(axis=1) - 2 * np.sum(X * (W @ X), axis=0)
    by_length = 0.5 * squares / lengths**2
    by_length = by_length if len(lengths) == X.shape[1] else by_length.sum(keepdims=True)
    return value, np.concatenate([by_length, [0.5 * float(W.sum()), by_noise]])
