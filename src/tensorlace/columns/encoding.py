"""Columns as they come, made numbers: categories, dates, text and missing values in one table."""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt

from tensorlace._types import Array, Mask
from tensorlace.errors import InputError
from tensorlace.kinds import (
    Categorical,
    Datetime,
    Kind,
    Numeric,
    Ordinal,
    chosen_kinds,
    infer_kind,
    is_missing,
)
from tensorlace.portable import Builder, Value

__all__ = ["DayCodes", "Encoding", "LevelCodes", "NumberCodes", "RawColumn", "quoted"]

MOST_LEVELS = 500
"""Categories of a column; the products of as many functions take a gigabyte."""

FEW_LEVELS = 10
"""So many are fine on any number of rows; above, at least two rows per category are wanted."""

_DAY = np.timedelta64(1, "D")
_EPOCH = np.datetime64(0, "D")

_GAP = -2.0
"""Number of the empty text, while it is looked up."""


@final
@dataclass(frozen=True, eq=False)
class RawColumn:
    """Values (n,) of a column, and whether its type says that they are categories."""

    values: npt.NDArray[Any]
    categorical: bool = False


@final
@dataclass(frozen=True, eq=False)
class Encoding:
    """How the columns of a table become numbers, learned from training rows. Picklable.

    Numbers stay as they are and booleans are 0 and 1. Categories are numbered 0, 1, ... in
    sorted order, and one that training did not have is -1. Dates are days since the earliest
    one in training. A missing value of any kind is NaN.

    Attributes
    ----------
    kinds : tuple of Kind
        One per column, chosen or inferred.
    codes : tuple of NumberCodes, LevelCodes or DayCodes
        From raw values (n,) to numbers (n,).

    Examples
    --------
    >>> from tensorlace.kinds import Periodic
    >>> raw = [RawColumn(np.array(["b", "a", "b"])), RawColumn(np.array([1, 2, 3]))]
    >>> encoding = Encoding.fit(raw, ("shop", "size"), {"size": Periodic(2)})
    >>> encoding.kinds
    (Categorical(), Periodic(period=2))
    >>> encoding([RawColumn(np.array(["a", "b", "c"])), RawColumn(np.array([1, 2, 3]))])
    array([[ 0.,  1.],
           [ 1.,  2.],
           [-1.,  3.]])
    """

    kinds: tuple[Kind, ...]
    codes: "tuple[Code, ...]"

    @classmethod
    def fit(
        cls,
        raw: Sequence[RawColumn],
        names: Sequence[str],
        columns: Mapping[Any, Any] | None = None,
    ) -> Self:
        """Learn from the columns of a table; ``columns`` overrides inferred kinds.

        Raises
        ------
        InputError
            For a column that is not what its kind says, and for too many categories.
        """
        chosen = chosen_kinds(columns, names)
        kinds = tuple(
            chosen.get(d) or (Categorical() if c.categorical else infer_kind(c.values))
            for d, c in enumerate(raw)
        )
        of = zip(kinds, raw, names, strict=True)
        return cls(kinds, tuple(_code(kind, c.values, quoted(n)) for kind, c, n in of))

    @classmethod
    def of_numbers(cls, names: Sequence[str], columns: Mapping[Any, Any] | None = None) -> Self:
        """For a table that consists of numbers, so that nothing has to be learned."""
        chosen = chosen_kinds(columns, names)
        for d, kind in chosen.items():
            if isinstance(kind, Datetime | Ordinal):
                raise InputError(
                    f"{quoted(names[d])} cannot be {type(kind).__name__}: a table of numbers was "
                    "given; give Numeric(), Categorical() or Periodic(period), or a data frame"
                )
        kinds = (chosen.get(d, Numeric()) for d in range(len(names)))
        return cls(tuple(kinds), tuple(NumberCodes(quoted(n)) for n in names))

    @property
    def plain(self) -> bool:
        """Whether the table was numbers already, and is left as it is."""
        return all(isinstance(c, NumberCodes) for c in self.codes)

    def __call__(self, raw: Sequence[RawColumn]) -> Array:
        """Table (N, D) of numbers, C order."""
        columns = [code(c.values) for code, c in zip(self.codes, raw, strict=True)]
        return np.stack(columns, axis=1) if columns else np.empty((0, 0))

    def labels(self, d: int) -> list[Any] | None:
        """Categories of column ``d`` in the order of their numbers; None if it has none."""
        code = self.codes[d]
        return list(code.numbers) if isinstance(code, LevelCodes) else None

    def decoded(self, d: int, numbers: Array) -> npt.NDArray[Any]:
        """Values of column ``d`` (k,) as they stood in the table; a category never seen is None."""
        code, labels = self.codes[d], self.labels(d)
        if labels is not None:
            known = [n >= 0 for n in numbers]  # not so for NaN
            out = np.empty(len(known), dtype=object)
            out[:] = [labels[int(n)] if ok else None for n, ok in zip(numbers, known, strict=True)]
            return out
        if isinstance(code, DayCodes):
            seconds = np.rint(numbers * 86_400.0)
            return np.asarray(code.origin.astype("datetime64[s]") + seconds.astype("m8[s]"))
        return numbers


