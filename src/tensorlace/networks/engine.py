"""Engines: the arithmetic of a block of rows, by NumPy here and by compiled code in `native`."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from tensorlace._types import Array
from tensorlace.columns.bases.basis import Basis
from tensorlace.columns.columns import Columns
from tensorlace.networks.gram import block_rows, moments, padded

__all__ = ["NUMPY", "Engine", "NumPyEngine", "TableResponse", "combine"]


def combine(prefix: Array | None, suffix: Array | None, shape: tuple[int, int]) -> Array:
    """Environment from the products to the left and to the right (None: empty product)."""
    if prefix is None:
        return np.ones(shape) if suffix is None else suffix
    return prefix if suffix is None else prefix * suffix


class TableResponse(ABC):
    """Response of one network to rows of a raw table, warps and features included."""

    @abstractmethod
    def response(self, X: Array) -> Array | None:
        """Response (n,) to rows (n, D), or None if some are better left to NumPy."""

    @abstractmethod
    def environment(self, X: Array, d: int) -> tuple[Array, Array, Array] | None:
        """Response (n,) to the same bits, environment (R, n) and variable (n,) of core ``d``.

        None if the rows are better left to NumPy; otherwise no value is a novel one.
        """

    @abstractmethod
    def variance(self, X: Array, d: int, B: Array, bound: float) -> tuple[Array, Array] | None:
        """Response (n,) to the same bits, and variance (n,) if core ``d`` alone is uncertain.

        ``B`` is that of `variances.CoreVariance`. A variance below ``bound`` times the square of
        the sum of the absolute environment is NaN. None as for `environment`.
        """


class Engine(ABC):
    """Arithmetic on a block of rows.

    Features may be float32; then so are the products of factors, while whatever is summed over
    rows ends up in double precision.
    """

    @abstractmethod
    def light(self, rank: int, n_products: int) -> bool:
        """Tell whether a block is done so soon that handing it to another thread costs more."""

    @abstractmethod
    def features(self, basis: Basis, u: Array, dtype: npt.DTypeLike) -> Array:
        """``phi`` (I, n) of a variable (n,)."""

    @abstractmethod
    def products(self, basis: Basis, u: Array, weight: Array | None, dtype: npt.DTypeLike) -> Array:
        """``psi`` times row weights as (n, S'), see `gram.padded`."""

    def evaluate(
        self, basis: Basis, u: Array, V: Array, times: Array | None, dtype: npt.DTypeLike
    ) -> Array:
        """`factor` straight from a variable, to the bits of ``features`` and ``factor``."""
        return self.factor(V, self.features(basis, u, dtype), times)

    @abstractmethod
    def factor(self, V: Array, phi: Array, times: Array | None) -> Array:
        """``(V phi) * times`` (R, n) from a core (R, I), features (I, n) and (R, n) or None."""

    @abstractmethod
    def core(
        self,
        left: Array | None,
        right: Array | None,
        V: Array,
        phi: Array,
        psi: Array,
        y: Array,
        weight: Array | None,
    ) -> tuple[Array, Array, Array]:
        """Sums of the least-squares problem of one core, eq. (wk_update_specs).

        Parameters
        ----------
        left, right : (R, n) array or None
            Products of the factors before and after the core; None is an empty product.
        V : (R, I) array
            The core.
        phi, psi : (I, n) and (n, S') arrays
            Its features, and product features times weights, see `gram.padded`.
        y, weight : (n,) arrays
            Target, and row weights or None.

        Returns
        -------
        moments, residual, rss
            ``M`` (R(R+1)/2, S') of the Gram matrix, ``Aᵀ(y - f)`` (R, I), and the weighted sum
            of squares (). They add up over blocks.
        """

    @abstractmethod
    def moments(self, psi: Array, Z: Array) -> Array:
        """``M`` (R(R+1)/2, S') alone, from padded ``psi`` (n, S') and an environment (R, n)."""

    @abstractmethod
    def block_rows(self, rank: int) -> int:
        """Rows per block that suit the engine: a power of two."""

    def table_response(
        self, columns: Columns, products: Sequence[Array], functions: Array | None
    ) -> TableResponse | None:
        """A sum of products for rows of a raw table, or None if NumPy does it column by column.

        Parameters
        ----------
        columns : Columns
        products : D arrays (R, I_d)
            Cores of the sum of products.
        functions : (1, Σ_d I_d) array or None
            Weights of a sum of one-column functions that is added.
        """
        return None


@final
@dataclass(frozen=True)
class NumPyEngine(Engine):
    """NumPy and its BLAS: the default, and what other engines are tested against."""

    def light(self, rank: int, n_products: int) -> bool:
        """Many short calls, between which threads wait for the interpreter."""
        return rank < 12

    def features(self, basis: Basis, u: Array, dtype: npt.DTypeLike) -> Array:
        """As the basis does it."""
        return basis.phi(u).astype(dtype, copy=False)

    def products(self, basis: Basis, u: Array, weight: Array | None, dtype: npt.DTypeLike) -> Array:
        """As the basis does it."""
        psi = basis.psi(u)
        return padded(psi if weight is None else psi * weight, dtype)

    def factor(self, V: Array, phi: Array, times: Array | None) -> Array:
        """One matrix product, one multiplication."""
        F = V.astype(phi.dtype, copy=False) @ phi
        if times is not None:
            F *= times
        return F

    def core(
        self,
        left: Array | None,
        right: Array | None,
        V: Array,
        phi: Array,
        psi: Array,
        y: Array,
        weight: Array | None,
    ) -> tuple[Array, Array, Array]:
        """Pair products, then one matrix product for all moments."""
        Z = combine(left, right, (len(V), len(y))).astype(phi.dtype, copy=False)
        misfit = y - np.einsum("rn,rn->n", Z, self.factor(V, phi, None))
        weighted = misfit if weight is None else misfit * weight
        e = weighted.astype(phi.dtype, copy=False)
        slope = Z @ (phi * e).T if len(phi) < len(Z) else (Z * e) @ phi.T
        return moments(psi, Z), slope, np.array(weighted @ misfit)

    def moments(self, psi: Array, Z: Array) -> Array:
        """Pair products, then one matrix product."""
        return moments(psi, Z.astype(psi.dtype, copy=False))

    def block_rows(self, rank: int) -> int:
        """As many as keep the pair products close to a core."""
        return block_rows(rank)


NUMPY = NumPyEngine()
