"""Rows in Parquet files: only the row groups and columns that are asked for are decoded."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, final

import numpy as np
import numpy.typing as npt

from tensorlace._types import Array
from tensorlace.errors import SourceError
from tensorlace.sources.files.frames import parquet_frame
from tensorlace.sources.files.paths import (
    File,
    Paths,
    feature_names,
    find_columns,
    find_files,
    first_line,
    pyarrow_module,
)
from tensorlace.sources.files.segments import SegmentedSource
from tensorlace.sources.raw_rows import RawRows

__all__ = ["PARQUET_EXTENSIONS", "ParquetSource"]

PARQUET_EXTENSIONS = (".parquet", ".pq")

PANDAS_INDEX = "__index_level_"
"""How the columns begin in which pandas keeps the row labels of a frame; they are no features."""


@final
class ParquetSource(SegmentedSource):
    """Rows in one or more Parquet files, in the order of the files' names.

    A read decodes the row groups it overlaps, and keeps the last ones for the next read, so memory
    is that of two row groups (or 32 MiB) and does not grow with the number of rows.

    Parameters
    ----------
    paths : path or list of paths
        File, directory (all Parquet files below it), glob pattern, or a list of these.
    target : str
        Column of the target.
    features : sequence of str, optional
        Feature columns; by default all columns of the first file but target and weight.
    weight : str, optional
        Column of row weights.
    """

    def __init__(
        self,
        paths: Paths,
        target: str,
        features: Sequence[str] | None = None,
        weight: str | None = None,
    ) -> None:
        self.target, self.weight = target, weight
        files = [File.open(path) for path in find_files(paths, PARQUET_EXTENSIONS)]
        rows = []
        for n, file in enumerate(files):
            with _opened(file.path) as parquet:
                metadata, schema = parquet.metadata, parquet.schema_arrow
            if n == 0:
                named = [name for name in schema.names if not name.startswith(PANDAS_INDEX)]
                self.names = feature_names(named, target, features, weight)
            find_columns(file.path, schema.names, self._wanted())
            for name in self._wanted():
                _check_numeric(file.path, name, schema.field(name).type)
            rows.append([metadata.row_group(k).num_rows for k in range(metadata.num_row_groups)])
        self._index(files, rows)

    @staticmethod
    def frame(path: Path, *, as_written: bool, text: Sequence[str]) -> Any:
        """A whole file as a data frame; its columns have types of their own."""
        return parquet_frame(path)

    def _wanted(self) -> list[str]:
        return [*self.names, self.target, *([] if self.weight is None else [self.weight])]

    def _called(self, k: int) -> str:
        return f", row group {k}"

    def _decode(self, file: int, k: int, n_rows: int) -> RawRows:
        """One column after the other, so that little more than the result is alive."""
        path = self.files[file].path
        where = f"{path}{self._called(k)}"
        X: Array | None = None
        vectors: list[Array] = []
        with _opened(path, self._scratch.get(path)) as parquet:
            self._scratch[path] = parquet.metadata  # the footer need not be read again
            for d, name in enumerate(self._wanted()):
                column = _column(parquet, k, name, where)
                if len(column) != n_rows:
                    raise SourceError(
                        f"{where}: column {name!r} has {len(column)} of {n_rows} rows: the file is "
                        f"damaged"
                    )
                if d >= len(self.names):
                    vectors.append(np.ascontiguousarray(column))
                    continue
                if X is None:
                    X = np.empty((n_rows, len(self.names)))
                X[:, d] = column
        assert X is not None
        return X, vectors[0], vectors[1] if len(vectors) > 1 else None


@contextmanager
def _opened(path: str, metadata: Any = None) -> Iterator[Any]:
    """A Parquet file, closed afterwards; whatever pyarrow dislikes names the file."""
    parquet = pyarrow_module("pyarrow.parquet")
    with _blamed(path):
        file = parquet.ParquetFile(path, metadata=metadata, page_checksum_verification=True)
    with file:
        yield file


@contextmanager
def _blamed(where: str) -> Iterator[None]:
    errors = pyarrow_module("pyarrow").lib.ArrowException
    try:
        yield
    except SourceError:
        raise
    except (errors, OSError, ValueError, MemoryError, OverflowError) as error:
        raise SourceError(
            f"{where}: not a whole Parquet file ({first_line(error)}): write it again"
        ) from error


def _column(parquet: Any, k: int, name: str, where: str) -> npt.NDArray[Any]:
    """One column of a row group; nulls become NaN."""
    arrow = pyarrow_module("pyarrow")
    with _blamed(f"{where}, column {name!r}"):
        column = parquet.read_row_group(k, columns=[name], use_threads=False).column(name)
        if arrow.types.is_boolean(column.type):
            column = column.cast(arrow.uint8())
        values: npt.NDArray[Any] = column.to_numpy()
        return values.astype(np.float64, copy=False)


def _check_numeric(path: str, name: str, kind: Any) -> None:
    types = pyarrow_module("pyarrow").types
    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    if not any(test(kind) for test in tests):
        raise SourceError(
            f"{path}: column {name!r} is not numeric, its type is {kind}: encode it or leave it out"
        )
