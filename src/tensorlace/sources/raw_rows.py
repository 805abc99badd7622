"""Rows before they are checked, and the checks that all sources share."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tensorlace._types import Array, Mask
from tensorlace.errors import InputError, SourceError
from tensorlace.sources.table import Table

__all__ = ["RawRows", "as_rows", "check_size", "check_values", "column_names", "join"]

RawRows = tuple[Array, Array, Array | None]
"""``X`` (n, D), ``y`` (n,) and row weights (n,) or None, before their values are checked."""


def check_size(size: int) -> None:
    """Refuse a chunk size below one row."""
    if size < 1:
        raise InputError(f"a chunk of {size} rows is no chunk: size >= 1 is needed")


def column_names(names: Sequence[str] | None, n_columns: int) -> tuple[str, ...]:
    """``names``, checked to be one per column; by default ``column 0``, ``column 1``, ..."""
    if names is None:
        return tuple(f"column {k}" for k in range(n_columns))
    if len(names) != n_columns:
        raise InputError(f"{len(names)} names for {n_columns} columns: give one per column")
    return tuple(names)


def check_values(
    source: Table, rows: RawRows, first_row: int, locate: Callable[[int], str]
) -> None:
    """Raise `SourceError` at the first missing or infinite value or negative weight.

    ``locate`` says where row k of these rows is. Features may be missing if ``source.missing``.
    """
    X, y, weight = rows
    tables: list[tuple[Array, Sequence[str]]] = [(X, source.names), (y[:, None], (source.target,))]
    if weight is not None:
        tables.append((weight[:, None], (source.weight or "weight",)))
    for table, names in tables:
        # A finite sum needs no mask; a sum may overflow though all is finite, so look closer then.
        with np.errstate(over="ignore", invalid="ignore"):
            total = np.sum(table)
        if np.isfinite(total):
            continue
        wrong = np.isinf if source.missing and table is X else _not_finite
        bad = np.argwhere(wrong(table))
        if len(bad):
            row, column = (int(k) for k in bad[0])
            kind = "missing (NaN or null)" if np.isnan(table[row, column]) else "infinite"
            raise SourceError(
                f"{locate(row)}: column {names[column]!r} is {kind} in row {first_row + row} of "
                f"the table ({len(bad)} such values nearby): drop or impute these rows"
            )
    if weight is not None and weight.size and np.min(weight) < 0:
        row = int(np.argmax(weight < 0))
        raise SourceError(
            f"{locate(row)}: weight {weight[row]:g} is negative in row {first_row + row} of the "
            f"table: weights are numbers of repetitions"
        )


def _not_finite(table: Array) -> Mask:
    return ~np.isfinite(table)


def as_rows(X: Any, y: Any, weight: Any = None) -> RawRows:
    """Arrays in the one layout that all sources share, or `InputError` if shapes disagree."""
    table = _floats("X", X)
    if table.ndim != 2 or table.shape[1] == 0:
        raise InputError(f"X has shape {table.shape}: a table (N, D) with D >= 1 is needed")
    vectors = [
        None if v is None else _vector(name, _floats(name, v), len(table))
        for name, v in (("y", y), ("weight", weight))
    ]
    if vectors[0] is None:
        raise InputError("y is None: a source needs a target")
    return table, vectors[0], vectors[1]


def _floats(name: str, values: Any) -> Array:
    raw: npt.NDArray[Any] = np.asarray(values)
    if raw.dtype.kind not in "biufO":
        raise InputError(f"{name} has type {raw.dtype}: real numbers are needed")
    try:
        return np.ascontiguousarray(raw, dtype=np.float64).reshape(raw.shape)
    except (ValueError, TypeError) as error:
        raise InputError(f"{name} is not numeric: {error}") from error


def _vector(name: str, values: Array, n_rows: int) -> Array:
    if values.shape not in ((n_rows,), (n_rows, 1)):
        raise InputError(f"{name} has shape {values.shape}, X has {n_rows} rows: ({n_rows},) fits")
    return values.reshape(n_rows)


def join(parts: Sequence[RawRows], n_columns: int, weighted: bool) -> RawRows:
    """Parts of a table below each other; no parts give a table without rows."""
    if not parts:
        return np.empty((0, n_columns)), np.empty(0), np.empty(0) if weighted else None
    weights = [w for _, _, w in parts if w is not None]
    return (
        np.concatenate([X for X, _, _ in parts]),
        np.concatenate([y for _, y, _ in parts]),
        np.concatenate(weights) if weighted else None,
    )
