"""A few training rows that explanations average over."""

from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np

from tensorlace._types import Array
from tensorlace.sources.sampling import Hashes, hashes, largest_hash
from tensorlace.sources.table import Chunk, Table

__all__ = ["REFERENCE_ROWS", "ReferenceRows", "gather_reference_rows"]

REFERENCE_ROWS = 4096
"""Most rows that a model keeps for its explanations."""


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

    def spread(self, size: int) -> "ReferenceRows":
        """At most ``size`` rows, evenly spread."""
        n = len(self.X)
        if n <= size:
            return self
        some = np.linspace(0, n - 1, size).astype(np.intp)
        return ReferenceRows(self.X[some], self.weight[some] / self.weight[some].sum())


def gather_reference_rows(table: Table, size: int = REFERENCE_ROWS) -> ReferenceRows:
    """At most ``size`` rows: all, or those whose numbers have the smallest hashes.

    So they are the same for a table in memory, on disk or on a cluster, and any first few of them
    are a sample of the table, too. One pass over the rows.
    """
    X, weight, key = table.reduce(partial(_choose, size, table.n_rows), _join)
    first = np.argsort(key, kind="stable")[:size]
    total = float(weight[first].sum())
    return ReferenceRows(X[first], weight[first] / total)


def _choose(size: int, n_rows: int, chunk: Chunk) -> tuple[Array, Array, Hashes]:
    """Rows (features, weight, hash) of which ``size`` out of ``n_rows`` can be the first."""
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
