"""What a network is: a response that is linear in each of its cores (paper, section 2).

A core ``V^(d)`` is a matrix (K_d, I_d) of weights. Given the others the response is linear in it,
``f = Σ_k Z_k (V^(d) φ)_k`` with the core's environment Z (K_d, n) and the features φ (I_d, n) that
it acts on. From this follow alternating least squares, the Jacobian, all Hessians and the
linearised predictive, for every network alike. Features are laid out functions first, rows last.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt

from tensorlace._types import Array, Mask
from tensorlace.columns.bases.basis import Basis
from tensorlace.networks.block import Block
from tensorlace.networks.cores import Cores, Phi, design, from_vector, pull, to_vector
from tensorlace.networks.engine import Engine
from tensorlace.networks.portable import PortableNetwork
from tensorlace.portable import Builder, Value

__all__ = [
    "Averaged",
    "Cores",
    "Labels",
    "Local",
    "Network",
    "Phi",
    "Surroundings",
    "design",
    "from_vector",
    "pull",
    "to_vector",
]

Labels = npt.NDArray[np.intp]
"""Column, rank-one term and order of the function of each weight (3, P)."""


class Surroundings(ABC):
    """Products of the other cores around one core after another, kept from core to core."""

    @abstractmethod
    def around(self, block: Block, d: int, cores: Cores) -> tuple[Array | None, Array | None]:
        """Two factors (K_d, n) of the environment of core d; None is an empty product.

        If products are kept, d has to run through 0, 1, ... in turn.
        """


class Local(ABC):
    """A network at the rows of a block: its derivatives without the Jacobian.

    Attributes
    ----------
    kept : object
        What may be kept for the same cores and rows, to be handed to `Network.local` again.
    """

    kept: Any

    @abstractmethod
    def response(self) -> Array:
        """Response (n,)."""

    @abstractmethod
    def residual(self, y: Array) -> Array:
        """``y - f`` (n,)."""

    @abstractmethod
    def push(self, direction: Cores) -> Array:
        """``A p`` (n,): the change of the response along a direction in the shape of the cores."""

    @abstractmethod
    def pull(self, q: Array) -> Cores:
        """``Aᵀ q`` in the shape of the cores, from ``q`` (n,)."""

    @abstractmethod
    def pull_turned(self, change: Array, misfit: Array, direction: Cores) -> Cores:
        """``Aᵀ change`` and the derivative of ``Aᵀ misfit`` along ``direction``, together."""

    @abstractmethod
    def bend(self, direction: Cores) -> Array:
        """Second derivative (n,) of the response along ``direction``."""


@final
@dataclass(frozen=True)
class Averaged:
    """A response averaged over rows, with one column at the same k values in all of them.

    Attributes
    ----------
    mean : (k,) array
    gradient : tuple of (K_d·I_d, k) arrays
        Its derivative by the weights of each core.
    environment : (K',) array
        What a further function of the column would be multiplied with, on average.
    """

    mean: Array
    gradient: tuple[Array, ...]
    environment: Array


class Network(ABC):
    """A network with its weights. Frozen: what changes weights returns another network.

    Attributes
    ----------
    cores : tuple of (K_d, I_d) arrays
        The weights, core by core.
    sizes : tuple of int
        Basis functions of each column.
    """

    cores: Cores
    sizes: tuple[int, ...]

    @abstractmethod
    def with_cores(self, cores: Cores) -> Self:
        """The same network with other weights in the same shapes."""

    @property
    def vector(self) -> Array:
        """All weights (P,)."""
        return to_vector(self.cores)

    def with_vector(self, v: Array) -> Self:
        """The same network with the weights ``v`` (P,)."""
        return self.with_cores(from_vector(v, self.cores))

    def with_core(self, d: int, V: Array) -> Self:
        """The same network with another d-th core."""
        return self.with_cores((*self.cores[:d], V, *self.cores[d + 1 :]))

    @property
    def n_weights(self) -> int:
        """P."""
        return sum(V.size for V in self.cores)

    def is_like(self, other: "Network") -> bool:
        """Whether the other is of the same kind and shapes."""
        shapes = [V.shape for V in self.cores] == [V.shape for V in other.cores]
        return type(self) is type(other) and shapes

    @abstractmethod
    def is_consistent(self) -> bool:
        """Whether there are weights, and shapes of the cores fit each other."""

    @property
    def n_terms(self) -> int:
        """Rank-one terms that could each be left out; 0 if the network is not made of such."""
        return 0

    @property
    def additive(self) -> bool:
        """Whether a sum of one-column functions is part of it."""
        return False

    @property
    @abstractmethod
    def rank(self) -> int:
        """Rank as a person would give it."""

    @property
    @abstractmethod
    def core_per_column(self) -> bool:
        """Whether core d acts on the features of column d alone, and there are no other cores."""

    # response and first derivatives

    @abstractmethod
    def response(self, phi: Phi) -> Array:
        """Response (n,), from features that may be made one column at a time, in order."""

    @abstractmethod
    def designs(self, phi: Phi, which: Sequence[int] | None = None) -> list[Array]:
        """Rows of the transposed Jacobian in order, as arrays (k, n) that are not stacked yet."""

    def jacobian(self, phi: Phi, which: Sequence[int] | None = None) -> Array:
        """Transposed Jacobian of the response (P, n), or of the cores ``which`` only."""
        return np.concatenate(self.designs(phi, which))

    @abstractmethod
    def response_and_environment(self, phi: Phi, d: int) -> tuple[Array, Array]:
        """Response (n,), to the bits of `response`, and environment (K_d, n) of core d."""

    @abstractmethod
    def column_environments(self, phi: Phi) -> list[Array]:
        """What the functions of each column are multiplied with: D arrays (K'_d, n).

        The response is linear in all weights of a column together, its `column_weights`.
        """

    @abstractmethod
    def column_weights(self, values: Cores) -> list[Array]:
        """Arrays in the shape of the cores regrouped by column: D arrays (K'_d, I_d)."""

    def averaged(self, phi: list[Array], weight: Array, p: int, own: Array) -> Averaged | None:
        """Average over rows with column ``p`` moved, if it has a form that sees each row once.

        Parameters
        ----------
        phi : D arrays (I_d, n)
        weight : (n,) array
            Of the rows; they sum to 1.
        p : int
        own : (I_p, k) array
            Features of the column at k values.
        """
        return None

    @abstractmethod
    def with_extra_functions(self, weights: Sequence[Array]) -> "Network":
        """The network with one function more in each column, of weights D times (K'_d,)."""

    @abstractmethod
    def local(self, phi: Phi, kept: Any = None) -> Local:
        """The network at the rows of the features ``phi``."""

    @property
    @abstractmethod
    def kept_per_row(self) -> int:
        """Numbers per row that `Local.kept` and kept `surroundings` hold."""

    # sums over the rows of a block

    @abstractmethod
    def surroundings(self, keep: bool) -> Surroundings:
        """For a sweep over the cores."""

    @abstractmethod
    def core_sums(
        self, block: Block, d: int, around: Surroundings, others: Array | None = None
    ) -> tuple[Array, Array, Array]:
        """Least-squares problem of core d: what `gram` expands, ``Aᵀ(y - f)``, sum of squares.

        ``others`` (n,) is the response of what the network is added to.
        """

    @abstractmethod
    def core_moments(self, block: Block) -> tuple[Array, ...]:
        """What `gram` expands, for all cores."""

    @abstractmethod
    def gram(self, d: int, moments: Array, bases: Sequence[Basis]) -> Array:
        """Gram matrix ``A^(d)ᵀA^(d)`` (K_d·I_d, K_d·I_d) from summed moments."""

    @abstractmethod
    def light(self, d: int, engine: Engine, bases: Sequence[Basis]) -> bool:
        """Whether `core_sums` of a block are made so soon that threads do not pay."""

    @abstractmethod
    def squares(self, block: Block) -> tuple[Array, ...]:
        """Weighted squares of the Jacobian summed over rows, in the shape of the cores."""

    @abstractmethod
    def cross_terms(self, phi: Phi, misfit: Array) -> tuple[Array, ...]:
        """Second derivatives between cores times ``misfit`` (n,), summed over rows."""

    @abstractmethod
    def cross_matrix(self, terms: tuple[Array, ...]) -> Array:
        """`cross_terms` as a symmetric matrix (P, P) without diagonal blocks."""

    # prior

    @abstractmethod
    def balanced(self, gamma: Cores) -> Self:
        """The same response with the least penalty that scales of the cores can give."""

    @abstractmethod
    def labels(self) -> Labels:
        """What each weight belongs to; the term of a sum of one-column functions is -1."""

    # what the evidence has switched off

    def without_term(self, r: int, like: Cores | None = None) -> Cores:
        """Cores, or arrays of their shapes, without one of the `n_terms` terms."""
        raise NotImplementedError(f"{type(self).__name__} has no rank-one terms")

    @abstractmethod
    def restricted(self, terms: Mask, functions: Sequence[Mask]) -> "Network":
        """The network without some rank-one terms, if it has any, and without some functions.

        ``terms`` (n_terms,) and ``functions`` D times (I_d,) say what stays.
        """

    @abstractmethod
    def cuts(self, terms: Mask, functions: Sequence[Mask]) -> list[tuple[Mask, Mask]]:
        """Rows and columns of each core that `restricted` keeps."""

    # other forms

    @abstractmethod
    def portable(self, g: Builder, phi: Sequence[Value], which: Sequence[int]) -> PortableNetwork:
        """Response, environments and Jacobian of the cores ``which`` as a graph.

        ``phi`` are the features of all columns, D values (I_d, n).
        """

    def products(self) -> tuple[Cores, Array | None] | None:
        """Cores of a sum of products and weights of a sum of functions, if it is just that."""
        return None
