"""Tables as users hand them in: made numeric, or refused with the column and row to blame."""

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import _check_sample_weight, check_array, validate_data

from tensorlace._types import Array
from tensorlace.columns.encoding import Encoding, RawColumn, quoted
from tensorlace.errors import InputError

__all__ = [
    "column_names",
    "nameless",
    "numeric_table",
    "numeric_target",
    "remember_columns",
    "row_weights",
]


def column_names(estimator: Any, n_columns: int) -> tuple[str, ...]:
    """Names seen in fit, or ``column 0``, ``column 1``, ..."""
    names = getattr(estimator, "feature_names_in_", None)
    return tuple(f"column {k}" for k in range(n_columns)) if names is None else tuple(names)


def remember_columns(estimator: Any, names: tuple[str, ...]) -> None:
    """Set what scikit-learn sets in fit: number of columns, and their names if they have any.

    All columns are numbers.
    """
    estimator.n_features_in_ = len(names)
    if hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    if names != column_names(estimator, len(names)):
        estimator.feature_names_in_ = np.array(names, dtype=object)
    estimator._encoding = Encoding.of_numbers(names, getattr(estimator, "columns", None))


def nameless(estimator: Any) -> Any:
    """Copy of a fitted estimator that takes its columns by position."""
    plain = copy(estimator)
    if hasattr(plain, "feature_names_in_"):
        del plain.feature_names_in_
    return plain


def numeric_table(estimator: Any, X: Any, *, reset: bool) -> Array:
    """Float table (N, D) without infinite entries; remembers or checks its columns.

    Missing values are NaN. With ``reset`` the estimator remembers how columns became numbers.
    """
    raw, least = raw_columns(X), 2 if reset else 1
    if raw is None:
        table: Array = validate_data(
            estimator,
            X,
            reset=reset,
            dtype=np.float64,
            ensure_all_finite=False,
            ensure_min_samples=least,
        )
        chosen = getattr(estimator, "columns", None)
        if chosen if reset else not estimator._encoding.plain:
            raw = [RawColumn(column) for column in table.T]
        elif reset:
            estimator._encoding = Encoding.of_numbers(column_names(estimator, table.shape[1]))
    else:
        validate_data(estimator, X, reset=reset, skip_check_array=True)
    if raw is not None:
        if reset:
            names = column_names(estimator, len(raw))
            estimator._encoding = Encoding.fit(raw, names, getattr(estimator, "columns", None))
        table = check_array(
            estimator._encoding(raw),
            ensure_all_finite=False,
            ensure_min_samples=least,
            estimator=estimator,
            input_name="X",
        )
    bad = np.isinf(table)
    if np.any(bad):
        row, col = (int(k) for k in np.argwhere(bad)[0])
        name = column_names(estimator, table.shape[1])[col]
        raise InputError(
            f"Input X contains infinity in {quoted(name)}, row {row} ({int(bad.sum())} such values "
            f"in all): drop these rows, or make the values missing (NaN)"
        )
    return table


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


def row_weights(weight: Any, table: Array) -> Array:
    """Weights (N,) of the rows, refused where one is negative."""
    values: Array = _check_sample_weight(weight, table, dtype=np.float64)
    if np.any(values < 0):
        row = int(np.argmax(values < 0))
        raise InputError(
            f"sample_weight is {values[row]:g} in row {row}: a weight is a number of repetitions, "
            f"give 0 or more"
        )
    return values


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
