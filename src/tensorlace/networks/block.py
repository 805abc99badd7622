"""A block of rows with its features, and the arithmetic of an engine on them."""

from collections.abc import Callable, Mapping, Sequence
from typing import final

import numpy as np
import numpy.typing as npt

from tensorlace._types import Array
from tensorlace.columns.bases.basis import Basis
from tensorlace.networks.engine import NUMPY, Engine

__all__ = ["Block"]


@final
class Block:
    """A run of consecutive rows with its features, computed on demand and kept if asked to.

    Attributes
    ----------
    index : int
        Number of the block, counted from the first row of the table.
    y : (n,) array
        Standardised target.
    weight : (n,) array or None
        Row weights; a weight is a number of repetitions.
    dtype : dtype
        Of the features; target and weights are always double.
    engine : Engine
        What does the arithmetic of the block.
    kept : mapping, optional
        Arrays that are known already, by kind and column.
    """

    def __init__(
        self,
        index: int,
        u: Array,
        y: Array,
        weight: Array | None,
        bases: Sequence[Basis],
        keep: bool,
        dtype: npt.DTypeLike = np.float64,
        engine: Engine = NUMPY,
        kept: Mapping[tuple[str, int], Array] | None = None,
    ) -> None:
        self.index, self.y, self.weight = index, y, weight
        self.dtype, self.engine = np.dtype(dtype), engine
        self._u, self._bases, self._keep = u, bases, keep
        self._kept = dict(kept or {})

    @property
    def n_rows(self) -> int:
        """Number of rows in the block."""
        return self._u.shape[1]

    def phi(self, d: int) -> Array:
        """Features of column d, (I_d, n)."""
        return self._cached(
            "phi", d, lambda: self.engine.features(self._bases[d], self._u[d], self.dtype)
        )

    def psi(self, d: int) -> Array:
        """Product features of column d times the row weights, as `gram.moments` wants them."""
        return self._cached(
            "psi",
            d,
            lambda: self.engine.products(self._bases[d], self._u[d], self.weight, self.dtype),
        )

    def factor(self, d: int, V: Array, times: Array | None) -> Array:
        """Values ``V phi`` (R, n) of the functions of column d, times ``times``."""
        if self._keep:
            return self.engine.factor(V, self.phi(d), times)
        return self.engine.evaluate(self._bases[d], self._u[d], V, times, self.dtype)

    def features(self) -> list[Array]:
        """``phi`` of all columns."""
        return [self.phi(d) for d in range(len(self._bases))]

    def weighted(self, values: Array) -> Array:
        """``values`` (..., n) times the row weights."""
        return values if self.weight is None else values * self.weight

    def working(self, y: Array, weight: Array) -> "Block":
        """The same rows with other targets and weights; features are shared."""
        features = {key: value for key, value in self._kept.items() if key[0] == "phi"}
        how = (self._bases, self._keep, self.dtype, self.engine)
        return Block(self.index, self._u, y, weight, *how, kept=features)

    def _cached(self, kind: str, d: int, make: Callable[[], Array]) -> Array:
        if not self._keep:
            return make()
        value = self._kept.get((kind, d))
        if value is None:
            value = self._kept[kind, d] = make()
        return value
