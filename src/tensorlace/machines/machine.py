"""A fitted kernel machine: from raw rows to predictive distributions (paper, section 3.3)."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

import numpy as np

from tensorlace._types import Array
from tensorlace.columns.columns import Columns
from tensorlace.columns.warps import Standardise
from tensorlace.linalg.blas_threads import one_blas_thread
from tensorlace.machines.beyond.support import (
    Support,
    beyond_variance,
    largest_left_out,
    range_roots,
    wiener,
)
from tensorlace.machines.beyond.unseen_values import (
    extra_response,
    extra_variance,
    novel_values,
    prior_variances,
)
from tensorlace.machines.core_variance import CoreVariance
from tensorlace.machines.fitted import Fitted
from tensorlace.machines.linear_response import LinearResponse
from tensorlace.networks.engine import NUMPY, Engine, TableResponse
from tensorlace.networks.network import Network, from_vector, to_vector
from tensorlace.predictive.distributions import Distribution, Mixture

__all__ = ["KernelMachine"]

_BATCH_NUMBERS = 1 << 22
"""Numbers in the largest intermediate array of a prediction."""

_BATCH_ROWS = 1 << 12
"""Most rows of a batch: enough to make calls cheap, few enough to stay near a core."""

_SUPPORT_WORK = 1 << 34
"""Multiplications that the largest standard deviation of training rows may take."""

_FEWEST_SUPPORT = 256
"""Fewest training rows that it is taken from, if there are so many."""


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
    support : Support or None
        What training rows have shown, beyond which means stay and widths grow; None: neither.
    """

    columns: Columns
    target: Standardise
    fit: Fitted
    unseen: tuple[Array, ...] | None = None
    n_pruned: int = 0
    support: Support | None = None

    def mean(self, X: Array, threads: int = 1, engine: Engine = NUMPY) -> Array:
        """Predictive mean (n,). Builds no Jacobian."""
        table = self._table_response(engine)

        def work(rows: Array) -> Array:
            f = None if table is None else table.response(rows)
            if f is None:
                f = self.fit.network.response(self.columns.features(self.columns.variables(rows)))
            support = self.support
            return f if support is None else np.clip(f, support.low, support.high)

        return self.target.inverse(np.concatenate(self._map(work, X, threads)))

    def linearized(self, X: Array, threads: int = 1, engine: Engine = NUMPY) -> Distribution:
        """LLA, eq. (pd_linearized_la): ``N(f, gᵀΣg + 1/β)`` in closed form."""
        return self.linearized_and_ratio(X, threads, engine)[0]

    def linearized_and_ratio(
        self, X: Array, threads: int = 1, engine: Engine = NUMPY
    ) -> tuple[Distribution, Array]:
        """`linearized`, and how unsure the bare posterior is of each row (n,).

        That is its epistemic standard deviation in units of the largest that a training row had,
        see `support`; 0 for a machine that knows of no training rows.
        """
        table = self._table_response(engine)
        moments = self._moments if self._core_variances is None else self._moments_by_core

        def work(rows: Array) -> tuple[Array, Array, Array]:
            found = None if table is None else self._moments_by_table(table, rows)
            u = None
            if found is None:
                u = self.columns.variables(rows)
                found = moments(u)
            mean, variance = found
            unseen = self._unseen_variance(rows, u)
            if self.support is None:
                return mean, variance + unseen, np.zeros(len(rows))
            ratio = np.sqrt(variance + unseen) / self.support.largest
            mean, variance = self.support.held(mean, variance)
            return mean, variance + unseen + self._beyond_variance(rows), ratio

        parts = self._map(work, X, threads)
        mean, variance, ratio = (np.concatenate(some) for some in zip(*parts, strict=True))
        standard = self.fit.likelihood.predictive(mean, np.sqrt(variance), self.noise_std)
        return standard.affine(self.target.scale, self.target.location), ratio

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
        outer: list[Array] = []
        if self.support is not None:
            sizes = [(root.shape[1], n_draws) for root in self.range_roots]
            outer = [
                root @ side.standard_normal(size)
                for root, size in zip(self.range_roots, sizes, strict=True)
            ]

        def work(rows: Array) -> Array:
            u = self.columns.variables(rows)
            network, novel = self.fit.network, novel_values(self.columns, u)
            phi, beyond = list(self.columns.features(u)), self._beyond(rows)
            if linearized:  # eq. (linear_f)
                G = network.jacobian(phi, self.fit.bayesian_cores)
                f: Array = self._held_draws(network.response(phi), G, deviation)
                if novel.any():
                    f = f + extra_response(network, phi, novel, unseen)
                return f if beyond is None else f + extra_response(network, phi, beyond, outer)
            moved = [self._moved(d) for d in deviation.T]
            for values, weights in ((novel, unseen), (beyond, outer)):
                if values is not None and values.any():
                    phi = [np.vstack([p, v]) for p, v in zip(phi, values, strict=True)]
                    moved = [
                        draw.with_extra_functions([w[:, k] for w in weights])
                        for k, draw in enumerate(moved)
                    ]
            draws = [draw.response(phi) for draw in moved]
            if self.support is not None:
                draws = [np.clip(f, self.support.low, self.support.high) for f in draws]
            return np.stack(draws, axis=1) if draws else np.empty((u.shape[1], 0))

        return np.concatenate(self._map(work, X, threads))

    def linear_response(self, X: Array) -> LinearResponse:
        """What is predicted of rows (n, D) as `functions` draws it jointly, in standard units.

        With means held and Jacobians widened as ``support`` has it. All rows at once.
        """
        u, network = self.columns.variables(X), self.fit.network
        phi, novel = list(self.columns.features(u)), novel_values(self.columns, u)
        mean, G = network.response(phi), network.jacobian(phi, self.fit.bayesian_cores)
        if self.support is not None:
            mean, ratio = self._held(mean, G)
            G = G * ratio
        beyond = self._beyond(X)
        if beyond is None:
            beyond = np.zeros(novel.shape)
        if novel.any() or beyond.any():
            Z = network.column_environments(phi)
        else:
            Z = [np.zeros((v.size, len(X))) for v in self.unseen_variances]
        return LinearResponse(
            *(mean, G),
            tuple(z * mask for z, mask in zip(Z, novel, strict=True)),
            tuple(z * amount for z, amount in zip(Z, beyond, strict=True)),
        )

    def variance(self, response: LinearResponse) -> Array:
        """Variance (n,) under the posterior of a `linear_response` or of sums of it."""
        extra = response.extra_variance(self.unseen_variances, self.range_roots)
        return self.fit.posterior.quad(response.gradient) + extra

    @property
    def noise_std(self) -> float:
        """Noise standard deviation, eq. (cond_model), in units of the standardised target."""
        return float(1.0 / np.sqrt(self.fit.beta))

    def without_support(self) -> "KernelMachine":
        """The machine as its bare posterior has it."""
        return replace(self, support=None)

    def supported(self, rows: Array, threads: int = 1) -> "KernelMachine":
        """The machine with bounds from its target and what it says of training ``rows`` (n, D)."""
        frame, target = self.target.frame, self.target
        low, high = (float(v) for v in target(np.array([frame.low, frame.high])))
        numbers = max(self.fit.posterior.n_weights, 1) ** 2
        few = rows[: max(_FEWEST_SUPPORT, min(len(rows), _SUPPORT_WORK // numbers))]
        e = self.without_support().linearized(few, threads).epistemic_stds[0] / target.scale
        return replace(self, support=Support.around(low, high, largest_left_out(e, self.noise_std)))

    @cached_property
    def range_roots(self) -> tuple[Array, ...]:
        """How the response varies over the range of each column, see `support`."""
        return range_roots(self.fit.network, self.columns)

    def _beyond(self, rows: Array) -> Array | None:
        """`wiener` of values (D, n) beyond the ranges of their columns; None if none is."""
        if self.support is None:
            return None
        beyond = self.columns.beyond(rows)
        return wiener(beyond) if beyond.any() else None

    def _unseen_variance(self, rows: Array, u: Array | None) -> Array | float:
        """Variance (n,) that values add which no training row had the like of.

        ``u`` are variables of the rows, None if there is no such value.
        """
        network, columns = self.fit.network, self.columns
        novel = None if u is None else novel_values(columns, u)
        if novel is None or not (which := np.flatnonzero(novel.any(axis=0))).size:
            return 0.0
        variance = np.zeros(len(rows))
        phi = columns.features(columns.variables(rows[which]))
        variance[which] = extra_variance(network, phi, novel[:, which], self.unseen_variances)
        return variance

    def _beyond_variance(self, rows: Array) -> Array | float:
        """Variance (n,) that values beyond the ranges of their columns add."""
        network, columns, beyond = self.fit.network, self.columns, self._beyond(rows)
        if beyond is None:
            return 0.0
        variance, which = np.zeros(len(rows)), np.flatnonzero(beyond.any(axis=0))
        phi = columns.features(columns.variables(rows[which]))
        variance[which] = beyond_variance(network, phi, beyond[:, which], self.range_roots)
        return variance

    def _held_draws(self, f: Array, G: Array, deviation: Array) -> Array:
        """Draws (n, m) of the linearised response, from its mean (n,) and Jacobian (P, n)."""
        mean, ratio = self._held(f, G)
        return mean[:, None] + ratio[:, None] * (G.T @ deviation)

    def _held(self, f: Array, G: Array) -> tuple[Array, Array]:
        """Mean (n,) as ``support`` holds it, and the factor (n,) on what is away from it."""
        if self.support is None:
            return f, np.ones_like(f)
        variance = self.fit.posterior.quad(G)
        mean, wider = self.support.held(f, variance)
        return mean, np.sqrt(np.divide(wider, variance, out=np.ones_like(f), where=variance > 0.0))

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
