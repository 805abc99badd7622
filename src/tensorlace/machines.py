"""A fitted kernel machine: from raw rows to predictive distributions (paper, section 3.3)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np

from tensorlace.bases.basis import Array
from tensorlace.columns import Columns
from tensorlace.inference import Fitted
from tensorlace.networks import Cores, from_vector, jacobian, predict, to_vector
from tensorlace.predictive import Mixture, Normal
from tensorlace.warps import Standardise

__all__ = ["KernelMachine"]

_BATCH_NUMBERS = 1 << 22
"""Numbers in the largest intermediate array of a prediction."""


@final
@dataclass(frozen=True)
class KernelMachine:
    """Columns, target scale and a fitted network.

    Everything inside is in units of the standardised target; distributions are brought back to the
    units of y once, on the distribution object.
    """

    columns: Columns
    target: Standardise
    fit: Fitted

    def mean(self, X: Array) -> Array:
        """Predictive mean (n,). Builds no Jacobian."""
        parts = [predict(self.fit.cores, phi) for phi in self._batches(X)]
        return self.target.inverse(np.concatenate(parts))

    def linearized(self, X: Array) -> Normal:
        """LLA, eq. (pd_linearized_la): ``N(f, gᵀΣg + 1/β)`` in closed form."""
        mean, variance = [], []
        for phi in self._batches(X):
            mean.append(predict(self.fit.cores, phi))
            G = jacobian(self.fit.cores, phi, self.fit.bayesian_cores)
            variance.append(self.fit.posterior.quad(G))
        std = np.sqrt(np.concatenate(variance))
        standard = Normal(np.concatenate(mean), std, np.full(std.shape, self.noise_std))
        return standard.affine(self.target.scale, self.target.location)

    def sampled(self, X: Array, n_draws: int, rng: np.random.Generator) -> Mixture:
        """LA, eq. (pd_la): an equal mixture over posterior draws of the network."""
        means = self.functions(X, n_draws, rng, linearized=False).T
        zero, noise = np.zeros_like(means), np.full(means.shape, self.noise_std)
        standard = Mixture(means, zero, noise, np.full(n_draws, 1.0 / n_draws))
        return standard.affine(self.target.scale, self.target.location)

    def functions(
        self, X: Array, n_draws: int, rng: np.random.Generator, linearized: bool
    ) -> Array:
        """Joint draws of the latent function (n, n_draws), in units of the standardised target."""
        deviation = self.fit.posterior.sample(rng, n_draws)
        parts = []
        for phi in self._batches(X):
            if linearized:  # eq. (linear_f)
                G = jacobian(self.fit.cores, phi, self.fit.bayesian_cores)
                parts.append(predict(self.fit.cores, phi)[:, None] + G.T @ deviation)
            else:
                parts.append(np.stack([predict(self._moved(d), phi) for d in deviation.T], axis=1))
        return np.concatenate(parts)

    @property
    def noise_std(self) -> float:
        """Noise standard deviation in units of the standardised target."""
        return float(1.0 / np.sqrt(self.fit.beta))

    def _moved(self, deviation: Array) -> Cores:
        cores = list(self.fit.cores)
        bayesian = tuple(cores[d] for d in self.fit.bayesian_cores)
        moved = from_vector(to_vector(bayesian) + deviation, bayesian)
        for d, V in zip(self.fit.bayesian_cores, moved, strict=True):
            cores[d] = V
        return tuple(cores)

    def _batches(self, X: Array) -> Iterator[list[Array]]:
        """Features of a bounded number of rows at a time."""
        width = max(sum(V.size for V in self.fit.cores), 1)
        rows = max(64, _BATCH_NUMBERS // width)
        for start in range(0, len(X), rows):
            u = self.columns.variables(X[start : start + rows])
            yield [c.basis.phi(x) for c, x in zip(self.columns.columns, u, strict=True)]
