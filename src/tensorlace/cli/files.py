"""Columns of a frame: the target, those that a model needs, and the frame written to a file."""

import csv
import difflib
import io
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tensorlace._atomic import write_atomically
from tensorlace.cli.cells import check_numbers, harmless
from tensorlace.columns.encoding import LevelCodes
from tensorlace.errors import InputError, SourceError
from tensorlace.machines.fitted_model import FittedModel

__all__ = ["as_text", "features", "find_column", "numbered", "take_target", "write"]

_PARQUET = {".parquet", ".pq"}


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