def _code(kind: Kind, values: npt.NDArray[Any], name: str) -> "Code":
    """Learn how the values of a column become numbers."""
    if isinstance(kind, Categorical):
        return LevelCodes.fit(values, name)
    if isinstance(kind, Ordinal):
        return LevelCodes({v: k for k, v in enumerate(kind.order)}, name)
    if isinstance(kind, Datetime):
        seen = _dates(name, values)
        seen = seen[~np.isnat(seen)]
        return DayCodes(name, seen.min() if seen.size else _EPOCH)
    return NumberCodes(name)


@final
@dataclass(frozen=True)
class LevelCodes:
    """Numbers of categories; a value that is none of them is -1, or refused where all are given."""

    numbers: Mapping[Any, int]
    name: str
    open: bool = False

    @classmethod
    def fit(cls, values: npt.NDArray[Any], name: str) -> Self:
        """Number the distinct values (n,) in sorted order."""
        levels = sorted({v for v in set(_hashable(values)) if not is_missing(v)}, key=_rank)
        if len(levels) > MOST_LEVELS or len(levels) > max(FEW_LEVELS, len(values) / 2):
            what = "text" if isinstance(levels[-1], str) else "categories"
            raise InputError(
                f"{name} is {what} with {len(levels)} distinct values in {len(values)} rows, more "
                f"than can be learned: merge rare values, drop the column, or if they are numbers "
                f"or dates, say so with columns={{...: Numeric()}} or Datetime()"
            )
        return cls({v: k for k, v in enumerate(levels)}, name, open=True)

    def __call__(self, values: npt.NDArray[Any]) -> Array:
        """Look each value up."""
        items = _hashable(values)
        codes = {v: self._number(v) for v in set(items)}  # a NaN equals itself by identity
        out = np.fromiter((codes[v] for v in items), np.float64, len(items))
        if not self.open and np.any(out < 0):
            row = int(np.argmax(out < 0))
            raise InputError(
                f"{self.name}: row {row} has {items[row]!r}, which is not in the order given; add "
                "it there, or make it missing"
            )
        return out

    @property
    def text(self) -> bool:
        """Whether all categories are text."""
        return bool(self.numbers) and all(isinstance(v, str) for v in self.numbers)

    def portable(self, g: Builder, x: Value) -> Value:
        """Look each value up: ``x`` is text where all categories are, else numbers.

        Missing is NaN, or the empty text where that is no category. A value that is refused in
        Python becomes infinite.
        """
        if self.text:
            gap = {} if "" in self.numbers else {"": _GAP}
            code = g.label(x, dict(self.numbers) | gap, -1.0)
            missing = g.equal(code, _GAP)
        else:
            values = np.array([float(v) for v in self.numbers])
            order = np.argsort(values)
            codes = np.array([float(k) for k in self.numbers.values()])[order]
            missing, code = g.isnan(x), g.expand(-1.0, x)
            if values.size:
                place = g.locate(values[order], x)
                known = g.equal(g.lookup(values[order], place), x)
                code = g.where(known, g.lookup(codes, place), -1.0)
        if not self.open:
            code = g.where(g.equal(code, -1.0), np.inf, code)
        return g.where(missing, np.nan, code)

    def _number(self, value: Any) -> float:
        return np.nan if is_missing(value) else float(self.numbers.get(value, -1))


