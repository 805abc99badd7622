"""Tables and targets as users hand them in, read column by column."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tensorlace._types import Array
from tensorlace.columns.encoding import RawColumn, quoted
from tensorlace.errors import InputError

__all__ = ["numeric_target", "raw_columns", "refuse_infinite"]


def raw_columns(X: Any) -> list[RawColumn] | None:
    """Columns of a pandas or polars frame, or of an array of strings, dates or objects.

    None for anything else, which should consist of numbers.
    """
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        return [_of_pandas(X.iloc[:, k]) for k in range(X.shape[1])]
    if hasattr(X, "get_columns"):
        return [_of_polars(series) for series in X.get_columns()]
    if isinstance(X, list | tuple):
        try:
            array = np.asarray(X)
        except ValueError:  # rows of different lengths: for somebody else to refuse
            return None
        X = np.array(X, dtype=object) if array.dtype.kind in "US" else array
    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype.kind not in "OUSMm":
        return None
    return [RawColumn(column) for column in X.T]


def refuse_infinite(table: Array, names: Sequence[str]) -> None:
    """Refuse an encoded table (n, D) with an infinite entry.

    Raises
    ------
    InputError
        With the column and row of the first one.
    """
    bad = np.isinf(table)
    if np.any(bad):
        row, col = (int(k) for k in np.argwhere(bad)[0])
        raise InputError(
            f"Input X contains infinity in {quoted(names[col])}, row {row} ({int(bad.sum())} such "
            f"values in all): drop these rows, or make the values missing (NaN)"
        )


def numeric_target(y: Any) -> npt.NDArray[Any]:
    """The target as an array, refused where it is missing or infinite."""
    target = np.asarray(y)
    if target.dtype.kind in "OUS":
        row = _first_no_number(target)
        if row is not None:
            raise InputError(
                f"Input y is not numeric: row {row} has {str(target[row])!r}; could not convert it "
                f"to a number"
            )
        target = target.astype(np.float64)
    if target.dtype.kind == "f":
        bad = ~np.isfinite(target)
        if np.any(bad):
            row = int(np.argwhere(bad)[0][0])
            kind = "NaN" if np.isnan(target[bad][0]) else "infinity"
            raise InputError(
                f"Input y contains {kind} in row {row} ({int(bad.sum())} such values in all): "
                f"drop these rows"
            )
    return target


def _of_pandas(series: Any) -> RawColumn:
    kind = str(series.dtype).lower()
    if kind == "category" or kind.startswith("dictionary"):
        return RawColumn(_objects(series.tolist()), categorical=True)
    if kind.startswith("period"):
        series = series.dt.to_timestamp()
    if kind.startswith("datetime64") and series.dt.tz is not None:
        series = series.dt.tz_convert("UTC").dt.tz_localize(None)
    if not isinstance(series.dtype, np.dtype) and getattr(series.dtype, "kind", "O") in "biuf":
        return RawColumn(series.to_numpy(dtype=np.float64, na_value=np.nan))
    return RawColumn(np.asarray(series.to_numpy()))


def _of_polars(series: Any) -> RawColumn:
    kind = str(series.dtype).lower()
    if kind.startswith(("categorical", "enum", "string", "object", "null")):
        return RawColumn(_objects(series.to_list()), kind.startswith(("categorical", "enum")))
    return RawColumn(np.asarray(series.to_numpy()))


def _objects(items: Sequence[Any]) -> npt.NDArray[Any]:
    out = np.empty(len(items), dtype=object)
    out[:] = items
    return out


def _first_no_number(values: npt.NDArray[Any]) -> int | None:
    """Row of the first text that is no number; missing values count as numbers."""
    if values.dtype.kind not in "OUS":
        return None
    return next((k for k, v in enumerate(values) if isinstance(v, str) and not _is_number(v)), None)


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True
