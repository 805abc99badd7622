"""Rows that stay where they are: read, warped and summed piece by piece in every pass.

A piece is a power of two of leaves on the absolute row index, so its sum is a subtree of the tree
that `rows.MemoryRows` sums by, and the result is the same to the bit. Memory is a few pieces,
however many rows there are.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TypeVar, final

import numpy as np

from tensorlace.columns import Columns
from tensorlace.rows import (
    BLOCKS_PER_LEAF,
    MEMORY_BUDGET,
    Block,
    Rows,
    Statistic,
    add,
    cut_blocks,
    leaves_of,
    sum_leaf,
)
from tensorlace.sources import Chunk, RowSource
from tensorlace.summaries import tree_reduce
from tensorlace.warps import Standardise

__all__ = ["StreamedRows", "ordered_map"]

T = TypeVar("T")
U = TypeVar("U")

PIECE_ROWS = 1 << 16
"""Rows per piece: a few megabytes of raw numbers, and enough work to hide the reading."""


@final
class StreamedRows(Rows):
    """Rows of a source that does not fit, or should not be held, in memory.

    Parameters
    ----------
    source : RowSource
    columns : Columns
        Fitted warps and bases.
    target : Standardise
        Scale of y.
    total_weight : float
    block_rows, threads, memory_budget
        As for `MemoryRows`.
    """

    keeps_blocks = False

    def __init__(
        self,
        source: RowSource,
        columns: Columns,
        target: Standardise,
        total_weight: float,
        *,
        block_rows: int,
        threads: int = 1,
        memory_budget: int = MEMORY_BUDGET,
    ) -> None:
        self.bases = tuple(column.basis for column in columns.columns)
        self.n_rows = source.n_rows
        self.total_weight = total_weight
        self.memory_budget = memory_budget
        self._source, self._columns, self._target = source, columns, target
        self._block_rows = block_rows
        leaf = block_rows * BLOCKS_PER_LEAF
        self._piece_rows = leaf * 2 ** max(0, (PIECE_ROWS // leaf).bit_length() - 1)
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def reduce(self, kernel: Callable[[Block], Statistic]) -> Statistic:
        """One pass over the source."""
        self._source.verify()
        total = partial(sum_piece, kernel, self._columns, self._target, self._block_rows)
        if self._source.random_access:
            starts = range(0, self.n_rows, self._piece_rows)
            work: Iterable[Statistic] = ordered_map(
                self._pool,
                lambda a: total(self._source.read(a, a + self._piece_rows)),
                starts,
                2 * self._threads,
            )
        else:
            chunks = self._source.chunks(self._piece_rows)
            work = ordered_map(self._pool, total, chunks, 2 * self._threads)
        return tree_reduce(work, add)

    def close(self) -> None:
        """Stop the threads."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)


def sum_piece(
    kernel: Callable[[Block], Statistic],
    columns: Columns,
    target: Standardise,
    block_rows: int,
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
    )
    return tree_reduce((sum_leaf(kernel, leaf) for leaf in leaves_of(blocks)), add)


def ordered_map(
    pool: ThreadPoolExecutor | None,
    function: Callable[[T], U],
    items: Iterable[T],
    window: int,
) -> Iterator[U]:
    """Results in the order of the items, with at most ``window`` of them under way."""
    if pool is None:
        yield from map(function, items)
        return
    waiting: deque[Future[U]] = deque()
    for item in items:
        waiting.append(pool.submit(function, item))
        if len(waiting) >= window:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()
