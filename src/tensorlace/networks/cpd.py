"""The CPD: a sum of products of one-column functions (paper, section 2).

Its cores ``V^(d)`` are (R, I_d). All products of factors run left to right (prefix) or right to
left (suffix), never by division, so a factor that is exactly zero harms nobody.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, ClassVar, Self, final

import numpy as np
import numpy.typing as npt

from tensorlace._types import Array
from tensorlace.networks.block import Block
from tensorlace.networks.column_network import ColumnNetwork
from tensorlace.networks.cores import Cores, Phi, design, from_vector, pull, to_vector
from tensorlace.networks.engine import combine
from tensorlace.networks.network import Averaged, Local, Surroundings
from tensorlace.portable import Builder, Value

__all__ = ["CPD", "balance", "environments", "factors", "initialise", "jacobian", "predict"]


def factors(cores: Cores, phi: Phi) -> list[Array]:
    """Values of all one-column functions, ``F^(d) = V^(d) phi^(d)``: D arrays of (R, n)."""
    return [V @ phi[d] for d, V in enumerate(cores)]


def predict(cores: Cores, phi: Phi) -> Array:
    """Model response ``f`` (n,), lemma (lemma_1): sum over rank terms of products over columns.

    In O(n·D·I·R), theorem (CPD_km).

    >>> import numpy as np
    >>> V = (np.array([[1.0, 2.0]]), np.array([[3.0, 0.5]]))   # R = 1, D = 2, I = 2
    >>> phi = [np.array([[1.0], [10.0]]), np.array([[1.0], [4.0]])]
    >>> predict(V, phi)                                     # (1 + 2*10) * (3 + 0.5*4)
    array([105.])
    """
    product = cores[0] @ phi[0]
    for d in range(1, len(cores)):
        product *= cores[d] @ phi[d]
    f: Array = product.sum(axis=0)
    return f


def suffixes(F: Iterable[Array]) -> list[Array | None]:
    """Products to the right of each core, from the factors of all cores but the first.

    Entry d is ``F^(d+1) * ... * F^(D)``, None for the last core.
    """
    out: list[Array | None] = [None]
    for factor in reversed(list(F)):
        right = out[-1]
        out.append(factor if right is None else factor * right)
    return out[::-1]


def environments(F: Sequence[Array]) -> list[Array]:
    """All ``Z^(d)`` (R, n): the product of every factor but the d-th, eq. (wk_update_specs)."""
    right = suffixes(F[1:])
    out, prefix = [], None
    for d, factor in enumerate(F):
        out.append(combine(prefix, right[d], factor.shape))
        prefix = factor if prefix is None else prefix * factor
    return out


def jacobian(cores: Cores, phi: Phi, which: Sequence[int] | None = None) -> Array:
    """Transposed Jacobian ``A^T`` of the response (P, n), or of the cores ``which`` only.

    Its columns are the gradients of eq. (linear_f), its transpose the ``A`` of eq. (ggn_hess).
    """
    Z = environments(factors(cores, phi))
    return np.concatenate([design(Z[d], phi[d]) for d in _all_or(which, len(cores))])


def _all_or(which: Sequence[int] | None, n: int) -> Sequence[int]:
    return range(n) if which is None else which


def balance(cores: Cores, gamma: Cores) -> Cores:
    """Rescale each rank-one term so that its D penalties ``v_r^(d)T Γ v_r^(d)`` are equal.

    The response is unchanged (the scales of a term multiply to one) and the penalty never rises
    (arithmetic against geometric mean). ``gamma`` holds the prior precisions in the shape of the
    cores; where they are zero the plain norm is balanced instead. Terms with a zero factor stay.
    """
    v, g = to_vector(cores), to_vector(gamma)
    if not g.all():
        g = to_vector([G if G.any() else np.ones_like(G) for G in gamma])
    # all factors in one array: a call per column would cost more than the arithmetic
    lengths = np.repeat([V.shape[1] for V in cores], [len(V) for V in cores])
    penalty = np.add.reduceat(g * v * v, np.cumsum(lengths) - lengths).reshape(len(cores), -1)
    alive = np.all(penalty > 0, axis=0) & np.all(np.isfinite(penalty), axis=0)
    log = np.log(np.where(alive, penalty, 1.0))  # (D, R)
    scale = np.exp(0.5 * (log.mean(axis=0) - log))
    return from_vector(v * np.repeat(scale.ravel(), lengths), cores)


def initialise(
    constants: Sequence[Array], rank: int, rng: np.random.Generator, noise: float = 0.3
) -> Cores:
    """Random cores near the constant function.

    Each factor is ± the constant function (``constants[d]``, (I_d,)) plus a little noise, scaled so
    that the R terms together have the size of the standardised target. Products of D plain random
    factors would vanish or explode. Nothing here depends on the number of rows.
    """
    D = len(constants)
    scale = max(rank, 1) ** (-1.0 / D)
    cores = []
    for c in constants:
        sign: npt.NDArray[np.float64] = rng.choice([-1.0, 1.0], size=(rank, 1))
        wiggle = rng.standard_normal((rank, len(c))) * (noise / np.sqrt(max(len(c), 1)))
        cores.append(scale * (sign * c + wiggle))
    return tuple(cores)


@final
class _Products(Surroundings):
    """Products of the factors to the left and right of one core after another.

    Kept products take N·D·R numbers; if not kept they are recomputed in the same order, which gives
    the same bits.
    """

    def __init__(self, keep: bool) -> None:
        self._keep = keep
        self._left: dict[int, Array | None] = {}
        self._right: dict[int, list[Array | None]] = {}

    def around(self, block: Block, d: int, cores: Cores) -> tuple[Array | None, Array | None]:
        """Products (R, n) to the left and right of core d."""
        if self._keep and d > 0:
            left = self._left[block.index]
            self._left[block.index] = block.factor(d - 1, cores[d - 1], left)
            return self._left[block.index], self._right[block.index][d]
        left = None
        for k in range(d):
            left = block.factor(k, cores[k], left)
        right: list[Array | None] = [None]
        for k in range(len(cores) - 1, d, -1):
            right.append(block.factor(k, cores[k], right[-1]))
        if self._keep:
            self._left[block.index], self._right[block.index] = None, right[::-1]
        return left, right[-1]


@final
class _LocalCPD(Local):
    """Factors and environments of a block; environments may be kept."""

    def __init__(self, cores: Cores, phi: Phi, kept: list[Array] | None) -> None:
        self._cores, self._phi = cores, phi
        self.kept: list[Array] = environments(self._factors) if kept is None else kept

    @cached_property
    def _factors(self) -> list[Array]:
        return factors(self._cores, self._phi)

    def response(self) -> Array:
        """Response (n,)."""
        f: Array = np.einsum("rn,rn->n", self._factors[0], self.kept[0])
        return f

    def residual(self, y: Array) -> Array:
        """``y - f`` (n,)."""
        return y - self.response()

    def push(self, direction: Cores) -> Array:
        """``A p`` (n,): ``Σ_d ⟨Z_d, P_d φ_d⟩``."""
        T = factors(direction, self._phi)
        change: Array = np.einsum("rn,rn->n", T[0], self.kept[0])
        for t, z in zip(T[1:], self.kept[1:], strict=True):
            change += np.einsum("rn,rn->n", t, z)
        return change

    def pull(self, q: Array) -> Cores:
        """``(Aᵀ q)_d = Z_d (q φ_d)ᵀ``."""
        return tuple(pull(z, p, q) for z, p in zip(self.kept, self._phi, strict=True))

    def pull_turned(self, change: Array, misfit: Array, direction: Cores) -> Cores:
        """``Z_d (change φ_d)ᵀ + Ż_d (misfit φ_d)ᵀ``."""
        turned = _turned_environments(self._factors, factors(direction, self._phi))
        return tuple(
            (z * change + dz * misfit) @ p.T
            for z, dz, p in zip(self.kept, turned, self._phi, strict=True)
        )

    def bend(self, direction: Cores) -> Array:
        """Of products of factors ``F_d + t T_d``, one by one."""
        F, T = self._factors, factors(direction, self._phi)
        value, slope, curve = F[0], T[0], np.zeros_like(F[0])
        for f, t in zip(F[1:], T[1:], strict=True):
            curve = curve * f + 2.0 * slope * t
            value, slope = value * f, slope * f + value * t
        second: Array = curve.sum(axis=0)
        return second


def _turned_environments(F: list[Array], T: list[Array]) -> list[Array]:
    """Derivatives of all environments when the factors ``F`` move along ``T``."""
    right = [(np.ones_like(F[0]), np.zeros_like(F[0]))]
    for f, t in zip(F[:0:-1], T[:0:-1], strict=True):
        value, turn = right[-1]
        right.append((f * value, f * turn + t * value))
    left, left_turn = np.ones_like(F[0]), np.zeros_like(F[0])
    out = []
    for f, t, (value, turn) in zip(F, T, reversed(right), strict=True):
        out.append(left_turn * value + left * turn)
        left, left_turn = left * f, left_turn * f + left * t
    return out


@final
@dataclass(frozen=True, eq=False)
class CPD(ColumnNetwork):
    """A sum of R products of one-column functions.

    Attributes
    ----------
    cores : D arrays (R, I_d)
    """

    cores: Cores
    any_order: ClassVar[bool] = True

    def with_cores(self, cores: Cores) -> Self:
        """The same network with other weights."""
        return type(self)(cores)

    @classmethod
    def initialise(cls, constants: Sequence[Array], rank: int, rng: np.random.Generator) -> Self:
        """See `initialise` of this module."""
        return cls(initialise(constants, rank, rng))

    @staticmethod
    def widths(sizes: Sequence[int], rank: int) -> tuple[int, ...]:
        """R each."""
        return (rank,) * len(sizes)

    def is_consistent(self) -> bool:
        """As many rows in all cores; there may be none in a part of a sum."""
        matrices = len(self.cores) > 0 and all(V.ndim == 2 for V in self.cores)
        return matrices and len({len(V) for V in self.cores}) == 1

    @property
    def rank(self) -> int:
        """R."""
        return len(self.cores[0])

    @property
    def n_terms(self) -> int:
        """R."""
        return len(self.cores[0])

    @property
    def kept_per_row(self) -> int:
        """An environment per core."""
        return len(self.cores) * self.rank

    def response(self, phi: Phi) -> Array:
        """See `predict`."""
        return predict(self.cores, phi)

    def response_and_environment(self, phi: Phi, d: int) -> tuple[Array, Array]:
        """One factor at a time, in the order of `predict`."""
        own = self.cores[d] @ phi[d]
        Z = np.ones_like(own)
        for k in range(d):
            Z *= self.cores[k] @ phi[k]
        product = np.multiply(Z, own, out=own)
        for k in range(d + 1, len(self.cores)):
            F = self.cores[k] @ phi[k]
            product *= F
            Z *= F
        return product.sum(axis=0), Z

    def averaged(self, phi: list[Array], weight: Array, p: int, own: Array) -> Averaged:
        """The factor of the column comes out of the average of the products of all others."""
        V, R = self.cores[p], self.rank
        # the network without the column: its factor is 1
        rest = (*self.cores[:p], np.ones((R, 1)), *self.cores[p + 1 :])
        others = [*phi[:p], np.ones((1, len(weight))), *phi[p + 1 :]]
        Z = environments(factors(rest, others))
        average = [(z * weight) @ f.T for z, f in zip(Z, others, strict=True)]  # (R, I_e)
        F = V @ own  # (R, k)
        mean: Array = average[p][:, 0] @ F
        gradient = tuple(
            (a[:, :, None] * (own if e == p else F[:, None])).reshape(-1, own.shape[1])
            for e, a in enumerate(average)
        )
        return Averaged(mean, gradient, average[p][:, 0])

    def with_extra_functions(self, weights: Sequence[Array]) -> "CPD":
        """Their weights last."""
        return CPD(tuple(np.column_stack([V, w]) for V, w in zip(self.cores, weights, strict=True)))

    def environments(self, phi: Phi) -> list[Array]:
        """See `environments` of this module."""
        return environments(factors(self.cores, phi))

    def portable_environments(
        self, g: Builder, factors: Sequence[Value]
    ) -> tuple[Value, Sequence[Value]]:
        """Products of all factors but one, by prefixes and suffixes."""
        before = list(accumulate(factors, Value.__mul__))
        after = list(accumulate(reversed(factors), Value.__mul__))[::-1]
        response = g.sum(before[-1])
        if len(factors) == 1:
            return response, [g.expand(1.0, factors[0])]
        inner = [before[d - 1] * after[d + 1] for d in range(1, len(factors) - 1)]
        return response, [after[1], *inner, before[-2]]

    def local(self, phi: Phi, kept: Any = None) -> Local:
        """Environments are kept."""
        return _LocalCPD(self.cores, phi, kept)

    def surroundings(self, keep: bool) -> Surroundings:
        """Prefix and suffix products."""
        return _Products(keep)

    def cross_terms(self, phi: Phi, misfit: Array) -> tuple[Array, ...]:
        """``Φ^(k)ᵀ diag(misfit Z^(k,m)_r) Φ^(m)`` (R, I_k, I_m), theorem (full_hess).

        For two different columns k < m and the same rank term r; all others are zero.
        """
        F, D = factors(self.cores, phi), len(self.cores)
        out = []
        for k in range(D - 1):
            # all columns but k, then all but k and m: products, no division
            Z = environments([f for j, f in enumerate(F) if j != k])
            for m in range(k + 1, D):
                left = (Z[m - 1] * misfit)[:, None, :] * phi[k]  # (R, I_k, n)
                out.append(left @ phi[m].T)  # (R, I_k, I_m)
        return tuple(out)

    def cross_matrix(self, terms: tuple[Array, ...]) -> Array:
        """Tiles on the diagonals of rank terms."""
        starts = np.cumsum([0, *(V.size for V in self.cores)])
        D, R = len(self.cores), self.rank
        E = np.zeros((starts[-1], starts[-1]))
        pairs = [(k, m) for k in range(D - 1) for m in range(k + 1, D)]
        for (k, m), part in zip(pairs, terms, strict=True):
            tile = np.zeros((R, part.shape[1], R, part.shape[2]))
            tile[np.arange(R), :, np.arange(R), :] = part
            corner = tile.reshape(R * part.shape[1], R * part.shape[2])
            E[starts[k] : starts[k + 1], starts[m] : starts[m + 1]] = corner
            E[starts[m] : starts[m + 1], starts[k] : starts[k + 1]] = corner.T
        return E

    def balanced(self, gamma: Cores) -> Self:
        """See `balance`."""
        return self.with_cores(balance(self.cores, gamma))

    def without_term(self, r: int, like: Cores | None = None) -> Cores:
        """Without the r-th row of every core."""
        return tuple(np.delete(V, r, axis=0) for V in like or self.cores)

    def products(self) -> tuple[Cores, Array | None]:
        """Its cores."""
        return self.cores, None
