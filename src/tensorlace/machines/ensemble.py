"""A mixture of machines and how its members are weighted, row by row."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self, final

import numpy as np
from scipy.special import logsumexp

from tensorlace._types import Array
from tensorlace.columns.columns import Columns
from tensorlace.machines.machine import KernelMachine
from tensorlace.machines.noise import GAUSSIAN, with_noise
from tensorlace.machines.noise_model import NoiseModel
from tensorlace.networks.engine import NUMPY, Engine
from tensorlace.predictive.distributions import Distribution, Mixture

__all__ = ["Ensemble", "SHARPNESS", "blend"]


@final
@dataclass(frozen=True, eq=False)
class Ensemble:
    """Machines, how much each counts, and the noise they share.

    Attributes
    ----------
    machines : tuple of M KernelMachine
    weights : (M,) array
    sharp : bool
        Whether weights change from row to row with how sure the members are, see `blend`.
    noise : NoiseModel
    engine : Engine
        What computes predictions.
    """

    machines: tuple[KernelMachine, ...]
    weights: Array
    sharp: bool = False
    noise: NoiseModel = GAUSSIAN
    engine: Engine = NUMPY

    @property
    def plain(self) -> bool:
        """Whether the mean needs no variance."""
        return not self.sharp or len(self.machines) == 1

    def supported(self, rows: Array, threads: int = 1) -> Self:
        """The same, whose machines know what training ``rows`` (n, D) have shown."""
        machines = tuple(
            machine.supported(rows, threads) if machine.fit.likelihood.squared else machine
            for machine in self.machines
        )
        return replace(self, machines=machines)

    def mean(self, X: Array, threads: int = 1) -> Array:
        """Predictive mean (n,)."""
        if not self.plain or not all(m.fit.likelihood.squared for m in self.machines):
            return self.dist(X, threads).mean
        means = (machine.mean(X, threads, self.engine) for machine in self.machines)
        return np.asarray(sum(w * mean for w, mean in zip(self.weights, means, strict=True)))

    def dist(self, X: Array, threads: int = 1) -> Distribution:
        """Linearised predictive distributions of n rows."""
        return self.mixed(self._parts(X, threads), X, threads)

    def dist_and_ratio(self, X: Array, threads: int = 1) -> tuple[Distribution, Array]:
        """`dist`, and how unsure the members are of n rows (n,) beside training rows.

        The average by how much members count, see `KernelMachine.linearized_and_ratio`.
        """
        found = [m.linearized_and_ratio(X, threads, self.engine) for m in self.machines]
        parts = [dist for dist, _ in found]
        shares = self.by_row(parts).reshape(len(parts), -1)
        ratio = np.sum(shares * np.array([ratio for _, ratio in found]), axis=0)
        return self.mixed(parts, X, threads), ratio

    @property
    def columns(self) -> Columns:
        """Columns of the table: of the first member that does not rotate them, if there is one."""
        straight = [m.columns for m in self.machines if m.columns.rotation is None]
        return straight[0] if straight else self.machines[0].columns

    def _parts(self, X: Array, threads: int) -> list[Distribution]:
        return [machine.linearized(X, threads, self.engine) for machine in self.machines]

    def mixed(self, parts: Sequence[Distribution], X: Array, threads: int = 1) -> Distribution:
        """What the members say, as one."""
        dist = parts[0] if len(parts) == 1 else Mixture.of(parts, self.by_row(parts))
        if self.noise.trivial:
            return dist
        return with_noise(dist, self.noise, self.noise.log_variance(X, threads))

    def by_row(self, parts: Sequence[Distribution]) -> Array:
        """Weights (M, n), or (M,) if they are the same for all rows."""
        if self.plain:
            return self.weights
        return blend(self.weights, np.log([part.std for part in parts]))

    def shares(self, X: Array, threads: int = 1) -> Array:
        """How much each member counts (M, n) in n rows."""
        if self.plain:
            return np.repeat(self.weights[:, None], len(X), axis=1)
        return self.by_row(self._parts(X, threads))

    def draws(
        self,
        X: Array,
        n_samples: int,
        rng: np.random.Generator,
        linearized: bool,
        threads: int = 1,
    ) -> Array:
        """Draws of new targets (n, n_samples); a column is one joint draw over all rows."""
        weights = self.weights[:, None]
        if not self.plain:
            weights = self.by_row(self._parts(X, threads))
        edges = np.cumsum(weights, axis=0)  # (M, n) or (M, 1)
        # one number decides the member in all rows, which is the same one where weights agree
        member = (rng.random(n_samples) >= edges[:-1, :, None]).sum(axis=0)  # (n or 1, n_samples)
        y = np.zeros((len(X), n_samples))
        shares, stds = self.noise.scale_mixture
        tail = widening = np.ones((1, 1))
        if len(shares) > 1:
            cell = rng.choice(len(shares), size=y.shape, p=shares)
            tail, widening = stds[cell], self.noise.epistemic_factors[cell]
        widens = bool(np.any(widening != 1.0))
        spread = (
            self.noise.shrink
            * self.noise.factor
            * np.exp(0.5 * self.noise.log_variance(X, threads))
        )
        noise = spread[:, None] * tail * rng.standard_normal(y.shape)
        for m, machine in enumerate(self.machines):
            columns = np.flatnonzero(np.any(member == m, axis=0))
            if columns.size:
                f = machine.functions(X, columns.size, rng, linearized, threads)
                location, scale = machine.target.location, machine.target.scale
                if self.noise.shrink != 1.0 or widens:
                    middle = (machine.mean(X, threads, self.engine)[:, None] - location) / scale
                    wider = widening[:, columns] if widens else 1.0
                    f = middle + self.noise.shrink * wider * (f - middle)
                if machine.fit.likelihood.squared:
                    z = f + machine.noise_std * noise[:, columns]
                else:
                    z = machine.fit.likelihood.sample(f, machine.noise_std, rng)
                mine = np.broadcast_to(member == m, y.shape)[:, columns]
                target = location + scale * z
                y[:, columns] = np.where(mine, target, y[:, columns])
        return y


SHARPNESS = 3.0
"""Exponent of the row weights: a member counts in a row by its standard deviation there to the
power -SHARPNESS. What was tried is in docs/decisions.md (Mixture weights)."""


def blend(weights: Array, log_std: Array) -> Array:
    """Weights (M, n) row by row from overall ones (M,) and members' stds (M, n).

    >>> blend(np.array([0.5, 0.5]), np.log([[1.0, 1.0], [1.0, 3.0]])).round(2)
    array([[0.5 , 0.96],
           [0.5 , 0.04]])
    """
    with np.errstate(divide="ignore"):
        log = np.log(weights)[:, None] - SHARPNESS * log_std
    return np.asarray(np.exp(log - logsumexp(log, axis=0)))
