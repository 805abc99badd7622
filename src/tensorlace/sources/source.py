"""What every source of rows is: a table of which any row range can be asked for."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
import numpy.typing as npt

from tensorlace._types import Array, Mask
from tensorlace.errors import InputError, SourceError

__all__ = [
    "Chunk",
    "RawRows",
    "RowSource",
    "as_rows",
    "check_size",
    "check_values",
    "column_names",
]

RawRows = tuple[Array, Array, Array | None]
"""``X`` (n, D), ``y`` (n,) and row weights (n,) or None, before their values are checked."""


@final
@dataclass(frozen=True, eq=False)
class Chunk:
    """Consecutive rows of a table. The arrays may be views: read them, do not write to them.

    Attributes
    ----------
    X : (n, D) array
        Features, float64, C order.
    y : (n,) array
        Target.
    weight : (n,) array or None
        Row weights; a weight is a number of repetitions.
    first_row : int
        Where the chunk starts, counted from row 0 of the whole table.
    """

    X: Array
    y: Array
    weight: Array | None
    first_row: int

    @property
    def n_rows(self) -> int:
        """Number of rows in the chunk."""
        return self.X.shape[0]


class RowSource(ABC):
    """Where rows live: any row range, by the same pure call.

    A source can be pickled and sent to another process that sees the same files. It holds paths
    and metadata, never rows (except `ArraySource`, which is its rows).

    Attributes
    ----------
    names : tuple of str
        The D feature columns.
    n_rows : int
        Rows of the whole table.
    target, weight : str or None
        Names of the other columns, for messages; ``weight`` is None if rows have no weights.
    random_access : bool
        Whether a far-away ``read`` costs no more than a near one.
    missing : bool
        Whether a NaN in ``X`` is a missing value; otherwise it is refused.
    """

    names: tuple[str, ...]
    n_rows: int
    target: str = "y"
    weight: str | None = None
    random_access: ClassVar[bool] = True
    missing: bool = False

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


def check_size(size: int) -> None:
    """Refuse a chunk size below one row."""
    if size < 1:
        raise InputError(f"a chunk of {size} rows is no chunk: size >= 1 is needed")


def column_names(names: Sequence[str] | None, n_columns: int) -> tuple[str, ...]:
    """``names``, checked to be one per column; by default ``column 0``, ``column 1``, ..."""
    if names is None:
        return tuple(f"column {k}" for k in range(n_columns))
    if len(names) != n_columns:
        raise InputError(f"{len(names)} names for {n_columns} columns: give one per column")
    return tuple(names)


def check_values(
    source: RowSource, rows: RawRows, first_row: int, locate: Callable[[int], str]
) -> None:
    """Raise `SourceError` at the first missing or infinite value or negative weight.

    ``locate`` says where row k of these rows is. Features may be missing if ``source.missing``.
    """
    X, y, weight = rows
    tables: list[tuple[Array, Sequence[str]]] = [(X, source.names), (y[:, None], (source.target,))]
    if weight is not None:
        tables.append((weight[:, None], (source.weight or "weight",)))
    for table, names in tables:
        # A finite sum needs no mask; a sum may overflow though all is finite, so look closer then.
        with np.errstate(over="ignore", invalid="ignore"):
            total = np.sum(table)
        if np.isfinite(total):
            continue
        wrong = np.isinf if source.missing and table is X else _not_finite
        bad = np.argwhere(wrong(table))
        if len(bad):
            row, column = (int(k) for k in bad[0])
            kind = "missing (NaN or null)" if np.isnan(table[row, column]) else "infinite"
            raise SourceError(
                f"{locate(row)}: column {names[column]!r} is {kind} in row {first_row + row} of "
                f"the table ({len(bad)} such values nearby): drop or impute these rows"
            )
    if weight is not None and weight.size and np.min(weight) < 0:
        row = int(np.argmax(weight < 0))
        raise SourceError(
            f"{locate(row)}: weight {weight[row]:g} is negative in row {first_row + row} of the "
            f"table: weights are numbers of repetitions"
        )


def _not_finite(table: Array) -> Mask:
    return ~np.isfinite(table)


def as_rows(X: Any, y: Any, weight: Any = None) -> RawRows:
    """Arrays in the one layout that all sources share, or `InputError` if shapes disagree."""
    table = _floats("X", X)
    if table.ndim != 2 or table.shape[1] == 0:
        raise InputError(f"X has shape {table.shape}: a table (N, D) with D >= 1 is needed")
    vectors = [
        None if v is None else _vector(name, _floats(name, v), len(table))
        for name, v in (("y", y), ("weight", weight))
    ]
    if vectors[0] is None:
        raise InputError("y is None: a source needs a target")
    return table, vectors[0], vectors[1]


def _floats(name: str, values: Any) -> Array:
    raw: npt.NDArray[Any] = np.asarray(values)
    if raw.dtype.kind not in "biufO":
        raise InputError(f"{name} has type {raw.dtype}: real numbers are needed")
    try:
        return np.ascontiguousarray(raw, dtype=np.float64).reshape(raw.shape)
    except (ValueError, TypeError) as error:
        raise InputError(f"{name} is not numeric: {error}") from error


def _vector(name: str, values: Array, n_rows: int) -> Array:
    if values.shape not in ((n_rows,), (n_rows, 1)):
        raise InputError(f"{name} has shape {values.shape}, X has {n_rows} rows: ({n_rows},) fits")
    return values.reshape(n_rows)