def _hashable(values: npt.NDArray[Any]) -> list[Any]:
    """Values as a list; what cannot be looked up becomes text."""
    items = values.tolist()
    try:
        set(items)
    except TypeError:
        items = [v if isinstance(v, Real | str | None) else str(v) for v in items]
    return items


def _rank(value: Any) -> tuple[int, float, str]:
    """Numbers in their order, then strings in theirs, then anything else."""
    if isinstance(value, Real):
        return 0, float(value), ""
    return (1, 0.0, value) if isinstance(value, str) else (2, 0.0, str(value))


@final
@dataclass(frozen=True)
class NumberCodes:
    """Numbers as double precision; text is read, spans of time are in days."""

    name: str

    def __call__(self, values: npt.NDArray[Any]) -> Array:
        """Read the values."""
        return _numbers(self.name, values)

    def portable(self, g: Builder, x: Value) -> Value:
        """Numbers as they are."""
        return x


@final
@dataclass(frozen=True)
class DayCodes:
    """Days since ``origin``."""

    name: str
    origin: np.datetime64

    def __call__(self, values: npt.NDArray[Any]) -> Array:
        """Count days."""
        return np.asarray((_dates(self.name, values) - self.origin) / _DAY, dtype=np.float64)

    def portable(self, g: Builder, x: Value) -> Value:
        """Count on from days since 1970-01-01 UTC."""
        return x - float((self.origin - _EPOCH) / _DAY)


Code = NumberCodes | LevelCodes | DayCodes


def _numbers(name: str, values: npt.NDArray[Any]) -> Array:
    """Numbers as double precision; text is read, spans of time are in days."""
    kind = values.dtype.kind
    if kind in "biuf":
        return values.astype(np.float64)
    if kind == "m":
        return np.asarray(values / _DAY, dtype=np.float64)
    if kind not in "OUS":
        raise InputError(
            f"{name} is not numeric but {values.dtype}: "
            + ("give the kind Datetime()" if kind == "M" else "Complex data not supported")
        )
    present = _present(values)
    out = np.full(values.shape, np.nan)
    for row in np.flatnonzero(present):
        value = values[row]
        try:
            out[row] = value
        except ValueError as error:
            raise InputError(
                f"{name} is not numeric: row {row} has {str(value)!r}; correct it, drop the "
                "column, or make it Categorical()"
            ) from error
        except TypeError as error:
            raise TypeError(
                f"{name}, row {row}: {error}; give numbers, strings or dates, or make the column "
                "Categorical()"
            ) from error
    return out


def _dates(name: str, values: npt.NDArray[Any]) -> npt.NDArray[np.datetime64]:
    """Dates and times in UTC, from dates, text, or objects of either."""
    if values.dtype.kind == "M":
        return values
    if values.dtype.kind not in "OUS":
        if np.all(np.isnan(values)):
            return np.full(values.shape, np.datetime64("NaT"))
        raise InputError(f"{name} is not dates but {values.dtype}: leave Datetime() out")
    out = np.full(values.shape, np.datetime64("NaT"), dtype="datetime64[us]")
    for row in np.flatnonzero(_present(values)):
        value = values[row]
        try:
            if isinstance(value, datetime.datetime) and value.tzinfo is not None:
                value = value.astimezone(datetime.UTC).replace(tzinfo=None)
            out[row] = np.datetime64(value)
        except (ValueError, TypeError) as error:
            raise InputError(
                f"{name} is not dates: row {row} has {str(value)!r}; write dates like 2026-02-28, "
                "or leave Datetime() out"
            ) from error
    return out


def _present(values: npt.NDArray[Any]) -> Mask:
    return np.fromiter((not is_missing(v) for v in values), np.bool_, len(values))


def quoted(name: str) -> str:
    """How messages speak of a column."""
    return name if name.startswith("column ") else f"column {name!r}"
