"""Tables in files: CSV and Parquet, with types picked from what is there or what a model needs."""

import csv
import difflib
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

import numpy as np

from tensorlace._atomic import write_atomically
from tensorlace.cli.cells import as_dates, check_numbers, harmless
from tensorlace.columns.encoding import LevelCodes
from tensorlace.errors import InputError, SourceError
from tensorlace.machines.fitted_model import FittedModel

__all__ = ["as_text", "features", "find_column", "numbered", "read", "take_target", "write"]

_PARQUET = {".parquet", ".pq"}


def read(path: Path, *, as_written: bool = False, text: Sequence[str] = ()) -> Any:
    """Data frame with the rows of a file; ``-`` is CSV on standard input.

    Parameters
    ----------
    path : Path
    as_written : bool
        Leave all cells of a CSV file as the text they are.
    text : sequence of str
        Columns that are text also if they look like numbers.

    Raises
    ------
    SourceError
        If the file cannot be read or has no rows.
    """
    import pandas as pd

    try:
        if path.suffix.lower() in _PARQUET:
            frame = _parquet(path)
        else:
            source = _csv_text(path)
            how: dict[str, Any] = {"sep": _separator(source), "index_col": False}
            _check_lines(source, how["sep"])
            if as_written:
                how |= {"dtype": str, "na_filter": False}
            else:
                how |= {"dtype": dict.fromkeys(text, str), "low_memory": False}
                if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1):
                    how |= {"float_precision": "round_trip"}  # the only way since then
            frame = pd.read_csv(io.StringIO(source), **how)
    except (OSError, ValueError, ImportError) as error:
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise SourceError(f"{path} cannot be read: {reason}") from error
    if len(frame) == 0:
        raise SourceError(f"{path} has no rows")
    frame.columns = [str(name) for name in frame.columns]
    if not as_written:
        for name in frame.columns:
            if name not in text:
                frame[name] = as_dates(frame[name])
    return frame


def _parquet(path: Path) -> Any:
    import pandas as pd

    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise SourceError("Parquet needs pyarrow: pip install 'tensorlace[cli]'") from error
    with _opened(path) as file:
        return pd.read_parquet(file).reset_index(drop=True)


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


def find_column(frame: Any, name: str, what: str) -> str:
    """``name`` if the table has such a column; else an error with the nearest one."""
    names = list(frame.columns)
    if name in names:
        return name
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)[:200]}"
    raise InputError(f"no {what} column {name!r}: {hint}")


def take_target(frame: Any, name: str) -> tuple[Any, Any, int]:
    """Rows that have a target, indexed by place, their targets (n,), and how many have none."""
    import pandas as pd

    column = frame[find_column(frame, name, "target")]
    if isinstance(column, pd.DataFrame):
        raise InputError(f"target column {name!r} is there {column.shape[1]} times: keep one")
    check_numbers(column)
    values = pd.to_numeric(column, errors="coerce")
    wrong = column.notna() & values.isna()
    if wrong.any() or column.dtype.kind in "mM":
        row = int(np.argmax(wrong)) if wrong.any() else 0
        raise InputError(
            f"target column {name!r} is not numeric: row {row + 1} has {str(column.iloc[row])!r}"
        )
    known = values.notna().to_numpy()
    if not known.any():
        raise InputError(f"target column {name!r} has no value in any row")
    y = values.to_numpy(dtype=np.float64, na_value=np.nan)[known]
    return frame[known], y, int((~known).sum())


@contextmanager
def numbered(rows: Any) -> Iterator[None]:
    """Errors about some rows of a table say where these are in the file, the first being row 1.

    Parameters
    ----------
    rows : sequence of int
        Places in the file.

    Examples
    --------
    >>> with numbered([4, 7]):
    ...     raise InputError("row 1 has 'x'")
    Traceback (most recent call last):
    tensorlace.errors.InputError: row 8 has 'x'
    """
    try:
        yield
    except InputError as error:
        text = re.sub(r"\brow (\d+)\b", lambda m: f"row {rows[int(m[1])] + 1}", str(error))
        raise InputError(text) from error


def as_text(model: FittedModel) -> list[str]:
    """Columns of a model whose categories are text, so that ``007`` is no number."""
    names = model.feature_names or ()
    return [
        name
        for name, code in zip(names, model.encoding.codes, strict=False)
        if isinstance(code, LevelCodes) and all(isinstance(v, str) for v in code.numbers)
    ]


def features(model: FittedModel, frame: Any) -> Any:
    """The columns that a model needs, in its order and with values its categories can match."""
    import pandas as pd

    names = list(model.feature_names or ()) or list(frame.columns)
    missing = [name for name in names if name not in frame.columns]
    if missing:
        near = difflib.get_close_matches(missing[0], list(frame.columns), n=1)
        hint = f"; did you rename it to {near[0]!r}?" if near else ""
        raise InputError(
            f"the table lacks {len(missing)} of the {len(names)} columns of the model: "
            f"{', '.join(missing)[:200]}{hint}"
        )
    out = frame[names].copy()
    for name, code in zip(names, model.encoding.codes, strict=True):
        if not isinstance(code, LevelCodes):
            check_numbers(out[name])
        numbers = isinstance(code, LevelCodes) and not any(isinstance(v, str) for v in code.numbers)
        if numbers and out[name].dtype.kind == "O":  # one new text made text of all numbers
            raw = out[name].astype(object)
            parsed = pd.to_numeric(raw, errors="coerce")
            out[name] = parsed.astype(object).where(parsed.notna(), raw)
    return out


def write(frame: Any, path: Path | None) -> None:
    """Write a frame to a file, whole or not at all, or as CSV to standard output.

    In CSV, a text that a spreadsheet would run as a formula gets an apostrophe before it.
    """
    if path is not None and path.suffix.lower() in _PARQUET:
        buffer = io.BytesIO()
        frame.to_parquet(buffer, index=False)
        _replace(path, buffer.getvalue())
        return
    safe = frame.copy()
    safe.columns = [harmless(name) for name in frame.columns]
    for k, name in enumerate(frame.columns):
        if frame[name].dtype.kind not in "biufmM":
            safe.isetitem(k, frame[name].map(harmless))
    if path is None:
        safe.to_csv(sys.stdout, index=False, quoting=csv.QUOTE_MINIMAL)
        return
    text = safe.to_csv(index=False, quoting=csv.QUOTE_MINIMAL)
    _replace(path, text.encode())


def _replace(path: Path, data: bytes) -> None:
    try:
        write_atomically(path, data)
    except OSError as error:
        raise SourceError(f"{path} cannot be written: {error.strerror or error}") from error
