"""Squared-exponential kernels and their hyperparameters by marginal likelihood."""

import warnings
from dataclasses import dataclass, replace
from typing import Self, final

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from tensorlace.baselines.regressor import Array

__all__ = ["SquaredExponential", "most_likely"]

_LENGTHS, _SIGNALS, _NOISES = (1e-2, 1e3), (1e-4, 1e4), (1e-8, 1e1)


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


def most_likely(
    X: Array,
    y: Array,
    rng: np.random.Generator,
    max_rows: int,
    noises: tuple[float, ...] = (1e-1, 1e-3),
    ard: bool = True,
) -> SquaredExponential:
    """Hyperparameters of greatest marginal likelihood on at most ``max_rows`` rows of X, y.

    One run of L-BFGS from each initial noise variance: from one start alone, small noise-free
    tables are often explained as noise.
    """
    few = rng.permutation(len(X))[:max_rows]
    start = np.ones(X.shape[1] if ard else 1)
    runs = []
    for noise in noises:
        kernel = ConstantKernel(1.0, _SIGNALS) * RBF(start, _LENGTHS) + WhiteKernel(noise, _NOISES)
        gp = GaussianProcessRegressor(kernel, alpha=1e-10)
        with warnings.catch_warnings():
            # lengths of columns that do not matter run to their bound: that is what ARD is for
            warnings.simplefilter("ignore", ConvergenceWarning)
            runs.append(gp.fit(X[few], y[few]))
    best = max(runs, key=lambda gp: gp.log_marginal_likelihood_value_).kernel_
    return SquaredExponential(
        np.broadcast_to(best.k1.k2.length_scale, X.shape[1]).astype(float),
        float(best.k1.k1.constant_value),
        float(best.k2.noise_level),
    )
