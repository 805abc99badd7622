"""Equal rows as one row with a weight: a table says the same whichever way it is written."""

import numpy as np

from tensorlace.sources.arrays import ArraySource
from tensorlace.sources.sampling import row_keys
from tensorlace.sources.table import Table

__all__ = ["distinct_rows"]


def distinct_rows(table: Table) -> Table:
    """The table with each row once, weighted by how often it stands there.

    In the order in which they first appear; rows without weight are left out. A table that is not
    in memory, or has nothing to merge, is returned as it is.

    >>> rows = ArraySource([[1.0], [2.0], [1.0]], [0.0, 5.0, 0.0])
    >>> chunk = distinct_rows(rows).whole(0)
    >>> chunk.X.ravel(), chunk.weight
    (array([1., 2.]), array([2., 1.]))
    """
    chunk = table.whole(0) if table.in_memory else None
    if chunk is None:
        return table
    X, y, weight = chunk.X, chunk.y, chunk.weight
    _, first, which = np.unique(row_keys(X, y), return_index=True, return_inverse=True)
    counted = np.bincount(which, weight)
    kept = first[counted > 0.0]
    if kept.size == 0 or (kept.size == len(y) and weight is None):
        return table
    order = np.argsort(kept)
    sums = counted[counted > 0.0][order]
    rows = kept[order]
    merged = None if np.all(sums == 1.0) else np.asarray(sums, dtype=np.float64)
    return ArraySource(X[rows], y[rows], merged, table.names, missing=table.missing)
