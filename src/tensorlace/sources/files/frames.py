"""Whole files as data frames: text, dates and categories beside numbers."""

import csv
import io
import os
import re
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from tensorlace.errors import SourceError

__all__ = ["csv_frame", "parquet_frame", "with_dates"]

_ISO = re.compile(
    r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d(:?\d\d)?)?)?", re.ASCII
)
"""Dates, and times of day with or without a zone, by ISO 8601."""

_ROUND_TRIPS = (3, 1)
"""Version of pandas from which numbers in text are read to the last bit without being asked."""


def csv_frame(path: Path, *, as_written: bool, text: Sequence[str]) -> Any:
    """Rows of a CSV file; its separator is a comma, a semicolon or a tabulator."""
    import pandas as pd

    source = _csv_text(path)
    how: dict[str, Any] = {"sep": _separator(source), "index_col": False}
    _check_lines(source, how["sep"])
    if as_written:
        how |= {"dtype": str, "na_filter": False}
    else:
        how |= {"dtype": dict.fromkeys(text, str), "low_memory": False}
        if tuple(map(int, pd.__version__.split(".")[:2])) < _ROUND_TRIPS:
            how |= {"float_precision": "round_trip"}
    return pd.read_csv(io.StringIO(source), **how)


def parquet_frame(path: Path) -> Any:
    """Rows of a Parquet file."""
    import pandas as pd

    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise SourceError("Parquet needs pyarrow: pip install 'tensorlace[cli]'") from error
    with _opened(path) as file:
        return pd.read_parquet(file).reset_index(drop=True)


def with_dates(frame: Any, text: Sequence[str] = ()) -> Any:
    """The frame with ISO dates in place of text, but in the columns that are to stay ``text``."""
    for name in frame.columns:
        if name not in text:
            frame[name] = _as_dates(frame[name])
    return frame


def _as_dates(column: Any) -> Any:
    """The column as dates if all values that are not missing are ISO dates."""
    import pandas as pd

    present = column.dropna()
    if len(present) == 0 or not all(isinstance(v, str) and _ISO.fullmatch(v) for v in present):
        return column
    try:
        parsed = pd.to_datetime(column, format="ISO8601", utc=True)
    except ValueError:  # such as the 30th of February
        return column
    return parsed.dt.tz_localize(None)


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """The file, or a pipe; a device may never end."""
    with open(path, "rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
            raise SourceError("it is a device")
        yield file


def _csv_text(path: Path) -> str:
    """Text of a file, the same for every later look at it."""
    if str(path) == "-":
        data = _standard_input()
    else:
        with _opened(path) as file:
            data = file.read()
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise SourceError("it is UTF-16 from line 1 on: save the file as UTF-8")
    null = data.find(b"\0")
    if null >= 0:
        line = data.count(b"\n", 0, null) + 1
        raise SourceError(f"line {line} has a null byte: it is not a CSV file in UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SourceError(f"line {line} is not UTF-8: save the file as UTF-8") from error


@cache
def _standard_input() -> bytes:
    return sys.stdin.buffer.read()


def _separator(source: str) -> str:
    """Comma, semicolon or tabulator, whichever the header has most of."""
    header = source.split("\n", 1)[0]
    return max(",;\t", key=header.count)


def _check_lines(source: str, separator: str) -> None:
    """Refuse lines that are longer or shorter than the header, and a name that is there twice."""
    reader = csv.reader(io.StringIO(source), delimiter=separator, strict=True)
    try:
        header = next((line for line in reader if line), [])
        if not header:
            raise SourceError("it is empty")
        for k, name in enumerate(header):
            if name in header[:k]:
                raise SourceError(f"the header has {name!r} twice: rename one")
        for line in reader:
            if line and len(line) != len(header):
                raise SourceError(
                    f"line {reader.line_num} has {len(line)} fields, the header has {len(header)}"
                )
    except csv.Error as error:
        raise SourceError(f"line {reader.line_num}: {error}") from error
