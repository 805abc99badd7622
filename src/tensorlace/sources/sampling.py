"""Rows drawn by a hash of their position: the same rows from any source."""

from functools import partial

import numpy as np
import numpy.typing as npt

from tensorlace._types import Array, Mask
from tensorlace.sources.table import Chunk, Table

__all__ = ["Hashes", "fold_numbers", "hashes", "largest_hash", "part_of", "sample_of"]


def fold_numbers(X: Array, y: Array, n_folds: int) -> npt.NDArray[np.intp]:
    """Fold 0, 1, ... of each row (n,), by what is in the row and not by where it is.

    Rows that are equal share a fold, so that repeating a row is the same as giving it a weight;
    only the order of the values within each column counts, so that units do not; and what stands
    in which column does not matter, so that the order of columns does not.

    >>> fold_numbers(np.array([[1.0], [2.0], [2.0], [3.0]]), np.array([0.0, 1.0, 1.0, 5.0]), 3)
    array([1, 0, 0, 2])
    """
    key = np.zeros(len(y), dtype=np.uint64)
    for column in X.T:
        key += _scrambled(_ranks(column))
    key = _scrambled(key ^ _scrambled(_scrambled(_ranks(y))))
    _, distinct = np.unique(key, return_inverse=True)
    return np.asarray(distinct % n_folds, dtype=np.intp)


Hashes = npt.NDArray[np.uint64]


def _ranks(column: Array) -> Hashes:
    """1, 2, ... for the distinct values of a column (n,)."""
    return np.unique(column, return_inverse=True)[1].astype(np.uint64) + np.uint64(1)


def hashes(first: int, n: int) -> Hashes:
    """Hashes (n,) of the row numbers from ``first`` on (splitmix64).

    >>> hex(hashes(0, 1)[0])  # the first output of the published generator with seed 0
    '0xe220a8397b1dcdaf'
    """
    return _scrambled(np.arange(first + 1, first + n + 1, dtype=np.uint64))


def largest_hash(size: int, n_rows: int) -> np.uint64:
    """Largest hash of a row in a part of about ``size`` rows."""
    return np.uint64(min((size << 64) // n_rows, (1 << 64) - 1))


def sample_of(table: Table, size: int) -> Chunk:
    """About ``size`` rows, or all if there are not many more."""
    if table.in_memory and table.n_rows <= size:
        everything = table.whole(0)
        if everything is not None:
            return everything
    return table.reduce(partial(_chosen, largest_hash(size, table.n_rows)), _below)


def _chosen(largest: np.uint64, chunk: Chunk) -> Chunk:
    """Rows whose hashes are at most ``largest`` and that have weight."""
    chosen = hashes(chunk.first_row, chunk.n_rows) <= largest
    weight = chunk.weight
    if weight is not None:
        chosen &= weight > 0.0
        weight = weight[chosen]
    return Chunk(chunk.X[chosen], chunk.y[chosen], weight, chunk.first_row)


def _below(a: Chunk, b: Chunk) -> Chunk:
    """Rows of ``a``, then those of ``b``."""
    weight = None if a.weight is None or b.weight is None else np.append(a.weight, b.weight)
    X, y = np.concatenate([a.X, b.X]), np.concatenate([a.y, b.y])
    return Chunk(X, y, weight, a.first_row)


def part_of(rows: Mask, size: int) -> npt.NDArray[np.bool_]:
    """Mask of about ``size`` of the chosen rows, evenly spread."""
    where = np.flatnonzero(rows)
    out = np.zeros(len(rows), dtype=np.bool_)
    out[where[:: max(1, -(-where.size // size))]] = True
    return out


def _scrambled(z: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Outputs of splitmix64 at the states ``z``."""
    z = z * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
