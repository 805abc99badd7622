"""The tensor train: a chain of small matrices, one per column (paper, section 2).

    f(x) = V^(1)[φ_1] V^(2)[φ_2] ... V^(D)[φ_D],    V^(d)[φ_d] (r_(d-1), r_d),  r_0 = r_D = 1.

Each core is kept as a matrix (K_d, I_d) with K_d = r_(d-1) r_d, the left index slower. Then its
environment ``Z_(a,b) = left_a right_b`` is a row-wise Khatri-Rao product of what is to its left and
right, and everything that a core of the CPD has (the structured Gram, its posterior, its variance)
is that of the train's core too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Self, final

import numpy as np

from tensorlace._types import Array
from tensorlace.networks.block import Block
from tensorlace.networks.column_network import ColumnNetwork
from tensorlace.networks.cores import Cores, Phi, from_vector, pull, to_vector
from tensorlace.networks.network import Local, Surroundings
from tensorlace.networks.portable import portable_design
from tensorlace.portable import ROWS, Builder, Value

__all__ = ["TensorTrain"]


def _next_left(left: Array | None, M: Array) -> Array:
    """Product (s, n) to the left of the next core, from ``left`` (r, n) and ``M`` (r, s, n)."""
    out: Array = M[0] if left is None else np.einsum("rn,rsn->sn", left, M)
    return out


def _next_right(M: Array, right: Array | None) -> Array:
    """Product (r, n) to the right of the core before."""
    out: Array = M[:, 0] if right is None else np.einsum("rsn,sn->rn", M, right)
    return out


def _or_ones(product: Array | None, n: int) -> Array:
    return np.ones((1, n)) if product is None else product


def _environment(left: Array | None, right: Array | None, n: int) -> Array:
    """``left_a right_b`` (r·s, n)."""
    if left is None:
        return np.ones((1, n)) if right is None else right
    if right is None:
        return left
    return (left[:, None] * right[None]).reshape(-1, n)


@final
class _Chains(Surroundings):
    """Products of matrices to the left and right of one core after another."""

    def __init__(self, ranks: tuple[int, ...], keep: bool) -> None:
        self._ranks, self._keep = ranks, keep
        self._left: dict[int, Array | None] = {}
        self._right: dict[int, list[Array | None]] = {}

    def _matrices(self, block: Block, k: int, V: Array) -> Array:
        return block.factor(k, V, None).reshape(self._ranks[k], self._ranks[k + 1], -1)

    def around(self, block: Block, d: int, cores: Cores) -> tuple[Array | None, Array | None]:
        """No left factor, and the whole environment as the right one."""
        D, left, n = len(cores), None, len(block.y)
        if self._keep and d > 0:
            M = self._matrices(block, d - 1, cores[d - 1])
            left = self._left[block.index] = _next_left(self._left[block.index], M)
            return None, _environment(left, self._right[block.index][d], n)
        for k in range(d):
            left = _next_left(left, self._matrices(block, k, cores[k]))
        right: list[Array | None] = [None]
        for k in range(D - 1, d, -1):
            right.append(_next_right(self._matrices(block, k, cores[k]), right[-1]))
        if self._keep:
            self._left[block.index], self._right[block.index] = None, right[::-1]
        return None, _environment(left, right[-1], n)


@final
@dataclass(frozen=True, eq=False)
class TensorTrain(ColumnNetwork):
    """A train of matrices.

    Attributes
    ----------
    cores : D arrays (r_(d-1)·r_d, I_d)
    ranks : tuple of D + 1 int
        r_0 = 1 to r_D = 1.
    """

    cores: Cores
    ranks: tuple[int, ...]

    def with_cores(self, cores: Cores) -> Self:
        """The same train with other weights."""
        return type(self)(cores, self.ranks)

    @classmethod
    def initialise(cls, constants: Sequence[Array], rank: int, rng: np.random.Generator) -> Self:
        """Near the constant function.

        On the diagonal of every core is ± the constant function, scaled so that the paths through
        the train together have the size of the standardised target; everywhere a little noise.
        """
        sizes = [len(c) for c in constants]
        ranks = _ranks(sizes, rank)
        scale = max(ranks) ** (-1.0 / len(sizes))
        cores = []
        for d, c in enumerate(constants):
            shape = ranks[d], ranks[d + 1], len(c)
            wiggle = rng.standard_normal(shape) * (0.3 / np.sqrt(max(len(c) * max(shape[:2]), 1)))
            for a in range(max(shape[:2])):
                sign = float(rng.choice([-1.0, 1.0]))
                wiggle[min(a, shape[0] - 1), min(a, shape[1] - 1)] += sign * c
            cores.append(scale * wiggle.reshape(-1, len(c)))
        return cls(tuple(cores), tuple(ranks))

    @staticmethod
    def widths(sizes: Sequence[int], rank: int) -> tuple[int, ...]:
        """``r_(d-1) r_d``."""
        ranks = _ranks(sizes, rank)
        return tuple(r * s for r, s in pairwise(ranks))

    def is_consistent(self) -> bool:
        """Rows of each core are the product of the ranks to its left and right."""
        r = self.ranks
        if not (len(r) == len(self.cores) + 1 > 1 and r[0] == r[-1] == 1 and min(r) > 0):
            return False
        pairs = zip(self.cores, pairwise(r), strict=True)
        return all(V.ndim == 2 and len(V) == a * b for V, (a, b) in pairs)

    @property
    def rank(self) -> int:
        """The largest."""
        return max(self.ranks)

    @property
    def kept_per_row(self) -> int:
        """Left and right products."""
        return 2 * sum(self.ranks)

    def matrices(self, cores: Cores, phi: Phi, d: int) -> Array:
        """Values of a core, (r_(d-1), r_d, n)."""
        return (cores[d] @ phi[d]).reshape(self.ranks[d], self.ranks[d + 1], -1)

    def chains(self, cores: Cores, phi: Phi) -> tuple[list[Array | None], list[Array | None]]:
        """Products to the left (r_(d-1), n) and right (r_d, n) of every core."""
        M = [self.matrices(cores, phi, d) for d in range(len(cores))]
        left: list[Array | None] = [None]
        right: list[Array | None] = [None]
        for m in M[:-1]:
            left.append(_next_left(left[-1], m))
        for m in M[:0:-1]:
            right.append(_next_right(m, right[-1]))
        return left, right[::-1]

    def portable_environments(
        self, g: Builder, factors: Sequence[Value]
    ) -> tuple[Value, Sequence[Value]]:
        """Chains of matrices from the left and from the right."""
        ranks = list(pairwise(self.ranks))
        M = [g.reshape(F, (r, s, ROWS)) for F, (r, s) in zip(factors, ranks, strict=True)]
        left = [g.reshape(M[0], (ranks[0][1], ROWS))]
        for m, (r, _) in zip(M[1:], ranks[1:], strict=True):
            left.append(g.sum(g.reshape(left[-1], (r, 1, ROWS)) * m))
        response = g.row(left[-1], 0)
        if len(M) == 1:
            return response, [g.expand(1.0, factors[0])]
        right = [g.reshape(M[-1], (ranks[-1][0], ROWS))]
        for m, (_, s) in zip(M[-2:0:-1], ranks[-2:0:-1], strict=True):
            right.append(g.sum(m * g.reshape(right[-1], (1, s, ROWS)), axis=1))
        inner = zip(left[:-2], right[-2::-1], strict=True)
        # an environment is made like a design matrix: all products of two sets of numbers
        return response, [right[-1], *(portable_design(g, a, b) for a, b in inner), left[-2]]

    def response(self, phi: Phi) -> Array:
        """From the first column to the last, O(n·D·I·r²).

        >>> V = (np.array([[1.0, 2.0]]), np.array([[3.0, 0.5]]))   # ranks 1, D = 2, I = 2
        >>> phi = [np.array([[1.0], [10.0]]), np.array([[1.0], [4.0]])]
        >>> TensorTrain(V, (1, 1, 1)).response(phi)                 # (1 + 2*10) * (3 + 0.5*4)
        array([105.])
        """
        left: Array | None = None
        for d in range(len(self.cores)):
            left = _next_left(left, self.matrices(self.cores, phi, d))
        assert left is not None
        return left[0]

    def environments(self, phi: Phi) -> list[Array]:
        """Environments (K_d, n) of all cores."""
        n = phi[0].shape[1]
        return [_environment(a, b, n) for a, b in zip(*self.chains(self.cores, phi), strict=True)]

    def response_and_environment(self, phi: Phi, d: int) -> tuple[Array, Array]:
        """In the order of `response`, and what is right of the core once more from the end."""
        left: Array | None = None
        own = left
        for k in range(len(self.cores)):
            if k == d:
                own = left
            left = _next_left(left, self.matrices(self.cores, phi, k))
        right: Array | None = None
        for k in range(len(self.cores) - 1, d, -1):
            right = _next_right(self.matrices(self.cores, phi, k), right)
        assert left is not None
        return left[0], _environment(own, right, left.shape[1])

    def with_extra_functions(self, weights: Sequence[Array]) -> "TensorTrain":
        """Their weights last."""
        pairs = zip(self.cores, weights, strict=True)
        return TensorTrain(tuple(np.column_stack(pair) for pair in pairs), self.ranks)

    def local(self, phi: Phi, kept: Any = None) -> Local:
        """Left and right products are kept."""
        return _LocalTrain(self, phi, kept)

    def surroundings(self, keep: bool) -> Surroundings:
        """Left and right products."""
        return _Chains(self.ranks, keep)

    def cross_terms(self, phi: Phi, misfit: Array) -> tuple[Array, ...]:
        """Blocks (K_k·I_k, K_m·I_m) for k < m: second derivatives between two cores."""
        D, n = len(self.cores), len(misfit)
        left, right = self.chains(self.cores, phi)
        out = []
        for k in range(D - 1):
            first = np.einsum("n,an,in->ain", misfit, _or_ones(left[k], n), phi[k])
            s = self.ranks[k + 1]
            between = np.broadcast_to(np.eye(s)[:, :, None], (s, s, n))
            for m in range(k + 1, D):
                last = np.einsum("dn,jn->djn", _or_ones(right[m], n), phi[m])
                # core k is (a, b, i), core m is (c, d, j)
                tile = np.einsum("ain,bcn,djn->abicdj", first, between, last, optimize=True)
                out.append(tile.reshape(self.cores[k].size, self.cores[m].size))
                between = np.einsum("bcn,cdn->bdn", between, self.matrices(self.cores, phi, m))
        return tuple(out)

    def cross_matrix(self, terms: tuple[Array, ...]) -> Array:
        """Blocks and their transposes."""
        starts = np.cumsum([0, *(V.size for V in self.cores)])
        D = len(self.cores)
        E = np.zeros((starts[-1],) * 2)
        pairs = [(k, m) for k in range(D - 1) for m in range(k + 1, D)]
        for (k, m), tile in zip(pairs, terms, strict=True):
            E[starts[k] : starts[k + 1], starts[m] : starts[m + 1]] = tile
            E[starts[m] : starts[m + 1], starts[k] : starts[k + 1]] = tile.T
        return E

    def balanced(self, gamma: Cores) -> Self:
        """Scales of the cores such that their penalties are equal."""
        v, g = to_vector(self.cores), to_vector(gamma)
        if not g.all():
            g = to_vector([G if G.any() else np.ones_like(G) for G in gamma])
        lengths = np.array([V.size for V in self.cores])
        penalty = np.add.reduceat(g * v * v, np.cumsum(lengths) - lengths)
        if not (np.all(penalty > 0) and np.all(np.isfinite(penalty))):
            return self
        log = np.log(penalty)
        scale = np.exp(0.5 * (log.mean() - log))
        return self.with_cores(from_vector(v * np.repeat(scale, lengths), self.cores))


@final
class _LocalTrain(Local):
    """Matrices and chains of a block; chains may be kept."""

    def __init__(self, network: TensorTrain, phi: Phi, kept: Any) -> None:
        self._network, self._phi = network, phi
        self.kept = network.chains(network.cores, phi) if kept is None else kept

    @cached_property
    def _Z(self) -> list[Array]:
        n = self._phi[0].shape[1]
        return [_environment(a, b, n) for a, b in zip(*self.kept, strict=True)]

    def response(self) -> Array:
        """Response (n,)."""
        F = self._network.cores[0] @ self._phi[0]
        f: Array = np.einsum("kn,kn->n", F, self._Z[0])
        return f

    def residual(self, y: Array) -> Array:
        """``y - f`` (n,)."""
        return y - self.response()

    def push(self, direction: Cores) -> Array:
        """``Σ_d ⟨Z_d, P_d φ_d⟩``."""
        pairs = zip(direction, self._phi, self._Z, strict=True)
        changes = [np.einsum("kn,kn->n", P @ p, z) for P, p, z in pairs]
        change: Array = np.sum(changes, axis=0)
        return change

    def pull(self, q: Array) -> Cores:
        """``Z_d (q φ_d)ᵀ``."""
        return tuple(pull(z, p, q) for z, p in zip(self._Z, self._phi, strict=True))

    def pull_turned(self, change: Array, misfit: Array, direction: Cores) -> Cores:
        """``Z_d (change φ_d)ᵀ + Ż_d (misfit φ_d)ᵀ``."""
        turned = self._turned(direction)
        return tuple(
            (z * change + dz * misfit) @ p.T
            for z, dz, p in zip(self._Z, turned, self._phi, strict=True)
        )

    def bend(self, direction: Cores) -> Array:
        """``Σ_d ⟨Ż_d, P_d φ_d⟩``: each pair of cores is met twice."""
        pairs = zip(direction, self._phi, self._turned(direction), strict=True)
        second: Array = np.sum([np.einsum("kn,kn->n", P @ p, dz) for P, p, dz in pairs], axis=0)
        return second

    def _turned(self, direction: Cores) -> list[Array]:
        """Derivatives of all environments when the cores move along ``direction``."""
        network, phi, n = self._network, self._phi, self._phi[0].shape[1]
        D = len(direction)
        M = [network.matrices(network.cores, phi, d) for d in range(D)]
        T = [network.matrices(direction, phi, d) for d in range(D)]
        one, zero = np.ones((1, n)), np.zeros((1, n))
        left, right = [(one, zero)], [(one, zero)]
        for m, t in zip(M[:-1], T[:-1], strict=True):
            value, turn = left[-1]
            moved = np.einsum("rn,rsn->sn", value, t) + np.einsum("rn,rsn->sn", turn, m)
            left.append((np.einsum("rn,rsn->sn", value, m), moved))
        for m, t in zip(M[:0:-1], T[:0:-1], strict=True):
            value, turn = right[-1]
            moved = np.einsum("rsn,sn->rn", t, value) + np.einsum("rsn,sn->rn", m, turn)
            right.append((np.einsum("rsn,sn->rn", m, value), moved))
        return [
            _environment(a, db, n) + _environment(da, b, n)
            for (a, da), (b, db) in zip(left, right[::-1], strict=True)
        ]


def _ranks(sizes: Sequence[int], rank: int) -> list[int]:
    """Ranks r_0 to r_D: at most what the sizes to the left or right can use."""
    D = len(sizes)
    ranks = [
        min(rank, int(np.prod(sizes[:d], dtype=float)), int(np.prod(sizes[d:], dtype=float)))
        for d in range(D + 1)
    ]
    ranks[0] = ranks[D] = 1
    return ranks
