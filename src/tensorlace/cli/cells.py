"""Cells of a table: what was meant to be a number, and what must not be run."""

import re
from typing import Any

import numpy as np

from tensorlace.errors import InputError

__all__ = ["check_numbers", "harmless", "odd_one"]

_COMMA = re.compile(r"\s*[+-]?\d+(,\d+)?\s*", re.ASCII)
_FORMULA = re.compile(r"[=+\-@\t\r]")

_MOSTLY = 0.8
"""Share of numbers from which a column of text seems to be meant as numbers."""


def check_numbers(column: Any) -> None:
    """Refuse infinite numbers and decimal commas in a column that is not declared categories.

    Raises
    ------
    InputError
        Naming the row of the file, the first being 1; the index of the column says where rows are.
    """
    if column.dtype.kind == "f":
        infinite = np.isinf(column.to_numpy(dtype=np.float64, na_value=np.nan))
        if infinite.any():
            row = int(column.index[np.argmax(infinite)]) + 1
            raise InputError(
                f"column {column.name!r} is infinite in row {row}: drop the row, or leave the cell "
                f"empty"
            )
    if column.dtype.kind in "biufmM":
        return
    present = column.dropna()
    if all(isinstance(v, str) and _COMMA.fullmatch(v) for v in present):
        for place, value in present.items():
            if "," in value:
                raise InputError(
                    f"column {column.name!r} has {value!r} in row {int(place) + 1}, a decimal "
                    f"comma: write {value.replace(',', '.')}"
                )


def odd_one(column: Any) -> tuple[int, str] | None:
    """Row of the file, the first being 1, and text that makes text of a column of numbers."""
    import pandas as pd

    if column.dtype.kind in "biufmM":
        return None
    present = column.notna().to_numpy()
    odd = present & pd.to_numeric(column, errors="coerce").isna().to_numpy()
    if not odd.any() or odd.sum() > (1.0 - _MOSTLY) * present.sum():
        return None
    row = int(np.argmax(odd))
    return int(column.index[row]) + 1, str(column.iloc[row])


def harmless(value: Any) -> Any:
    """The value, or if a spreadsheet would take it as a formula, a text that it will not.

    >>> [harmless(v) for v in ("=1+1", "-1.5", "-x", "plain", 3)]
    ["'=1+1", '-1.5', "'-x", 'plain', 3]
    """
    if not (isinstance(value, str) and _FORMULA.match(value)):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value
