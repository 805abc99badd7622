"""The arithmetic of a block and of a whole network in C."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, final

import numpy as np
import numpy.typing as npt

from tensorlace._types import Array
from tensorlace.columns.bases import Cosine
from tensorlace.columns.bases.basis import Basis
from tensorlace.columns.columns import Columns
from tensorlace.networks.engine import NUMPY, Engine
from tensorlace.networks.native.library import build, library
from tensorlace.networks.native.network import CompiledNetwork

__all__ = ["CompiledEngine", "build"]

_CHUNK_BYTES, _CHUNK_ROWS = 512, 64
_LANE_DOUBLES = 16


@final
@dataclass(frozen=True)
class CompiledEngine(Engine):
    """Fused loops: pair products live in registers and first-level cache, no lock is held."""

    def light(self, rank: int, n_products: int) -> bool:
        """Only the arithmetic counts."""
        return rank * (rank + 1) // 2 * n_products < 2000

    def features(self, basis: Basis, u: Array, dtype: npt.DTypeLike) -> Array:
        """Cosines by rotation, anything else as the basis does it."""
        if not isinstance(basis, Cosine):
            return NUMPY.features(basis, u, dtype)
        phi: Array = np.empty((basis.n, len(u)), dtype=dtype)
        arrays = (np.ascontiguousarray(u), _amplitude(basis))
        _routine("cosines", phi.dtype)(*map(_address, arrays), *phi.shape, _address(phi))
        return phi

    def evaluate(
        self, basis: Basis, u: Array, V: Array, times: Array | None, dtype: npt.DTypeLike
    ) -> Array:
        """Cosines never leave first-level cache."""
        if not isinstance(basis, Cosine):
            return super().evaluate(basis, u, V, times, dtype)
        V = np.ascontiguousarray(V, dtype=dtype)
        out: Array = np.empty((len(V), len(u)), dtype=dtype)
        work = np.empty(basis.n * _CHUNK_ROWS, dtype=dtype)
        arrays = (np.ascontiguousarray(u), _amplitude(basis), V, times)
        _routine("cosine_factor", out.dtype)(
            *map(_address, arrays), *V.shape, len(u), _address(work), _address(out)
        )
        return out

    def products(self, basis: Basis, u: Array, weight: Array | None, dtype: npt.DTypeLike) -> Array:
        """Cosines by rotation, anything else as the basis does it."""
        if not isinstance(basis, Cosine):
            return NUMPY.products(basis, u, weight, dtype)
        lanes, S = 64 // np.dtype(dtype).itemsize, 2 * basis.n - 1
        psi: Array = np.empty((len(u), -(-S // lanes) * lanes), dtype=dtype)
        ones = np.zeros(psi.shape[1])
        ones[:S] = 1.0
        work = np.empty(psi.shape[1] * _CHUNK_ROWS, dtype=dtype)
        weight = None if weight is None else np.ascontiguousarray(weight)
        arrays = (np.ascontiguousarray(u), ones, weight)
        _routine("cosine_products", psi.dtype)(
            *map(_address, arrays), *psi.shape[::-1], *map(_address, (work, psi))
        )
        return psi

    def factor(self, V: Array, phi: Array, times: Array | None) -> Array:
        """One call."""
        V = np.ascontiguousarray(V, dtype=phi.dtype)
        out = np.empty((len(V), phi.shape[1]), dtype=phi.dtype)
        pointers = (_address(a) for a in (V, phi, times))
        _routine("factor", phi.dtype)(*pointers, *V.shape, phi.shape[1], _address(out))
        return out

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
        """One call."""
        R, I = V.shape
        n, S = psi.shape
        V = np.ascontiguousarray(V, dtype=phi.dtype)
        M, slope, rss = np.empty((R * (R + 1) // 2, S)), np.empty((R, I)), np.empty(())
        work = np.empty(2 * R * _CHUNK_BYTES // phi.itemsize, dtype=phi.dtype)
        lanes = np.empty(R * I * _LANE_DOUBLES)
        y = np.ascontiguousarray(y)
        weight = None if weight is None else np.ascontiguousarray(weight)
        rows = (left, right, V, phi, psi, y, weight)
        _routine("core", phi.dtype)(
            *(_address(a) for a in rows),
            *(R, I, S, n),
            *(_address(a) for a in (work, lanes, M, slope, rss)),
        )
        return M, slope, rss

    def moments(self, psi: Array, Z: Array) -> Array:
        """One call."""
        Z, R = np.ascontiguousarray(Z, dtype=psi.dtype), len(Z)
        n, S = psi.shape
        M = np.empty((R * (R + 1) // 2, S))
        work = np.empty(R * _CHUNK_BYTES // psi.itemsize, dtype=psi.dtype)
        _routine("gram", psi.dtype)(*map(_address, (Z, psi)), R, S, n, *map(_address, (work, M)))
        return M

    def block_rows(self, rank: int) -> int:
        """Nothing of size rows times pairs is kept, so only calls count."""
        return 1024

    def table_response(
        self, columns: Columns, products: Sequence[Array], functions: Array | None
    ) -> CompiledNetwork:
        """All columns in one call."""
        return CompiledNetwork.of(columns, products, functions)


@lru_cache(maxsize=64)
def _amplitude(basis: Cosine) -> Array:
    return basis.amplitude()


def _address(a: Array | None) -> int | None:
    return None if a is None else a.ctypes.data


@lru_cache(maxsize=8)
def _routine(name: str, dtype: np.dtype[Any]) -> Any:
    suffix = {"float64": "double", "float32": "float"}[dtype.name]
    routine = getattr(library(), f"{name}_{suffix}")
    pointer, size = ctypes.c_void_p, ctypes.c_long
    routine.restype = None
    routine.argtypes = {
        "factor": [pointer] * 3 + [size] * 3 + [pointer],
        "cosines": [pointer] * 2 + [size] * 2 + [pointer],
        "cosine_factor": [pointer] * 4 + [size] * 3 + [pointer] * 2,
        "cosine_products": [pointer] * 3 + [size] * 2 + [pointer] * 2,
        "gram": [pointer] * 2 + [size] * 3 + [pointer] * 2,
        "core": [pointer] * 7 + [size] * 4 + [pointer] * 5,
    }[name]
    return routine
