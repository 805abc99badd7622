"""Tables in files that are decoded one segment at a time, and the segments last decoded."""

import itertools
from abc import abstractmethod
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from threading import Lock
from typing import Any, final

from tensorlace.errors import SourceError
from tensorlace.sources.files.paths import File, Paths
from tensorlace.sources.raw_rows import RawRows, join
from tensorlace.sources.source import RowSource

__all__ = ["SegmentedSource"]

CACHE_BYTES = 32 << 20
"""Memory for the segments last decoded, per source."""


@final
class _Recent:
    """The segments last decoded: as many as fit in ``budget`` bytes, and two in any case.

    Threads that ask for the same segment wait for the one that decodes it.
    """

    def __init__(self, budget: int) -> None:
        self._budget, self._total, self._lock = budget, 0, Lock()
        self._kept: OrderedDict[int, tuple[int, Future[RawRows]]] = OrderedDict()

    def get(self, key: int, n_bytes: int, decode: Callable[[], RawRows]) -> RawRows:
        with self._lock:
            known = self._kept.get(key)
            if known is not None:
                self._kept.move_to_end(key)
            else:
                while len(self._kept) > 1 and n_bytes + self._total > self._budget:
                    self._total -= self._kept.popitem(last=False)[1][0]
                mine: Future[RawRows] = Future()
                self._kept[key] = (n_bytes, mine)
                self._total += n_bytes
        if known is not None:
            return known[1].result()
        try:
            mine.set_result(decode())
        except BaseException as error:
            with self._lock:
                if self._kept.pop(key, None) is not None:
                    self._total -= n_bytes
            mine.set_exception(error)
            raise
        return mine.result()


class SegmentedSource(RowSource):
    """A table in files, each a run of segments that are decoded whole.

    Subclasses set `names`, `target` and `weight`, then call ``_index`` with the files and the rows
    of the segments of each; they say how a segment is decoded. ``_scratch`` is for what they want
    to remember about a file but not to send to other processes.
    """

    @abstractmethod
    def __init__(
        self,
        paths: Paths,
        target: str,
        features: Sequence[str] | None = None,
        weight: str | None = None,
    ) -> None:
        """Open files by the names of their columns."""

    @staticmethod
    @abstractmethod
    def frame(path: Path, *, as_written: bool, text: Sequence[str]) -> Any:
        """A whole file as a data frame, with columns of any kind.

        Parameters
        ----------
        path : Path
        as_written : bool
            Leave cells the text they are, where they are text.
        text : sequence of str
            Columns that are text also if they look like numbers.
        """

    @final
    def _index(self, files: Sequence[File], rows: Sequence[Sequence[int]]) -> None:
        self.files = tuple(files)
        sizes = list(itertools.chain.from_iterable(rows))
        self._starts = [0, *itertools.accumulate(sizes)]
        self._file_segments = [0, *itertools.accumulate(len(r) for r in rows)]
        self.n_rows = self._starts[-1]
        if self.n_rows == 0:
            raise SourceError(f"{self.files[0].path}: no rows")
        self._recent = _Recent(CACHE_BYTES)
        self._scratch: dict[str, Any] = {}

    @final
    def verify(self) -> None:
        """Raise `SourceError` if a file changed since the source was opened."""
        for file in self.files:
            file.verify()

    @final
    def locate(self, row: int) -> str:
        """Where row ``row`` of the table is: file, segment, and row of the file."""
        segment = bisect_right(self._starts, row) - 1
        file, k = self._place(segment)
        first = self._starts[self._file_segments[file]]
        return f"{self.files[file].path}{self._called(k)}, row {row - first}"

    @abstractmethod
    def _called(self, k: int) -> str:
        """How messages call segment k of a file (may be empty)."""

    @abstractmethod
    def _decode(self, file: int, k: int, n_rows: int) -> RawRows:
        """Segment k of a file, which has ``n_rows`` rows."""

    @final
    def _place(self, segment: int) -> tuple[int, int]:
        """File of a segment, and its number in that file."""
        file = bisect_right(self._file_segments, segment) - 1
        return file, segment - self._file_segments[file]

    @final
    def _first_row(self, file: int, k: int) -> int:
        """Row of the file at which its segment k starts."""
        first = self._file_segments[file]
        return self._starts[first + k] - self._starts[first]

    @final
    def _segment(self, segment: int) -> RawRows:
        n_rows = self._starts[segment + 1] - self._starts[segment]
        file, k = self._place(segment)

        def decode() -> RawRows:
            self.files[file].verify_status()
            return self._decode(file, k, n_rows)

        return self._recent.get(segment, 8 * n_rows * (len(self.names) + 2), decode)

    @final
    def _rows(self, start: int, stop: int) -> RawRows:
        parts = []
        segment = bisect_right(self._starts, start) - 1
        while start < stop:
            first, end = self._starts[segment], self._starts[segment + 1]
            if end > start:
                X, y, weight = self._segment(segment)
                cut = slice(start - first, min(stop, end) - first)
                parts.append((X[cut], y[cut], None if weight is None else weight[cut]))
                start = min(stop, end)
            segment += 1
        if len(parts) == 1:
            return parts[0]
        return join(parts, len(self.names), self.weight is not None)

    def __getstate__(self) -> dict[str, Any]:
        """Paths and metadata: what was decoded stays here."""
        return {**self.__dict__, "_recent": None, "_scratch": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Start with nothing decoded."""
        self.__dict__.update(state, _recent=_Recent(CACHE_BYTES), _scratch={})
