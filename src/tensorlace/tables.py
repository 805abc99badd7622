"""Tables as users hand them in: made numeric, or refused with the column and row to blame."""

from copy import copy
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import _check_sample_weight, validate_data

from tensorlace.bases.basis import Array
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
    """Set what scikit-learn sets in fit: number of columns, and their names if they have any."""
    estimator.n_features_in_ = len(names)
    if hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    if names != column_names(estimator, len(names)):
        estimator.feature_names_in_ = np.array(names, dtype=object)


def nameless(estimator: Any) -> Any:
    """Copy of a fitted estimator that takes its columns by position."""
    plain = copy(estimator)
    if hasattr(plain, "feature_names_in_"):
        del plain.feature_names_in_
    return plain


def numeric_table(estimator: Any, X: Any, *, reset: bool) -> Array:
    """Float table (N, D) without missing or infinite entries; remembers or checks its columns."""
    _refuse_dates(X)
    try:
        table: Array = validate_data(
            estimator,
            X,
            reset=reset,
            dtype=np.float64,
            ensure_all_finite=False,
            ensure_min_samples=2 if reset else 1,
        )
    except (ValueError, TypeError) as error:
        _blame_column(X, error)
        raise
    bad = ~np.isfinite(table)
    if np.any(bad):
        row, col = (int(k) for k in np.argwhere(bad)[0])
        kind = "NaN" if np.isnan(table[row, col]) else "infinity"
        name = column_names(estimator, table.shape[1])[col]
        raise InputError(
            f"Input X contains {kind} in {_quoted(name)}, row {row} ({int(bad.sum())} such values "
            f"in all): drop or impute these rows"
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


def _refuse_dates(X: Any) -> None:
    """Refuse columns of a frame that hold dates, which would pass as nanoseconds."""
    for name in getattr(X, "columns", ()):
        kind = str(getattr(X[name], "dtype", "")).lower()
        if kind.startswith(("date", "time", "duration", "period")):
            raise InputError(
                f"{_quoted(str(name))} is not numeric but {kind}: give a number instead, such as "
                f"days since a day of your choice"
            )


def _blame_column(X: Any, error: Exception) -> None:
    """Find the first column that is no number, and say so instead of ``error``."""
    if "could not convert" not in str(error):
        return
    names = getattr(X, "columns", None)
    if names is None:
        rows = np.asarray(X, dtype=object)
        columns = (
            {f"column {k}": values for k, values in enumerate(rows.T)} if rows.ndim == 2 else {}
        )
    else:
        columns = {str(name): np.asarray(X[name]) for name in names}
    for name, values in columns.items():
        row = _first_no_number(values)
        if row is not None:
            raise InputError(
                f"{_quoted(name)} is not numeric: row {row} has {str(values[row])!r}; encode or "
                f"drop the column"
            ) from error


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


def _quoted(name: str) -> str:
    return name if name.startswith("column ") else f"column {name!r}"
