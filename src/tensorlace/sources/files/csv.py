"""Rows in CSV files: indexed in one pass over the bytes, then parsed part by part."""

import csv
import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, final

import numpy as np

from tensorlace._types import Array
from tensorlace.errors import SourceError
from tensorlace.sources.files.csv_index import index_csv
from tensorlace.sources.files.frames import csv_frame
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

__all__ = ["CSV_EXTENSIONS", "CsvSource"]

CSV_EXTENSIONS = (".csv",)


@final
class CsvSource(SegmentedSource):
    """Rows in one or more CSV files with a header, in the order of the files' names.

    Opening reads the files once to find where rows are; a read then parses only the parts of about
    4 MiB it overlaps. Text is UTF-8, fields are separated by commas, numbers have points. Numbers
    have the bits of ``float(text)``. In messages, row 0 of a file is the first below its header.

    Parameters
    ----------
    paths : path or list of paths
        File, directory (all ``.csv`` files below it), glob pattern, or a list of these.
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
        pyarrow_module("pyarrow.csv")
        self.target, self.weight = target, weight
        files = [File.open(path) for path in find_files(paths, CSV_EXTENSIONS)]
        self._indices = [index_csv(file.path) for file in files]
        self.names = feature_names(self._indices[0].columns, target, features, weight)
        self._columns = [
            find_columns(file.path, index.columns, self._wanted())
            for file, index in zip(files, self._indices, strict=True)
        ]
        self._index(files, [index.rows for index in self._indices])
        for n in range(len(files)):
            self._check_first_row(n)

    @staticmethod
    def frame(path: Path, *, as_written: bool, text: Sequence[str]) -> Any:
        """A whole file as a data frame; commas, semicolons or tabulators separate its fields."""
        return csv_frame(path, as_written=as_written, text=text)

    def _wanted(self) -> list[str]:
        return [*self.names, self.target, *([] if self.weight is None else [self.weight])]

    def _called(self, k: int) -> str:
        return ""

    def _decode(self, file: int, k: int, n_rows: int) -> RawRows:
        text = self._text(file, k)
        index = self._indices[file]
        arrow, reader = pyarrow_module("pyarrow"), pyarrow_module("pyarrow.csv")
        labels = [str(column) for column in range(len(index.columns))]
        wanted = [labels[column] for column in self._columns[file]]
        try:
            table = reader.read_csv(
                io.BytesIO(text),
                read_options=reader.ReadOptions(
                    column_names=labels, use_threads=False, block_size=len(text) + 1
                ),
                parse_options=reader.ParseOptions(newlines_in_values=index.quoted_newlines),
                convert_options=reader.ConvertOptions(
                    column_types=dict.fromkeys(wanted, arrow.float64()), include_columns=wanted
                ),
            )
        except arrow.lib.ArrowException as error:
            self._blame(file, text, self._first_row(file, k))
            raise SourceError(f"{self.files[file].path}: {first_line(error)}") from error
        if table.num_rows != n_rows:
            first = self._first_row(file, k)
            raise SourceError(
                f"{self.files[file].path}, rows {first} to {first + n_rows}: parsed as "
                f"{table.num_rows} rows: a quote stands alone inside a field"
            )
        X = np.empty((n_rows, len(self.names)))
        vectors: list[Array] = []
        for d, label in enumerate(wanted):
            column = table.column(label).to_numpy()  # null becomes NaN
            if d < len(self.names):
                X[:, d] = column
            else:
                vectors.append(np.array(column, dtype=np.float64))
        return X, vectors[0], vectors[1] if len(vectors) > 1 else None

    def _text(self, file: int, k: int, most: int | None = None) -> bytes:
        start, stop = self._indices[file].offsets[k : k + 2]
        path = self.files[file].path
        try:
            with open(path, "rb") as stream:
                stream.seek(start)
                return stream.read(stop - start if most is None else min(most, stop - start))
        except OSError as error:
            raise SourceError(f"{path}: cannot be read: {error.strerror}") from error

    def _check_first_row(self, file: int) -> None:
        """Find text where numbers belong now, not in the middle of a fit."""
        if self._indices[file].rows[0]:
            text = self._text(file, 0, most=1 << 20)
            self._blame(file, text, 0, most=1)

    def _blame(self, file: int, text: bytes, first: int, most: int | None = None) -> None:
        """Raise `SourceError` at the first row that is ragged or holds what is no number."""
        columns = self._indices[file].columns
        lines = io.StringIO(text.decode("utf-8", errors="replace"), newline="")
        rows = (row for row in csv.reader(lines) if row)
        for number, row in enumerate(rows, start=first):
            if most is not None and number >= first + most:
                return
            where = f"{self.files[file].path}, row {number}"
            if len(row) != len(columns):
                hint = " (a decimal comma?)" if len(row) > len(columns) else ""
                raise SourceError(
                    f"{where}: {len(row)} fields where the header has {len(columns)}{hint}"
                )
            for column in self._columns[file]:
                _check_number(where, columns[column], row[column])


def _check_number(where: str, name: str, text: str) -> None:
    null_values: Any = pyarrow_module("pyarrow.csv").ConvertOptions().null_values
    if text.strip() in null_values:
        return
    try:
        math.isfinite(float(text))
    except ValueError:
        hint = "write numbers with a point" if "," in text else "encode it or leave it out"
        raise SourceError(
            f"{where}: column {name!r} is not numeric, it has {text[:40]!r}: {hint}"
        ) from None
