"""A whole network in C: from raw values to the response, with nothing in between in memory."""

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Self, final

import numpy as np

from tensorlace._types import Array
from tensorlace.columns.bases import Cosine
from tensorlace.columns.columns import Column, Columns
from tensorlace.columns.warps import MinMax, Mixed, Quantile
from tensorlace.networks.engine import TableResponse
from tensorlace.networks.native.library import library

__all__ = ["CompiledNetwork"]

_CHUNK_ROWS = 64
_LARGEST_EXPONENT = 1000


@final
class _Column(ctypes.Structure):
    """The struct of network.c."""

    _fields_ = [
        ("functions", ctypes.c_long),
        ("core", ctypes.c_void_p),
        ("phi", ctypes.c_void_p),
        ("amplitude", ctypes.c_void_p),
        *((name, ctypes.c_double) for name in ("low", "scale", "line", "curve")),
        *((n, ctypes.c_void_p) for n in ("cells", "knots")),
        *((name, ctypes.c_long) for name in ("n_cells", "n_knots")),
    ]


@final
class _Extra(ctypes.Structure):
    """The struct of network.c."""

    _fields_ = [
        ("left_out", ctypes.c_long),
        *((name, ctypes.c_void_p) for name in ("Z", "variance", "B", "ones")),
        ("S", ctypes.c_long),
        ("bound", ctypes.c_double),
    ]


@final
@dataclass(frozen=True, eq=False)
class CompiledNetwork(TableResponse):
    """Columns of numbers with cosines are warped in C; NumPy makes the features of all others.

    Attributes
    ----------
    columns : Columns
    parts : tuple of dict
        What C is told of each column.
    rank, additive : int
        R, and 1 if there is an additive part, else 0.
    """

    columns: Columns
    parts: tuple[dict[str, Any], ...]
    rank: int
    additive: int

    @classmethod
    def of(cls, columns: Columns, products: Sequence[Array], functions: Array | None) -> Self:
        """Prepare, once for all rows."""
        extended = list(products)
        if functions is not None:  # one more term of each column, added and not multiplied
            own = np.split(functions, np.cumsum(columns.sizes)[:-1], axis=1)
            extended = [np.vstack(pair) for pair in zip(extended, own, strict=True)]
        parts = (
            {"functions": c.basis.n, "core": np.ascontiguousarray(V), **_warp(c)}
            for c, V in zip(columns.columns, extended, strict=True)
        )
        return cls(columns, tuple(parts), len(products[0]), int(functions is not None))

    def response(self, X: Array) -> Array | None:
        """One call."""
        return self._run(self.columns.inputs(X), _Extra(left_out=-1))

    def environment(self, X: Array, d: int) -> tuple[Array, Array, Array] | None:
        """One call, if all columns are warped in C."""
        if not self._whole:
            return None
        X, Z = self.columns.inputs(X), np.empty((self.rank, len(X)))
        f = self._run(X, _Extra(left_out=d, Z=Z.ctypes.data))
        return None if f is None else (f, Z, self.columns.columns[d].variable(X[:, d]))

    def variance(self, X: Array, d: int, B: Array, bound: float) -> tuple[Array, Array] | None:
        """One call, if all columns are warped in C."""
        if not self._whole:
            return None
        out, ones = np.empty(len(X)), np.ones(B.shape[1])
        pointers = {"variance": out, "B": np.ascontiguousarray(B), "ones": ones}
        where = {name: array.ctypes.data for name, array in pointers.items()}
        extra = _Extra(left_out=d, S=len(ones), bound=bound, **where)
        f = self._run(self.columns.inputs(X), extra)
        return None if f is None else (f, out)

    @cached_property
    def _whole(self) -> bool:
        return all("amplitude" in part for part in self.parts)

    @cached_property
    def _structs(self) -> Any:
        """All columns for C; for those that it does not warp, features are missing yet."""
        return (_Column * len(self.parts))(*map(_struct, self.parts))

    def _run(self, X: Array, extra: _Extra) -> Array | None:
        X, structs = np.ascontiguousarray(X, dtype=np.float64), self._structs
        if not self._whole:
            kept = [self._filled(d, X[:, d]) for d in range(len(self.parts))]
            structs = (_Column * len(kept))(*map(_struct, kept))
        numbers = (max(self.columns.sizes) + 2 * self.rank + extra.S) * _CHUNK_ROWS + 7
        work, f = np.empty(numbers), np.empty(len(X))
        size = (len(structs), len(X), self.rank, self.additive)
        pointers = (work.ctypes.data, f.ctypes.data, ctypes.byref(extra))
        odd = _routine()(structs, X.ctypes.data, *size, *pointers)
        return None if odd else f

    def _filled(self, d: int, x: Array) -> dict[str, Any]:
        part, column = self.parts[d], self.columns.columns[d]
        if "amplitude" in part:
            return part
        return {**part, "phi": np.ascontiguousarray(column.phi(column.variable(x)))}


def _warp(column: Column) -> dict[str, Any]:
    """What C needs to make the features; nothing if it cannot."""
    warp, basis = column.warp, column.basis
    if not isinstance(basis, Cosine) or not isinstance(warp, MinMax | Quantile | Mixed):
        return {}
    frame = warp.frame
    if frame.width == 0.0 or abs(frame.exponent) > _LARGEST_EXPONENT:
        return {}
    share = {MinMax: 0.0, Mixed: 0.5, Quantile: 1.0}[type(warp)]
    out = {
        "amplitude": basis.amplitude(),
        "scale": math.ldexp(1.0, -frame.exponent),
        "low": math.ldexp(frame.low, -frame.exponent),
        "line": (1.0 - share) / frame.width,
        "curve": share,
    }
    if isinstance(warp, MinMax):
        return out
    quantile = warp.quantile if isinstance(warp, Mixed) else warp
    cells, knots = quantile.packed
    return {**out, "cells": cells, "knots": knots, "n_cells": len(cells), "n_knots": len(knots)}


def _struct(part: dict[str, Any]) -> _Column:
    plain = {k: v.ctypes.data if isinstance(v, np.ndarray) else v for k, v in part.items()}
    return _Column(**plain)


@lru_cache(maxsize=1)
def _routine() -> Any:
    routine = library().network
    pointer, size = ctypes.c_void_p, ctypes.c_long
    routine.restype = size
    columns, extra = ctypes.POINTER(_Column), ctypes.POINTER(_Extra)
    routine.argtypes = [columns, pointer, *[size] * 4, *[pointer] * 2, extra]
    return routine
