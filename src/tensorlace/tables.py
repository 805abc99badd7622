"""Tables as users hand them in: made numeric, or refused with the column and row to blame."""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import validate_data

from tensorlace.bases.basis import Array
from tensorlace.errors import InputError

__all__ = ["column_names", "numeric_table", "numeric_target"]


def column_names(estimator: Any, n_columns: int) -> tuple[str, ...]:
    """Names seen in fit, or ``column 0``, ``column 1``, ..."""
    names = getattr(estimator, "feature_names_in_", None)
    return tuple(f"column {k}" for k in range(n_columns)) if names is None else tuple(names)


def numeric_table(estimator: Any, X: Any, *, reset: bool) -> Array:
    """Float table (N, D) without missing or infinite entries; remembers or checks its columns."""
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


def _blame_column(X: Any, error: Exception) -> None:
    """Find the first column that is no number, and say so instead of ``error``."""
    names = getattr(X, "columns", None)
    if names is None or "could not convert" not in str(error):
        return
    for name in names:
        values = np.asarray(X[name])
        try:
            values.astype(np.float64)
        except (ValueError, TypeError):
            row = next(k for k, v in enumerate(values) if not _is_number(v))
            raise InputError(
                f"{_quoted(str(name))} is not numeric: row {row} has {values[row]!r}; encode "
                f"or drop the column"
            ) from error


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (ValueError, TypeError):
        return False
    return True


def _quoted(name: str) -> str:
    return name if name.startswith("column ") else f"column {name!r}"
