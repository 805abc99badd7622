"""Tables as users hand them in, checked by scikit-learn's rules and made numeric."""

import warnings
from copy import copy
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight, check_array, validate_data

from tensorlace._types import Array
from tensorlace.columns.encoding import Encoding, RawColumn
from tensorlace.columns.raw import raw_columns, refuse_infinite
from tensorlace.errors import InputError, RowWeightWarning
from tensorlace.sources.weighting import MEANINGS, WeightSums, refuse_impossible

__all__ = [
    "column_names",
    "fit_encoding",
    "nameless",
    "numeric_table",
    "remember_columns",
    "row_weights",
    "weight_factor",
]


def column_names(estimator: Any, n_columns: int) -> tuple[str, ...]:
    """Names seen in fit, or ``column 0``, ``column 1``, ..."""
    names = getattr(estimator, "feature_names_in_", None)
    return tuple(f"column {k}" for k in range(n_columns)) if names is None else tuple(names)


def remember_columns(estimator: Any, names: tuple[str, ...]) -> Encoding:
    """Set what scikit-learn sets in fit: number of columns, and their names if they have any.

    All columns are numbers, as the encoding that is returned says.
    """
    estimator.n_features_in_ = len(names)
    if hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    if names != column_names(estimator, len(names)):
        estimator.feature_names_in_ = np.array(names, dtype=object)
    return Encoding.of_numbers(names, getattr(estimator, "columns", None))


def nameless(estimator: Any) -> Any:
    """Copy of a fitted estimator that takes its columns by position."""
    plain = copy(estimator)
    if hasattr(plain, "feature_names_in_"):
        del plain.feature_names_in_
    return plain


def fit_encoding(estimator: Any, X: Any) -> tuple[Array, Encoding]:
    """Float table (N, D) of a table to fit to, and how its columns became numbers.

    Missing values are NaN; infinite ones are refused. The estimator remembers the columns.
    """
    raw, table = _columns_or_table(estimator, X, reset=True)
    chosen = getattr(estimator, "columns", None)
    if raw is None and chosen:
        raw = [RawColumn(column) for column in table.T]
    if raw is None:
        encoding = Encoding.of_numbers(column_names(estimator, table.shape[1]))
    else:
        encoding = Encoding.fit(raw, column_names(estimator, len(raw)), chosen)
        table = _encoded(estimator, encoding, raw, n_rows=2)
    refuse_infinite(table, column_names(estimator, table.shape[1]))
    return table, encoding


def numeric_table(estimator: Any, X: Any, encoding: Encoding) -> Array:
    """Float table (n, D) of a table to predict, whose columns are those of the fit."""
    raw, table = _columns_or_table(estimator, X, reset=False)
    if raw is None and not encoding.plain:
        raw = [RawColumn(column) for column in table.T]
    if raw is not None:
        table = _encoded(estimator, encoding, raw, n_rows=1)
    refuse_infinite(table, column_names(estimator, table.shape[1]))
    return table


def row_weights(weight: Any, table: Array) -> Array:
    """Weights (N,) of the rows, refused where one is missing or negative, or all are zero."""
    try:
        given = np.ravel(np.asarray(weight, dtype=np.float64))
    except (TypeError, ValueError):  # scikit-learn says what it is instead of numbers
        given = np.ones(1)
    refuse_impossible(given)
    if given.size and not given.any():
        raise InputError(
            f"sample_weight is zero in all {len(table)} rows: give some of them a weight above 0"
        )
    values: Array = _check_sample_weight(weight, table, dtype=np.float64)
    return values


def weight_factor(sums: WeightSums, weights: str, *, stacklevel: int) -> float:
    """Factor that makes weights of rows numbers of repetitions; a warning where "auto" chose one.

    Parameters
    ----------
    sums : WeightSums
    weights : str
        In `MEANINGS`.
    stacklevel : int
        Of the caller of the estimator, counted from here.
    """
    factor = MEANINGS[weights](sums)
    if factor != 1.0 and weights == "auto":
        warnings.warn(
            f"sample_weight sums to {sums.total:.6g} over {sums.n_rows} rows and was scaled to sum "
            f"to {sums.n_rows}: weights='repetitions' keeps it, weights='relative' expects this",
            RowWeightWarning,
            stacklevel=stacklevel + 1,
        )
    return factor


def _columns_or_table(
    estimator: Any, X: Any, *, reset: bool
) -> tuple[list[RawColumn] | None, Array]:
    """Columns to encode, or None and the table (n, D) that consists of numbers already."""
    raw = raw_columns(X)
    if raw is not None:
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return raw, np.empty((0, 0))
    table: Array = validate_data(
        estimator,
        X,
        reset=reset,
        dtype=np.float64,
        ensure_all_finite=False,
        ensure_min_samples=2 if reset else 1,
    )
    return None, table


def _encoded(estimator: Any, encoding: Encoding, raw: list[RawColumn], *, n_rows: int) -> Array:
    table: Array = check_array(
        encoding(raw),
        ensure_all_finite=False,
        ensure_min_samples=n_rows,
        estimator=estimator,
        input_name="X",
    )
    return table
