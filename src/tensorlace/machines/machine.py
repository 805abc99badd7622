"""A fitted kernel machine: from raw rows to predictive distributions (paper, section 3.3)."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from tensorlace._types import Array
from tensorlace.columns.columns import Columns
from tensorlace.columns.warps import Standardise
from tensorlace.laplace.posterior import Blocks, Root
from tensorlace.linalg.blas_threads import one_blas_thread
from tensorlace.machines.core_variance import CoreVariance
from tensorlace.machines.fitted import Fitted
from tensorlace.machines.unseen_values import (
    extra_response,
    extra_variance,
    novel_values,
    padded_cores,
    prior_variances,
)
from tensorlace.networks.cpd import (
    Cores,
    additive_response,
    environments,
    factors,
    from_vector,
    jacobian,
    predict,
    to_vector,
)
from tensorlace.networks.engine import NUMPY, Engine, Network
from tensorlace.predictive.distributions import Mixture, Normal

__all__ = ["KernelMachine"]

_BATCH_NUMBERS = 1 << 22
"""Numbers in the largest intermediate array of a prediction."""

_BATCH_ROWS = 1 << 12
"""Most rows of a batch: enough to make calls cheap, few enough to stay near a core."""


@final
@dataclass(frozen=True)
class KernelMachine:
    """Columns, target scale and a fitted network: eq. (y_model).

    Everything inside is in units of the standardised target; distributions are brought back to the
    units of y once, on the distribution object. Batches of rows are worked on by ``threads``; no
    bit depends on their number.

    Attributes
    ----------
    columns : Columns
    target : Standardise
    fit : Fitted
    unseen : tuple of arrays or None
        Prior variances of one more function of each column, see `novelty`; None: those of ``fit``.
    n_pruned : int
        Weights that the evidence switched off, and that are gone.
    """

    columns: Columns
    target: Standardise
    fit: Fitted
    unseen: tuple[Array, ...] | None = None
    n_pruned: int = 0

    def mean(self, X: Array, threads: int = 1, engine: Engine = NUMPY) -> Array:
        """Predictive mean (n,). Builds no Jacobian."""
        network = engine.network(self.columns, self.fit.cores)

        def work(rows: Array) -> Array:
            f = None if network is None else network.response(rows)
            return self._response(self.columns.variables(rows)) if f is None else f

        return self.target.inverse(np.concatenate(self._map(work, X, threads)))

    def linearized(self, X: Array, threads: int = 1, engine: Engine = NUMPY) -> Normal:
        """LLA, eq. (pd_linearized_la): ``N(f, gᵀΣg + 1/β)`` in closed form."""
        network = engine.network(self.columns, self.fit.cores)
        moments = self._moments if self._core_variances is None else self._moments_by_core

        def work(rows: Array) -> tuple[Array, Array]:
            quick = None if network is None else self._moments_by_network(network, rows)
            if quick is not None:
                return quick
            u = self.columns.variables(rows)
            mean, variance = moments(u)
            novel = novel_values(self.columns, u)
            new = np.flatnonzero(novel.any(axis=0))
            if new.size:
                few = self._features(u[:, new]), novel[:, new]
                variance[new] += extra_variance(self.fit.cores, *few, self.unseen_variances)
            return mean, variance

        parts = self._map(work, X, threads)
        mean = np.concatenate([mean for mean, _ in parts])
        std = np.sqrt(np.concatenate([variance for _, variance in parts]))
        standard = Normal(mean, std, np.full(std.shape, self.noise_std))
        return standard.affine(self.target.scale, self.target.location)

    def sampled(
        self, X: Array, n_draws: int, rng: np.random.Generator, threads: int = 1
    ) -> Mixture:
        """LA, eq. (pd_la): an equal mixture over posterior draws of the network."""
        means = self.functions(X, n_draws, rng, linearized=False, threads=threads).T
        zero, noise = np.zeros_like(means), np.full(means.shape, self.noise_std)
        standard = Mixture(means, zero, noise, np.full(n_draws, 1.0 / n_draws))
        return standard.affine(self.target.scale, self.target.location)

    def functions(
        self, X: Array, n_draws: int, rng: np.random.Generator, linearized: bool, threads: int = 1
    ) -> Array:
        """Joint draws of the latent function (n, n_draws), in units of the standardised target."""
        deviation = self.fit.posterior.sample(rng, n_draws)
        side = rng.spawn(1)[0]  # so that other draws do not depend on these
        unseen = [
            np.sqrt(v)[:, None] * side.standard_normal((v.size, n_draws))
            for v in self.unseen_variances
        ]

        def work(rows: Array) -> Array:
            u = self.columns.variables(rows)
            phi, novel = self._features(u), novel_values(self.columns, u)
            if linearized:  # eq. (linear_f)
                G = jacobian(self.fit.cores, phi, self.fit.bayesian_cores)
                f: Array = predict(self.fit.cores, phi)[:, None] + G.T @ deviation
                return f + extra_response(self.fit.cores, phi, novel, unseen) if novel.any() else f
            moved = [self._moved(d) for d in deviation.T]
            if novel.any():
                phi = [np.vstack([p, mask]) for p, mask in zip(phi, novel, strict=True)]
                moved = [padded_cores(cores, unseen, k) for k, cores in enumerate(moved)]
            draws = [predict(cores, phi) for cores in moved]
            return np.stack(draws, axis=1) if draws else np.empty((u.shape[1], 0))

        return np.concatenate(self._map(work, X, threads))

    @property
    def noise_std(self) -> float:
        """Noise standard deviation, eq. (cond_model), in units of the standardised target."""
        return float(1.0 / np.sqrt(self.fit.beta))

    def _moved(self, deviation: Array) -> Cores:
        cores = list(self.fit.cores)
        bayesian = tuple(cores[d] for d in self.fit.bayesian_cores)
        moved = from_vector(to_vector(bayesian) + deviation, bayesian)
        for d, V in zip(self.fit.bayesian_cores, moved, strict=True):
            cores[d] = V
        return tuple(cores)

    def _features(self, u: Array) -> list[Array]:
        return [c.phi(x) for c, x in zip(self.columns.columns, u, strict=True)]

    @cached_property
    def unseen_variances(self) -> tuple[Array, ...]:
        """Prior variances of one more function of each column, see `novelty`."""
        if self.unseen is not None:
            return self.unseen
        return prior_variances(self.fit.gamma, self.columns.sizes)

    def _moments(self, u: Array) -> tuple[Array, Array]:
        """Mean and variance (n,) of the function, from the Jacobian of all Bayesian weights."""
        phi = self._features(u)
        G = jacobian(self.fit.cores, phi, self.fit.bayesian_cores)
        return predict(self.fit.cores, phi), self.fit.posterior.quad(G)

    def _response(self, u: Array) -> Array:
        """`networks.predict` (n,) with the features of one column at a time."""
        product = self._factor(u, 0)
        for d in range(1, len(u)):
            product *= self._factor(u, d)
        f: Array = product.sum(axis=0)
        if len(self.fit.cores) > len(u):
            f += additive_response(self.fit.cores[-1], self._features(u))
        return f

    def _factor(self, u: Array, d: int) -> Array:
        return self.fit.cores[d] @ self.columns.columns[d].phi(u[d])

    def _moments_by_core(self, u: Array) -> tuple[Array, Array]:
        """Mean and variance (n,) if the cores are independent: their variances add."""
        which, parts = self.fit.bayesian_cores, self._core_variances or ()
        phi = {d: self.columns.columns[d].phi(u[d]) for d in which}
        if len(which) == 1:
            mean, Z = self._response_and_environment(u, which[0], phi[which[0]])
            Zs = [Z]
        else:
            F = factors(self.fit.cores, list(phi.values()))
            Zs = environments(F)
            mean = np.multiply(Zs[-1], F[-1]).sum(axis=0)
        variance = np.zeros(mean.shape)
        for part, Z, d in zip(parts, Zs, which, strict=True):
            variance += part(Z, phi[d], u[d])
        return mean, variance

    def _moments_by_network(self, network: Network, X: Array) -> tuple[Array, Array] | None:
        """Mean and variance (n,) if only one core has a distribution and no value is novel."""
        parts = self._core_variances
        if parts is None or len(parts) > 1:
            return None
        d, part = self.fit.bayesian_cores[0], parts[0]
        if part.B is None:
            found = network.environment(X, d)
            if found is None:
                return None
            mean, Z, u = found
            return mean, part.squares(Z, self.columns.columns[d].phi(u))
        moments = network.variance(X, d, part.B, part.bound)
        if moments is not None and (lost := np.flatnonzero(np.isnan(moments[1]))).size:
            moments[1][lost] = self._moments_by_core(self.columns.variables(X[lost]))[1]
        return moments

    def _response_and_environment(self, u: Array, d: int, phi: Array) -> tuple[Array, Array]:
        """Response (n,), to the bits of `_response`, and environment (R, n) of one core."""
        own = self.fit.cores[d] @ phi
        Z = np.ones_like(own)
        for k in range(d):
            Z *= self._factor(u, k)
        product = np.multiply(Z, own, out=own)
        for k in range(d + 1, len(u)):
            F = self._factor(u, k)
            product *= F
            Z *= F
        return product.sum(axis=0), Z

    @cached_property
    def _core_variances(self) -> tuple[CoreVariance, ...] | None:
        """One per Bayesian core, or None if cores depend on each other a posteriori."""
        which, posterior = self.fit.bayesian_cores, self.fit.posterior
        parts = posterior.parts if isinstance(posterior, Blocks) else (posterior,)
        roots = [part for part in parts if isinstance(part, Root)]
        additive = len(self.fit.cores) > len(self.columns.columns)
        if additive or not len(roots) == len(parts) == len(which):
            return None
        bases = [self.columns.columns[d].basis for d in which]
        return tuple(CoreVariance.of(*pair) for pair in zip(roots, bases, strict=True))

    def _map(self, work: Callable[[Array], Any], X: Array, threads: int) -> list[Any]:
        """``work`` on a bounded number of rows at a time, in order."""
        width = max(sum(V.size for V in self.fit.cores), 1)
        rows = max(64, min(_BATCH_ROWS, _BATCH_NUMBERS // width))
        starts = range(0, len(X), rows)

        def batch(start: int) -> Any:
            return work(X[start : start + rows])

        with one_blas_thread:
            if threads == 1 or len(starts) < 2:
                return [batch(start) for start in starts]
            with ThreadPoolExecutor(min(threads, len(starts))) as pool:
                return list(pool.map(batch, starts))
