"""Kinds of columns: what the values of a column mean, chosen or inferred."""

import datetime
import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from tensorlace.errors import InputError

__all__ = [
    "Categorical",
    "Datetime",
    "Kind",
    "Numeric",
    "Ordinal",
    "Periodic",
    "chosen_kinds",
    "infer_kind",
    "is_missing",
]


@dataclass(frozen=True)
class Kind:
    """What the values of a column mean: the base of all kinds.

    Any column may have missing values.
    """


@final
@dataclass(frozen=True)
class Numeric(Kind):
    """Numbers, of which near ones behave alike. Booleans are 0 and 1, spans of time are in days.

    The arguments ``basis``, ``warp`` and ``n_basis`` of the estimator say how they are modelled.
    Text that can be read as a number is read as one if this kind is asked for.
    """


@final
@dataclass(frozen=True)
class Categorical(Kind):
    """Values that are equal or not, and nothing more: strings, or numbers that only name things.

    Each category deviates from what all have in common. One never seen in training has that
    common part, and an uncertainty as large as a priori.
    """


@final
@dataclass(frozen=True)
class Periodic(Kind):
    """Numbers on a circle, such as hours of the day: ``x`` and ``x + period`` are the same.

    Parameters
    ----------
    period : float
        In units of the column: 24 for hours, 7 for days of the week.

    Examples
    --------
    >>> Periodic(24)
    Periodic(period=24)
    """

    period: float

    def __post_init__(self) -> None:
        """Refuse a period that is no positive number."""
        if not (math.isfinite(self.period) and self.period > 0.0):
            raise InputError(f"Periodic(period={self.period!r}): give a positive number, such as 7")


@final
@dataclass(frozen=True)
class Datetime(Kind):
    """Dates and times, as the number of days since the earliest one in training.

    Text in ISO format, such as ``2026-02-28``, is read as a date if this kind is asked for.
    """


@final
@dataclass(frozen=True)
class Ordinal(Kind):
    """Categories with an order: numbers 0, 1, 2, ... in the order given.

    Parameters
    ----------
    order : sequence
        All values, from low to high.

    Examples
    --------
    >>> Ordinal(["low", "middle", "high"])
    Ordinal(order=('low', 'middle', 'high'))
    """

    order: Sequence[Any]

    def __post_init__(self) -> None:
        """Keep a tuple of distinct values."""
        order = () if isinstance(self.order, str) else tuple(self.order)
        if len(set(order)) != len(order) or len(order) < 2:
            raise InputError(f"Ordinal({self.order!r}): give two or more values, each of them once")
        object.__setattr__(self, "order", order)


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, NaT or pandas' NA.

    >>> [is_missing(v) for v in (None, float("nan"), np.datetime64("NaT"), "nan", 0)]
    [True, True, True, False, False]
    """
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # NA says neither yes nor no
        return type(value).__name__ == "NAType"


def infer_kind(values: npt.NDArray[Any]) -> Kind:
    """Kind of a column (n,) by its type, or if that says nothing, by its values.

    Strings are categories, also if they could be read as numbers.

    >>> infer_kind(np.array([True, False])), infer_kind(np.array(["1", "2"]))
    (Numeric(), Categorical())
    """
    if values.dtype.kind in "US":
        return Categorical()
    if values.dtype.kind == "M":
        return Datetime()
    if values.dtype.kind == "O":
        present = [v for v in values if not is_missing(v)]
        if any(isinstance(v, str | bytes) for v in present):
            return Categorical()
        if present and all(isinstance(v, datetime.date | np.datetime64) for v in present):
            return Datetime()
    return Numeric()


def chosen_kinds(columns: Mapping[Any, Any] | None, names: Sequence[str]) -> dict[int, Kind]:
    """Kinds by position, from kinds by name or position.

    Parameters
    ----------
    columns : mapping or None
        From names or positions of columns to kinds.
    names : sequence of str
        All columns.

    Raises
    ------
    InputError
        For a column that is not there, one that is named twice, and a value that is no kind.
    """
    chosen: dict[int, Kind] = {}
    for key, kind in (columns or {}).items():
        if not isinstance(kind, Kind):
            raise InputError(
                f"columns[{key!r}] is {getattr(kind, '__name__', repr(kind))}: give a kind from "
                "tensorlace.kinds, such as Categorical() or Periodic(24)"
            )
        if isinstance(key, int | np.integer) and -len(names) <= key < len(names):
            place = range(len(names))[key]
        elif key in names:
            place = names.index(key)
        else:
            near = difflib.get_close_matches(str(key), names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "give a name or a position"
            raise InputError(f"columns[{key!r}]: X has {len(names)} columns, none is that: {hint}")
        if place in chosen:
            raise InputError(f"columns[{key!r}]: this column is named twice: give it one kind")
        chosen[place] = kind
    return chosen
