"""A few training rows that explanations average over."""

from dataclasses import dataclass
from typing import final

import numpy as np

from tensorlace._types import Array
from tensorlace.sources import ArraySource, Chunk, RowSource
from tensorlace.sources.pieces import LocalPieces, Pieces
from tensorlace.sources.sampling import Hashes, hashes, largest_hash

__all__ = ["REFERENCE_ROWS", "ReferenceRows", "gather_reference_rows"]

REFERENCE_ROWS = 4096


@final
@dataclass(frozen=True, eq=False)
class ReferenceRows:
    """Rows of the training table, as numbers.

    Attributes
    ----------
    X : (n, D) array
    weight : (n,) array
        Shares of the rows in averages, which sum to 1.
    """

    X: Array
    weight: Array

    def part(self, size: int) -> "ReferenceRows":
        """The first ``size`` rows."""
        weight = self.weight[:size]
        return ReferenceRows(self.X[:size], weight / weight.sum())


def gather_reference_rows(table: RowSource | Pieces, size: int = REFERENCE_ROWS) -> ReferenceRows:
    """At most ``size`` rows: all, or those whose numbers have the smallest hashes.

    So they are the same for a table in memory, on disk or on a cluster, and any first few of them
    are a sample of the table, too. One pass over a table that is not in memory.
    """
    if isinstance(table, ArraySource):  # no need to look at all rows
        found = _choose(table.read(0, table.n_rows), size, table.n_rows)
    elif isinstance(table, Pieces):
        found = table.reduce(_Choice(size, table.n_rows), _join)
    else:
        pieces = LocalPieces(table)
        try:
            found = pieces.reduce(_Choice(size, table.n_rows), _join)
        finally:
            pieces.close()
    X, weight, key = found
    first = np.argsort(key, kind="stable")[:size]
    total = float(weight[first].sum())
    return ReferenceRows(X[first], weight[first] / total)


@final
@dataclass(frozen=True)
class _Choice:
    """A map over pieces, picklable."""

    size: int
    n_rows: int

    def __call__(self, chunk: Chunk) -> tuple[Array, Array, Hashes]:
        return _choose(chunk, self.size, self.n_rows)


def _choose(chunk: Chunk, size: int, n_rows: int) -> tuple[Array, Array, Hashes]:
    key = hashes(chunk.first_row, chunk.n_rows)
    weight = np.ones(chunk.n_rows) if chunk.weight is None else chunk.weight
    chosen = weight > 0.0
    if n_rows > size:  # some more than needed, so that there are hardly ever fewer
        chosen &= key <= largest_hash(min(size + 8 * round(size**0.5), n_rows), n_rows)
    return chunk.X[chosen], weight[chosen], key[chosen]


def _join(
    a: tuple[Array, Array, Hashes], b: tuple[Array, Array, Hashes]
) -> tuple[Array, Array, Hashes]:
    X, weight, key = (np.concatenate(pair) for pair in zip(a, b, strict=True))
    return X, weight, key
