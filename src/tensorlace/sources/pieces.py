"""A table cut into pieces that are worked on independently, here or on a cluster."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar, final

from tensorlace.sources import Chunk, RowSource
from tensorlace.sources.reduction import tree_reduce

__all__ = ["PIECE_ROWS", "LocalPieces", "Pieces"]

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
