"""A fitted kernel machine: from raw rows to predictive distributions (paper, section 3.3)."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from tensorlace._types import Array
from tensorlace.columns.columns import Columns
from tensorlace.columns.warps import Standardise
from tensorlace.linalg.blas_threads import one_blas_thread
from tensorlace.machines.core_variance import CoreVariance
from tensorlace.machines.fitted import Fitted
from tensorlace.machines.unseen_values import (
    extra_response,
    extra_variance,
    novel_values,
    prior_variances,
)
from tensorlace.networks.engine import NUMPY, Engine, TableResponse
from tensorlace.networks.network import Network, from_vector, to_vector
from tensorlace.predictive.distributions import Distribution, Mixture

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
        table = self._table_response(engine)

        def work(rows: Array) -> Array:
            f = None if table is None else table.response(rows)
            if f is None:
                return self.fit.network.response(
                    self.columns.features(self.columns.variables(rows))
                )
            return f

        return self.target.inverse(np.concatenate(self._map(work, X, threads)))

    def linearized(self, X: Array, threads: int = 1, engine: Engine = NUMPY) -> Distribution:
        """LLA, eq. (pd_linearized_la): ``N(f, gᵀΣg + 1/β)`` in closed form."""
        table = self._table_response(engine)
        moments = self._moments if self._core_variances is None else self._moments_by_core

        def work(rows: Array) -> tuple[Array, Array]:
            quick = None if table is None else self._moments_by_table(table, rows)
            if quick is not None:
                return quick
            u = self.columns.variables(rows)
            mean, variance = moments(u)
            novel = novel_values(self.columns, u)
            new = np.flatnonzero(novel.any(axis=0))
            if new.size:
                few = self.columns.features(u[:, new]), novel[:, new]
                variance[new] += extra_variance(self.fit.network, *few, self.unseen_variances)
            return mean, variance

        parts = self._map(work, X, threads)
        mean = np.concatenate([mean for mean, _ in parts])
        std = np.sqrt(np.concatenate([variance for _, variance in parts]))
        standard = self.fit.likelihood.predictive(mean, std, self.noise_std)
        return standard.affine(self.target.scale, self.target.location)

    def sampled(
        self, X: Array, n_draws: int, rng: np.random.Generator, threads: int = 1
    ) -> Mixture:
        """LA, eq. (pd_la): an equal mixture over posterior draws of the network."""
        means = self.functions(X, n_draws, rng, linearized=False, threads=threads).T
        zero, shares = np.zeros(means.shape[1]), np.full(n_draws, 1.0 / n_draws)
        draws = [self.fit.likelihood.predictive(f, zero, self.noise_std) for f in means]
        standard = Mixture.of(draws, shares)
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
            network, novel = self.fit.network, novel_values(self.columns, u)
            phi = list(self.columns.features(u))
            if linearized:  # eq. (linear_f)
                G = network.jacobian(phi, self.fit.bayesian_cores)
                f: Array = network.response(phi)[:, None] + G.T @ deviation
                return f + extra_response(network, phi, novel, unseen) if novel.any() else f
            moved = [self._moved(d) for d in deviation.T]
            if novel.any():
                phi = [np.vstack([p, mask]) for p, mask in zip(phi, novel, strict=True)]
                moved = [
                    draw.with_extra_functions([w[:, k] for w in unseen])
                    for k, draw in enumerate(moved)
                ]
            draws = [draw.response(phi) for draw in moved]
            return np.stack(draws, axis=1) if draws else np.empty((u.shape[1], 0))

        return np.concatenate(self._map(work, X, threads))

    @property
    def noise_std(self) -> float:
        """Noise standard deviation, eq. (cond_model), in units of the standardised target."""
        return float(1.0 / np.sqrt(self.fit.beta))

    def _moved(self, deviation: Array) -> Network:
        """The network with its Bayesian cores moved by ``deviation``."""
        cores = list(self.fit.cores)
        bayesian = tuple(cores[d] for d in self.fit.bayesian_cores)
        moved = from_vector(to_vector(bayesian) + deviation, bayesian)
        for d, V in zip(self.fit.bayesian_cores, moved, strict=True):
            cores[d] = V
        return self.fit.network.with_cores(tuple(cores))

    def _table_response(self, engine: Engine) -> TableResponse | None:
        """Response from raw rows in one go, if the engine has it for this kind of network."""
        products = self.fit.network.products()
        return None if products is None else engine.table_response(self.columns, *products)

    @cached_property
    def unseen_variances(self) -> tuple[Array, ...]:
        """Prior variances of one more function of each column, see `novelty`."""
        if self.unseen is not None:
            return self.unseen
        return prior_variances(self.fit.network, self.fit.gamma)

    def _moments(self, u: Array) -> tuple[Array, Array]:
        """Mean and variance (n,) of the function, from the Jacobian of all Bayesian weights."""
        phi, network = list(self.columns.features(u)), self.fit.network
        G = network.jacobian(phi, self.fit.bayesian_cores)
        return network.response(phi), self.fit.posterior.quad(G)

    def _moments_by_core(self, u: Array) -> tuple[Array, Array]:
        """Mean and variance (n,) if the cores are independent: their variances add."""
        which, parts = self.fit.bayesian_cores, self._core_variances or ()
        network = self.fit.network
        phi: Sequence[Array] = self.columns.features(u)
        if len(which) == 1:
            mean, Z = network.response_and_environment(phi, which[0])
            Zs = [Z]
        else:
            phi = list(phi)
            mean, Zs = network.response(phi), network.column_environments(phi)
        variance = np.zeros(mean.shape)
        for part, Z, d in zip(parts, Zs, which, strict=True):
            variance += part(Z, phi[d], u[d])
        return mean, variance

    def _moments_by_table(self, table: TableResponse, X: Array) -> tuple[Array, Array] | None:
        """Mean and variance (n,) if only one core has a distribution and no value is novel."""
        parts = self._core_variances
        if parts is None or len(parts) > 1:
            return None
        d, part = self.fit.bayesian_cores[0], parts[0]
        if part.B is None:
            found = table.environment(X, d)
            if found is None:
                return None
            mean, Z, u = found
            return mean, part.squares(Z, self.columns.columns[d].phi(u))
        moments = table.variance(X, d, part.B, part.bound)
        if moments is not None and (lost := np.flatnonzero(np.isnan(moments[1]))).size:
            moments[1][lost] = self._moments_by_core(self.columns.variables(X[lost]))[1]
        return moments

    @cached_property
    def _core_variances(self) -> tuple[CoreVariance, ...] | None:
        """One per Bayesian core, or None if cores depend on each other a posteriori."""
        which, posterior = self.fit.bayesian_cores, self.fit.posterior
        parts = [part.covariance_root for part in posterior.independent]
        roots = [root for root in parts if root is not None]
        apart = self.fit.network.core_per_column
        if not apart or not len(roots) == len(parts) == len(which):
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
