"""A network told by the environments of its cores alone: the shortest way to a new one.

Everything is made afresh from the environments and nothing is kept from core to core, so a sweep
costs D times what a network of its own kind would take. Derivatives of environments are complex
steps, which are exact because a network is a polynomial in its weights.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt

from tensorlace._types import Array
from tensorlace.networks.block import Block
from tensorlace.networks.column_network import ColumnNetwork
from tensorlace.networks.cores import Cores, Phi, pull
from tensorlace.networks.network import Local, Surroundings

__all__ = ["PlainNetwork"]

STEP = 1e-20
"""Imaginary part of a complex step; its square is lost beside 1."""

Factors = Sequence[npt.NDArray[Any]]
"""Values ``V^(d) φ_d`` (K_d, n) of each core, real or complex."""


class PlainNetwork(ColumnNetwork):
    """A frozen dataclass with a field ``cores``; `environment` says how they go together."""

    @abstractmethod
    def environment(self, factors: Factors, d: int) -> npt.NDArray[Any]:
        """Environment (K_d, n) of core d from the factors of the others: linear in each of them.

        Factors may be complex. There is one of core d, which is not to be looked at.
        """

    def factors(self, phi: Phi, cores: Cores | None = None) -> list[npt.NDArray[Any]]:
        """``V^(d) φ_d`` (K_d, n) of each core."""
        return [V @ phi[d] for d, V in enumerate(self.cores if cores is None else cores)]

    def environments(self, phi: Phi) -> list[Array]:
        """Environments (K_d, n) of all cores."""
        return self._around(self.factors(phi))

    def _around(self, factors: Factors) -> list[npt.NDArray[Any]]:
        return [self.environment(factors, d) for d in range(len(factors))]

    def with_cores(self, cores: Cores) -> Self:
        """The same network with other weights."""
        return replace(self, cores=cores)  # type: ignore[type-var]

    def with_extra_functions(self, weights: Sequence[Array]) -> Self:
        """Their weights last."""
        pairs = zip(self.cores, weights, strict=True)
        return self.with_cores(tuple(np.column_stack(pair) for pair in pairs))

    def response(self, phi: Phi) -> Array:
        """``⟨V^(0) φ_0, Z⟩``."""
        F = self.factors(phi)
        f: Array = np.einsum("kn,kn->n", F[0], self.environment(F, 0))
        return f

    def response_and_environment(self, phi: Phi, d: int) -> tuple[Array, Array]:
        """Each on its own."""
        return self.response(phi), self.environment(self.factors(phi), d)

    @property
    def kept_per_row(self) -> int:
        """None."""
        return 0

    def surroundings(self, keep: bool) -> Surroundings:
        """From all factors each time."""
        return _Afresh(self)

    def local(self, phi: Phi, kept: Any = None) -> Local:
        """From the environments."""
        return _LocalPlain(self, phi)

    def turned(self, phi: Phi, direction: Cores) -> list[Array]:
        """Derivatives (K_d, n) of the environments when the cores move along ``direction``."""
        moved = [
            F + 1j * STEP * T
            for F, T in zip(self.factors(phi), self.factors(phi, direction), strict=True)
        ]
        return [Z.imag / STEP for Z in self._around(moved)]

    def cross_terms(self, phi: Phi, misfit: Array) -> tuple[Array, ...]:
        """Blocks (K_d·I_d, K_e·I_e) for d < e; environments are linear in every other factor."""
        F = self.factors(phi)
        out = []
        for d, e in combinations(range(len(F)), 2):
            for_core = []
            for k in range(len(F[e])):  # one factor of core e at a time
                unit = np.zeros_like(F[e])
                unit[k] = 1.0
                B = self.environment([*F[:e], unit, *F[e + 1 :]], d) * misfit
                for_core.append(np.einsum("an,in,jn->aij", B, phi[d], phi[e], optimize=True))
            block = np.stack(for_core, axis=2)  # (K_d, I_d, K_e, I_e)
            out.append(block.reshape(self.cores[d].size, self.cores[e].size))
        return tuple(out)

    def cross_matrix(self, terms: tuple[Array, ...]) -> Array:
        """Blocks and their transposes."""
        at = np.cumsum([0, *(V.size for V in self.cores)])
        E = np.zeros((at[-1], at[-1]))
        for (d, e), block in zip(combinations(range(len(self.cores)), 2), terms, strict=True):
            E[at[d] : at[d + 1], at[e] : at[e + 1]] = block
            E[at[e] : at[e + 1], at[d] : at[d + 1]] = block.T
        return E

    def balanced(self, gamma: Cores) -> Self:
        """Scales of the cores such that their penalties are equal."""
        penalty = np.array([np.sum(g * V * V) for g, V in zip(gamma, self.cores, strict=True)])
        if not (np.all(penalty > 0) and np.all(np.isfinite(penalty))):
            return self
        scale = np.exp(0.5 * (np.log(penalty).mean() - np.log(penalty)))
        return self.with_cores(tuple(s * V for s, V in zip(scale, self.cores, strict=True)))


@final
class _Afresh(Surroundings):
    """Environments from the factors of all other cores, each time."""

    def __init__(self, network: PlainNetwork) -> None:
        self._network = network

    def around(self, block: Block, d: int, cores: Cores) -> tuple[Array | None, Array | None]:
        """No left factor, and the whole environment as the right one."""
        factors = [block.factor(e, V, None) for e, V in enumerate(cores)]
        return None, self._network.environment(factors, d)


@final
class _LocalPlain(Local):
    """Environments at the rows of a block."""

    def __init__(self, network: PlainNetwork, phi: Phi) -> None:
        self._network, self._phi, self.kept = network, list(phi), None
        self._Z = network.environments(self._phi)

    def response(self) -> Array:
        """Response (n,)."""
        return self._network.response(self._phi)

    def residual(self, y: Array) -> Array:
        """``y - f`` (n,)."""
        return y - self.response()

    def push(self, direction: Cores) -> Array:
        """``Σ_d ⟨P_d φ_d, Z_d⟩``."""
        return self._along(direction, self._Z)

    def pull(self, q: Array) -> Cores:
        """``Z_d (q φ_d)ᵀ``."""
        return tuple(pull(z, p, q) for z, p in zip(self._Z, self._phi, strict=True))

    def pull_turned(self, change: Array, misfit: Array, direction: Cores) -> Cores:
        """``(Z_d change + Ż_d misfit) φ_dᵀ``."""
        turned = self._network.turned(self._phi, direction)
        both = zip(self._Z, turned, self._phi, strict=True)
        return tuple((z * change + dz * misfit) @ p.T for z, dz, p in both)

    def bend(self, direction: Cores) -> Array:
        """``Σ_d ⟨P_d φ_d, Ż_d⟩``: each pair of cores is met twice."""
        return self._along(direction, self._network.turned(self._phi, direction))

    def _along(self, direction: Cores, Z: Sequence[Array]) -> Array:
        steps = self._network.factors(self._phi, direction)
        out: Array = np.sum([(s * z).sum(axis=0) for s, z in zip(steps, Z, strict=True)], axis=0)
        return out
