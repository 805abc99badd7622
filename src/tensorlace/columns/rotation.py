"""Rotation of the numeric columns to uncorrelated ones.

A product of functions of correlated columns is a poor guess at a function of their differences.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, final

import numpy as np
import numpy.typing as npt

from tensorlace._types import Array
from tensorlace.portable import Builder, Value
from tensorlace.sources.table import Chunk

__all__ = ["Rotation", "Scatter"]

_SMALLEST_SHARE = 1e-10
"""Directions with less of the largest variance are dropped: they are rounding."""

Indices = npt.NDArray[np.intp]


@final
@dataclass(frozen=True, eq=False)
class Scatter:
    """Weighted sums of standardised columns and of their products; a picklable map over pieces.

    Attributes
    ----------
    mean, scale : (K,) arrays
        Rough location and scale of the columns ``which``, which keep the sums well conditioned.
    """

    which: Indices
    mean: Array
    scale: Array

    def __call__(self, chunk: Chunk) -> tuple[float, Array, Array]:
        """Total weight, sums (K,) and sums of products (K, K) of a piece."""
        T = (chunk.X[:, self.which] - self.mean) / self.scale
        W = T if chunk.weight is None else T * chunk.weight[:, None]
        n = float(len(T) if chunk.weight is None else chunk.weight.sum())
        return n, W.sum(axis=0), W.T @ T

    @staticmethod
    def add(
        a: tuple[float, Array, Array], b: tuple[float, Array, Array]
    ) -> tuple[float, Array, Array]:
        """Sums of two pieces together."""
        return a[0] + b[0], a[1] + b[1], a[2] + b[2]


@final
@dataclass(frozen=True, eq=False)
class Rotation:
    """Principal components of some columns, each of unit variance, before the other columns.

    Attributes
    ----------
    which, others : int arrays
        Columns that are rotated, and those that are kept as they are.
    mean : (K,) array
    matrix : (K, K') array
        ``components = (x - mean) @ matrix``.
    """

    which: Indices
    others: Indices
    mean: Array
    matrix: Array

    @classmethod
    def of(cls, scatter: Scatter, sums: tuple[float, Array, Array], n_columns: int) -> Self:
        """From the sums over all rows."""
        n, first, second = sums
        shift = first / n
        covariance = second / n - np.outer(shift, shift)
        sizes = np.sqrt(np.maximum(np.diagonal(covariance), np.finfo(float).tiny))
        values, vectors = np.linalg.eigh(covariance / np.outer(sizes, sizes))
        kept = values > _SMALLEST_SHARE * values[-1]
        vectors = vectors[:, kept][:, ::-1]
        # the sign of an eigenvector is arbitrary: make its largest entry positive
        largest = np.argmax(np.abs(vectors), axis=0)
        vectors = vectors * np.sign(vectors[largest, np.arange(vectors.shape[1])])
        matrix = vectors / np.sqrt(values[kept][::-1])
        return cls(
            scatter.which,
            np.setdiff1d(np.arange(n_columns), scatter.which),
            scatter.mean + scatter.scale * shift,
            matrix / (scatter.scale * sizes)[:, None],
        )

    @property
    def n_components(self) -> int:
        """K', the directions in which the columns vary at all."""
        return self.matrix.shape[1]

    @property
    def n_columns(self) -> int:
        """Columns before the rotation."""
        return len(self.which) + len(self.others)

    def __call__(self, X: Array) -> Array:
        """Components and other columns, (N, K' + others)."""
        components = (X[:, self.which] - self.mean) @ self.matrix
        return np.concatenate([components, X[:, self.others]], axis=1)

    def portable(self, g: Builder, x: Sequence[Value]) -> list[Value]:
        """The rotation as a graph: columns (n,), before and after."""
        centred = g.stack([x[d] for d in self.which]) - self.mean[:, None]
        components = self.matrix.T @ centred
        rotated = [g.row(components, k) for k in range(self.n_components)]
        return rotated + [x[d] for d in self.others]
