"""What every source of rows is: a table of which any row range can be asked for."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import ClassVar, TypeVar, final

from tensorlace.errors import InputError
from tensorlace.sources.raw_rows import RawRows, check_size, check_values
from tensorlace.sources.reduction import ordered_map, tree_reduce
from tensorlace.sources.table import PIECE_ROWS, Chunk, Table

__all__ = ["RowSource"]

T = TypeVar("T")


COPIES = 3
"""Times the numbers of a table that a fit in memory holds: as read, warped, and on the way."""


class RowSource(Table):
    """A table that is read here: any row range, by the same pure call.

    A source can be pickled and sent to another process that sees the same files. It holds paths
    and metadata, never rows (except `ArraySource`, which is its rows).

    Attributes
    ----------
    random_access : bool
        Whether a far-away ``read`` costs no more than a near one.
    """

    random_access: ClassVar[bool] = True

    @final
    def read(self, start: int, stop: int) -> Chunk:
        """Rows ``start`` to ``stop`` (exclusive, clipped at ``n_rows``), checked to be finite.

        Raises
        ------
        SourceError
            If a value is infinite, or missing where none may be, or the rows cannot be read.
        """
        if start < 0 or stop < start:
            raise InputError(f"rows {start} to {stop} are no range: 0 <= start <= stop is needed")
        start, stop = min(start, self.n_rows), min(stop, self.n_rows)
        return self._chunk(self._rows(start, stop), start)

    def chunks(self, size: int) -> Iterator[Chunk]:
        """All rows in order, ``size`` at a time (the last chunk may be shorter)."""
        check_size(size)
        return (self.read(start, start + size) for start in range(0, self.n_rows, size))

    @final
    def reduce(
        self, work: Callable[[Chunk], T], merge: Callable[[T, T], T], *, threads: int = 1
    ) -> T:
        """One pass over the rows, at most a few pieces in memory."""
        self.verify()
        if not self.random_access:
            return tree_reduce(ordered_map(work, self.chunks(PIECE_ROWS), threads), merge)

        def read_and_work(start: int) -> T:
            return work(self.read(start, start + PIECE_ROWS))

        starts = range(0, self.n_rows, PIECE_ROWS)
        return tree_reduce(ordered_map(read_and_work, starts, threads), merge)

    @final
    def whole(self, memory_budget: int) -> Chunk | None:
        """All rows, if they are in memory or fit; those with weights are left where they are."""
        n_bytes = 8 * COPIES * self.n_rows * (len(self.names) + 2)
        fits = n_bytes <= memory_budget and self.weight is None  # a weight may be zero
        return next(self.chunks(self.n_rows)) if fits or self.in_memory else None

    @abstractmethod
    def verify(self) -> None:
        """Raise `SourceError` if the files changed since the source was opened."""

    @abstractmethod
    def locate(self, row: int) -> str:
        """Where row ``row`` of the table is, in words: file, row group, row of the file."""

    @abstractmethod
    def _rows(self, start: int, stop: int) -> RawRows:
        """Rows of a range that lies inside the table."""

    @final
    def _chunk(self, rows: RawRows, first_row: int) -> Chunk:
        check_values(self, rows, first_row, lambda k: self.locate(first_row + k))
        X, y, weight = rows
        for array in rows:
            if array is not None:
                array.flags.writeable = False
        return Chunk(X, y, weight, first_row)
