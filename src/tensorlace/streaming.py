"""Rows that stay where they are: read, warped and summed piece by piece in every pass.

A piece is a power of two of leaves on the absolute row index, so its sum is a subtree of the tree
that `rows.MemoryRows` sums by, and the result is the same to the bit. Memory is a few pieces,
however many rows there are.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TypeVar, final

import numpy as np
import numpy.typing as npt

from tensorlace.columns import Columns
from tensorlace.engines import NUMPY, Engine
from tensorlace.rows import (
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

__all__ = ["PIECE_ROWS", "LocalPieces", "Pieces", "StreamedRows"]

T = TypeVar("T")
U = TypeVar("U")

PIECE_ROWS = 1 << 16
"""Rows per piece: a few megabytes of raw numbers, and enough work to hide the reading."""


class Pieces(ABC):
    """A table in pieces of `PIECE_ROWS` rows, over which a pure function is mapped and merged.

    Attributes
    ----------
    names : tuple of str
    target : str
    n_rows : int
    """

    names: tuple[str, ...]
    target: str
    n_rows: int

    @abstractmethod
    def reduce(self, function: Callable[[Chunk], T], merge: Callable[[T, T], T]) -> T:
        """Merge ``function(piece)`` over all pieces, in a tree that only depends on N."""

    @abstractmethod
    def close(self) -> None:
        """Let go of threads or connections."""


@final
class LocalPieces(Pieces):
    """Pieces of a source, read and worked on by threads of this process."""

    def __init__(self, source: RowSource, threads: int = 1) -> None:
        self.names, self.target, self.n_rows = source.names, source.target, source.n_rows
        self._source, self._window = source, 2 * threads
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def reduce(self, function: Callable[[Chunk], T], merge: Callable[[T, T], T]) -> T:
        """One pass over the source, at most a few pieces in memory."""
        source = self._source
        source.verify()
        if not source.random_access:
            chunks = source.chunks(PIECE_ROWS)
            return tree_reduce(ordered_map(self._pool, function, chunks, self._window), merge)

        def read_and_work(start: int) -> T:
            return function(source.read(start, start + PIECE_ROWS))

        starts = range(0, self.n_rows, PIECE_ROWS)
        return tree_reduce(ordered_map(self._pool, read_and_work, starts, self._window), merge)

    def close(self) -> None:
        """Stop the threads."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)


@final
class StreamedRows(Rows):
    """Rows that do not fit, or should not be held, in memory.

    Parameters
    ----------
    pieces : Pieces
    columns : Columns
        Fitted warps and bases.
    target : Standardise
        Scale of y.
    total_weight : float
    block_rows, memory_budget, engine, dtype
        As for `MemoryRows`; a block is a power of two of rows.
    """

    keeps_blocks = False

    def __init__(
        self,
        pieces: Pieces,
        columns: Columns,
        target: Standardise,
        total_weight: float,
        *,
        block_rows: int,
        memory_budget: int = MEMORY_BUDGET,
        engine: Engine = NUMPY,
        dtype: npt.DTypeLike = np.float64,
    ) -> None:
        self.bases = tuple(column.basis for column in columns.columns)
        self.n_rows = pieces.n_rows
        self.total_weight = total_weight
        self.memory_budget, self.engine = memory_budget, engine
        self._pieces, self._columns, self._target = pieces, columns, target
        self._block_rows, self._dtype = block_rows, np.dtype(dtype)

    def reduce(self, kernel: Callable[[Block], Statistic], *, light: bool = False) -> Statistic:
        """One pass over the pieces; reading makes no kernel light."""
        how = (self._block_rows, self._dtype, self.engine)
        work = partial(sum_piece, kernel, self._columns, self._target, *how)
        return self._pieces.reduce(work, add)

    def close(self) -> None:
        """Nothing to do: the pieces belong to somebody else."""


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
