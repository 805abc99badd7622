"""Whole weights written out as repeated rows: a table says the same whichever way it is written."""

import numpy as np

from tensorlace.sources.arrays import ArraySource
from tensorlace.sources.table import Table

__all__ = ["written_out"]


def written_out(table: Table, most: int) -> Table:
    """The table with each row as often as its weight says, and without weights.

    A table is returned as it is if it is not in memory, if its weights are not whole numbers, or if
    it would have more than ``most`` rows.

    >>> rows = ArraySource([[1.0], [2.0]], [0.0, 5.0], [2.0, 1.0])
    >>> chunk = written_out(rows, 10).whole(0)
    >>> chunk.X.ravel(), chunk.weight
    (array([1., 1., 2.]), None)
    """
    chunk = table.whole(0) if table.in_memory else None
    if chunk is None or chunk.weight is None:
        return table
    times = np.rint(chunk.weight)
    if not (np.array_equal(times, chunk.weight) and 0.0 < times.sum() <= most):
        return table
    rows = np.repeat(np.arange(chunk.n_rows), times.astype(np.intp))
    return ArraySource(chunk.X[rows], chunk.y[rows], None, table.names, missing=table.missing)
