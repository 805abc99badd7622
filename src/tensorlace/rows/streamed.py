"""Rows that stay where they are: read, warped and summed piece by piece in every pass.

A piece is a power of two of leaves on the absolute row index, so its sum is a subtree of the tree
that `rows.MemoryRows` sums by, and the result is the same to the bit. Memory is a few pieces,
however many rows there are.
"""

from collections.abc import Callable
from functools import partial
from typing import final

import numpy as np
import numpy.typing as npt

from tensorlace.columns.columns import Columns
from tensorlace.columns.warps import Standardise
from tensorlace.likelihoods.gaussian import GAUSSIAN
from tensorlace.likelihoods.likelihood import Likelihood
from tensorlace.networks.engine import NUMPY, Engine
from tensorlace.rows.memory import (
    MEMORY_BUDGET,
    Block,
    Rows,
    Statistic,
    add,
    cut_blocks,
    leaves_of,
    sum_leaf,
)
from tensorlace.sources.reduction import tree_reduce
from tensorlace.sources.table import Chunk, Table

__all__ = ["StreamedRows"]


@final
class StreamedRows(Rows):
    """Rows that do not fit, or should not be held, in memory.

    Parameters
    ----------
    table : Table
    columns : Columns
        Fitted warps and bases.
    target : Standardise
        Scale of y.
    total_weight : float
    block_rows, threads, memory_budget, engine, dtype, likelihood
        As for `MemoryRows`; a block is a power of two of rows.
    """

    keeps_blocks = False

    def __init__(
        self,
        table: Table,
        columns: Columns,
        target: Standardise,
        total_weight: float,
        *,
        block_rows: int,
        threads: int = 1,
        memory_budget: int = MEMORY_BUDGET,
        engine: Engine = NUMPY,
        dtype: npt.DTypeLike = np.float64,
        likelihood: Likelihood = GAUSSIAN,
    ) -> None:
        self.likelihood = likelihood
        self.bases = tuple(column.basis for column in columns.columns)
        self.n_rows = table.n_rows
        self.total_weight = total_weight
        self.memory_budget, self.engine = memory_budget, engine
        self._table, self._columns, self._target = table, columns, target
        self._block_rows, self._threads, self._dtype = block_rows, threads, np.dtype(dtype)

    def reduce(self, kernel: Callable[[Block], Statistic], *, light: bool = False) -> Statistic:
        """One pass over the pieces; reading makes no kernel light."""
        how = (self._block_rows, self._dtype, self.engine)
        work = partial(sum_piece, kernel, self._columns, self._target, *how)
        return self._table.reduce(work, add, threads=self._threads)

    def close(self) -> None:
        """Nothing to do: the threads of a pass end with it."""


def sum_piece(
    kernel: Callable[[Block], Statistic],
    columns: Columns,
    target: Standardise,
    block_rows: int,
    dtype: npt.DTypeLike,
    engine: Engine,
    chunk: Chunk,
) -> Statistic:
    """Statistic of consecutive rows: a pure function, on a thread here or on another machine."""
    weight = chunk.weight
    with np.errstate(over="ignore", invalid="ignore"):
        u, y = columns.variables(chunk.X), target(chunk.y)
    if weight is not None and not np.all(weight):
        # an absent row may lie where a polynomial overflows, and 0 · ∞ is no number
        u, y = np.where(weight > 0, u, 0.0), np.where(weight > 0, y, 0.0)
    blocks = cut_blocks(
        u,
        y,
        weight,
        [column.basis for column in columns.columns],
        block_rows,
        first=chunk.first_row // block_rows,
        dtype=dtype,
        engine=engine,
    )
    return tree_reduce((sum_leaf(kernel, leaf) for leaf in leaves_of(blocks)), add)
