"""Rows that come in blocks from anywhere: any iterable that can be opened again."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, final

from tensorlace.errors import InputError, SourceError
from tensorlace.sources.raw_rows import (
    RawRows,
    as_rows,
    check_size,
    check_values,
    column_names,
    join,
)
from tensorlace.sources.source import RowSource
from tensorlace.sources.table import Chunk

__all__ = ["BlockSource"]


@final
class BlockSource(RowSource):
    """Blocks of any sizes, read from the first to the last in every pass.

    Parameters
    ----------
    factory : callable
        Called once per pass; returns a fresh iterable of ``(X, y)`` or ``(X, y, weight)`` with the
        same rows in the same order.
    names : sequence of str, optional
        Names of the D columns.
    n_rows : int, optional
        Rows of all blocks together; by default one pass is made to count them.

    Examples
    --------
    >>> import numpy as np
    >>> def blocks():
    ...     for k in range(3):
    ...         yield np.full((4, 2), k), np.arange(4)
    >>> [chunk.n_rows for chunk in BlockSource(blocks).chunks(5)]
    [5, 5, 2]
    """

    random_access: ClassVar[bool] = False

    def __init__(
        self,
        factory: Callable[[], Iterable[tuple[Any, ...]]],
        names: Sequence[str] | None = None,
        n_rows: int | None = None,
    ) -> None:
        self._factory = factory
        first: RawRows | None = None
        counted = 0
        for _, block in _converted(factory):
            first = block if first is None else first
            counted += len(block[1])
            if n_rows is not None:
                break
        self.n_rows = counted if n_rows is None else n_rows
        if first is None or self.n_rows < 1:
            raise SourceError("blocks: no rows")
        self.names = column_names(names, first[0].shape[1])
        self.weight = None if first[2] is None else "weight"

    def chunks(self, size: int) -> Iterator[Chunk]:
        """All rows in order, ``size`` at a time, in one pass over the blocks."""
        check_size(size)
        return (self._chunk(rows, first) for first, rows in self._cut(size))

    def verify(self) -> None:
        """Nothing to do: every pass counts its rows."""

    def locate(self, row: int) -> str:
        """Where row ``row`` is, in words."""
        return f"blocks, row {row}"

    def _rows(self, start: int, stop: int) -> RawRows:
        parts = []
        if start < stop:
            for first, (X, y, weight) in self._pass():
                cut = slice(max(start - first, 0), stop - first)
                if first + len(y) > start:
                    parts.append((X[cut], y[cut], None if weight is None else weight[cut]))
                if first + len(y) >= stop:
                    break
        return join(parts, len(self.names), self.weight is not None)

    def _cut(self, size: int) -> Iterator[tuple[int, RawRows]]:
        """The blocks of one pass, cut anew into ``size`` rows each."""
        parts: list[RawRows] = []
        first = held = 0
        for _, (X, y, weight) in self._pass():
            at = 0
            while at < len(y):
                cut = slice(at, at + size - held)
                parts.append((X[cut], y[cut], None if weight is None else weight[cut]))
                held += len(parts[-1][1])
                at += len(parts[-1][1])
                if held == size:
                    yield first, self._joined(parts)
                    first, held, parts = first + size, 0, []
        if parts:
            yield first, self._joined(parts)

    def _joined(self, parts: list[RawRows]) -> RawRows:
        return parts[0] if len(parts) == 1 else join(parts, len(self.names), bool(self.weight))

    def _pass(self) -> Iterator[tuple[int, RawRows]]:
        """Checked blocks, each with its first row; raises if there are more or fewer rows."""
        n_rows = 0
        for k, block in _converted(self._factory):
            if block[0].shape[1] != len(self.names) or (block[2] is None) != (self.weight is None):
                raise SourceError(
                    f"block {k}: {block[0].shape[1]} columns {_weights(block[2])}, block 0 has "
                    f"{len(self.names)} {_weights(self.weight)}"
                )
            n_rows += len(block[1])
            if n_rows > self.n_rows:
                break
            first = n_rows - len(block[1])
            check_values(self, block, first, lambda row, k=k: f"block {k}, row {row}")  # type: ignore[misc]
            yield first, block
        if n_rows != self.n_rows:
            raise SourceError(
                f"blocks: this pass gave {'over ' if n_rows > self.n_rows else ''}"
                f"{min(n_rows, self.n_rows)} rows where {self.n_rows} were expected: the factory "
                f"must return a fresh iterable of the same rows each time"
            )


def _converted(factory: Callable[[], Iterable[tuple[Any, ...]]]) -> Iterator[tuple[int, RawRows]]:
    for k, block in enumerate(factory()):
        if not isinstance(block, tuple | list) or len(block) not in (2, 3):
            raise SourceError(
                f"block {k}: a {type(block).__name__} is not (X, y) or (X, y, weight)"
            )
        try:
            yield k, as_rows(*block)
        except InputError as error:
            raise SourceError(f"block {k}: {error}") from error


def _weights(weight: object) -> str:
    return "without weights" if weight is None else "with weights"
