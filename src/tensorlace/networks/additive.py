"""A sum of one-column functions: ``f = Σ_d a_dᵀ φ_d``.

It costs the CPD a rank of D and is one core here, ``a`` (1, Σ_d I_d), on the features of all
columns. The response is linear in it, so second derivatives are zero.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np

from tensorlace._types import Array, Mask
from tensorlace.columns.bases.basis import Basis
from tensorlace.networks.block import Block
from tensorlace.networks.cores import Cores, Phi
from tensorlace.networks.engine import Engine
from tensorlace.networks.network import Averaged, Labels, Local, Network, Surroundings
from tensorlace.networks.portable import PortableNetwork
from tensorlace.portable import Builder, Value

__all__ = ["Additive"]


@final
class _Nothing(Surroundings):
    """Nothing surrounds the only core."""

    def around(self, block: Block, d: int, cores: Cores) -> tuple[Array | None, Array | None]:
        """Empty products."""
        return None, None


@final
@dataclass(frozen=True, eq=False)
class Additive(Network):
    """A sum of one-column functions.

    Attributes
    ----------
    weights : (1, Σ_d I_d) array
    sizes : tuple of int
        Basis functions of each column.
    """

    weights: Array
    sizes: tuple[int, ...]

    @property
    def cores(self) -> Cores:  # type: ignore[override]
        """The only one."""
        return (self.weights,)

    def with_cores(self, cores: Cores) -> Self:
        """The same network with other weights."""
        (weights,) = cores
        return type(self)(weights, self.sizes)

    @classmethod
    def zero(cls, sizes: Sequence[int]) -> Self:
        """Where a fit begins."""
        return cls(np.zeros((1, sum(sizes))), tuple(sizes))

    def is_consistent(self) -> bool:
        """One row of all functions."""
        return len(self.sizes) > 0 and self.weights.shape == (1, sum(self.sizes))

    @property
    def rank(self) -> int:
        """No products."""
        return 0

    @property
    def additive(self) -> bool:
        """It is."""
        return True

    @property
    def core_per_column(self) -> bool:
        """One core for all columns."""
        return False

    @property
    def kept_per_row(self) -> int:
        """Nothing."""
        return 0

    def response(self, phi: Phi) -> Array:
        """Sum over the columns of ``a_dᵀ φ_d`` (n,)."""
        return _response(self.weights, phi, len(self.sizes))

    def designs(self, phi: Phi, which: Sequence[int] | None = None) -> list[Array]:
        """The features of all columns."""
        return [phi[d] for d in range(len(self.sizes))]

    def response_and_environment(self, phi: Phi, d: int) -> tuple[Array, Array]:
        """Nothing is multiplied."""
        f = self.response(phi)
        return f, np.ones((1, len(f)))

    def column_environments(self, phi: Phi) -> list[Array]:
        """Ones."""
        return [np.ones((1, phi[d].shape[1])) for d in range(len(self.sizes))]

    def column_weights(self, values: Cores) -> list[Array]:
        """Cut by columns."""
        (a,) = values
        return np.split(a, np.cumsum(self.sizes)[:-1], axis=1)

    def portable(self, g: Builder, phi: Sequence[Value], which: Sequence[int]) -> PortableNetwork:
        """The features of all columns are the Jacobian."""
        features = g.concat(phi)
        ones = g.expand(1.0, g.slice(phi[0], 0, 1))
        response = self.weights[0] @ features
        return PortableNetwork(response, [ones] * len(phi), features if which else None)

    def averaged(self, phi: list[Array], weight: Array, p: int, own: Array) -> Averaged:
        """Other columns at their average features."""
        k = own.shape[1]
        parts = [
            own if e == p else np.repeat((f @ weight)[:, None], k, axis=1)
            for e, f in enumerate(phi)
        ]
        features = np.concatenate(parts)
        return Averaged((self.weights @ features)[0], (features,), np.ones(1))

    def with_extra_functions(self, weights: Sequence[Array]) -> "Additive":
        """The new one of each column after its others."""
        pairs = zip(self.column_weights(self.cores), weights, strict=True)
        a = np.concatenate([x for own, w in pairs for x in (own, w[None])], axis=1)
        return Additive(a, tuple(n + 1 for n in self.sizes))

    def local(self, phi: Phi, kept: Any = None) -> Local:
        """Features are all there is."""
        return _LocalAdditive(self, phi)

    def surroundings(self, keep: bool) -> Surroundings:
        """None."""
        return _Nothing()

    def core_sums(
        self, block: Block, d: int, around: Surroundings, others: Array | None = None
    ) -> tuple[Array, Array, Array]:
        """The design matrix is the features of all columns."""
        phi = block.features()
        f = self.response(phi) if others is None else others + self.response(phi)
        residual = block.y - f
        weighted = block.weighted(residual)
        (slope,) = self.local(phi).pull(weighted)
        (gram,) = self.core_moments(block)
        return gram, slope, np.array(weighted @ residual)

    def core_moments(self, block: Block) -> tuple[Array, ...]:
        """Gram matrix of the features of all columns, which is expanded already."""
        A = np.concatenate(block.features())
        return (block.weighted(A) @ A.T,)

    def gram(self, d: int, moments: Array, bases: Sequence[Basis]) -> Array:
        """As it was summed."""
        return moments

    def light(self, d: int, engine: Engine, bases: Sequence[Basis]) -> bool:
        """A dense product."""
        return False

    def squares(self, block: Block) -> tuple[Array, ...]:
        """Squared features."""
        parts = [block.weighted(p * p).sum(axis=1) for p in block.features()]
        return (np.concatenate(parts)[None],)

    def cross_terms(self, phi: Phi, misfit: Array) -> tuple[Array, ...]:
        """None."""
        return ()

    def cross_matrix(self, terms: tuple[Array, ...]) -> Array:
        """Zero."""
        return np.zeros((self.weights.size,) * 2)

    def balanced(self, gamma: Cores) -> Self:
        """There are no scales."""
        return self

    def labels(self) -> Labels:
        """Column, -1 and order."""
        d = np.repeat(np.arange(len(self.sizes)), self.sizes)
        i = np.concatenate([np.arange(n) for n in self.sizes])
        return np.stack([d, np.full(d.shape, -1), i]).astype(np.intp)

    def restricted(self, terms: Mask, functions: Sequence[Mask]) -> "Additive":
        """Without some functions."""
        ((rows, columns),) = self.cuts(terms, functions)
        kept = np.ascontiguousarray(self.weights[np.ix_(rows, columns)])
        return Additive(kept, tuple(int(mask.sum()) for mask in functions))

    def cuts(self, terms: Mask, functions: Sequence[Mask]) -> list[tuple[Mask, Mask]]:
        """Functions of all columns one after another."""
        return [(np.ones(1, dtype=np.bool_), np.concatenate(list(functions)))]


@final
class _LocalAdditive(Local):
    """Features of a block."""

    def __init__(self, network: Additive, phi: Phi) -> None:
        self._network, self._phi, self.kept = network, phi, None

    def response(self) -> Array:
        """Response (n,)."""
        return self._network.response(self._phi)

    def residual(self, y: Array) -> Array:
        """``y - f`` (n,)."""
        return y - self.response()

    def push(self, direction: Cores) -> Array:
        """The response of the direction."""
        return _response(direction[0], self._phi, len(self._network.sizes))

    def pull(self, q: Array) -> Cores:
        """``φ q`` of all columns."""
        return (np.concatenate([p @ q for p in self._phi])[None],)

    def pull_turned(self, change: Array, misfit: Array, direction: Cores) -> Cores:
        """Its Jacobian does not turn."""
        return self.pull(change)

    def bend(self, direction: Cores) -> Array:
        """It is straight."""
        return np.zeros(self._phi[0].shape[1])


def _response(a: Array, phi: Phi, n_columns: int) -> Array:
    f, start = np.zeros(0), 0
    for d in range(n_columns):
        p = phi[d]
        if d == 0:
            f = np.zeros(p.shape[1], dtype=a.dtype)
        f += a[0, start : start + len(p)] @ p
        start += len(p)
    return f
