"""Values of JSON as the columns of a model: numbers, text, dates, and null for a missing one."""

import datetime
import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt

from tensorlace.columns.encoding import DayCodes, Encoding, LevelCodes, quoted
from tensorlace.errors import InputError
from tensorlace.machines.fitted_model import FittedModel

__all__ = ["ColumnValues", "nearest"]


@final
@dataclass(frozen=True, eq=False)
class ColumnValues:
    """Reads the values of all columns of a model.

    Attributes
    ----------
    names : tuple of str
    encoding : Encoding
    """

    names: tuple[str, ...]
    encoding: Encoding

    @classmethod
    def of(cls, model: FittedModel) -> Self:
        """Reader of values for the columns of a fitted model."""
        return cls(model.names, model.encoding)

    @property
    def kinds(self) -> list[str]:
        """``number``, ``category`` or ``date`` for each column."""
        return [_kind(code) for code in self.encoding.codes]

    def table(self, columns: Sequence[Sequence[Any]]) -> npt.NDArray[Any]:
        """Table (n, D) for `FittedModel.encode` from D columns of n values each.

        Raises
        ------
        InputError
            For a value that is not what its column holds.
        """
        if self.encoding.plain:
            numbers = [_numbers(name, c) for name, c in zip(self.names, columns, strict=True)]
            return np.stack(numbers, axis=1)
        out = np.empty((len(columns[0]), len(columns)), dtype=object)
        for d, (name, code) in enumerate(zip(self.names, self.encoding.codes, strict=True)):
            out[:, d] = _read(name, code, columns[d])
        return out

    def from_rows(self, rows: Sequence[dict[str, Any] | list[Any]]) -> npt.NDArray[Any]:
        """Table (n, D) from rows by name, or as lists in the order of the columns."""
        for k, row in enumerate(rows):
            if isinstance(row, list):
                if len(row) != len(self.names):
                    raise InputError(
                        f"row {k} has {len(row)} values; the model has {len(self.names)} columns"
                    )
            elif row.keys() != self._known:
                self._complain(k, row)
        columns: Iterable[list[Any]] = (
            [row[name] if isinstance(row, dict) else row[d] for row in rows]
            for d, name in enumerate(self.names)
        )
        return self.table(list(columns))

    @property
    def _known(self) -> set[str]:
        return set(self.names)

    def _complain(self, k: int, row: dict[str, Any]) -> None:
        for name in row:
            if name not in self.names:
                raise InputError(f"row {k}: no column {name!r:.80}: {nearest(name, self.names)}")
        lacking = next(name for name in self.names if name not in row)
        raise InputError(f"row {k} lacks {quoted(lacking)}: give null if the value is missing")


def nearest(name: str, known: Sequence[str]) -> str:
    """A hint for a name that is not known.

    >>> nearest("sise", ["size", "shop"]), nearest("x", ["size", "shop"])
    ("did you mean 'size'?", 'there are size, shop')
    """
    near = difflib.get_close_matches(name[:200], known, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)[:200]}"


def _kind(code: Any) -> str:
    if isinstance(code, LevelCodes):
        return "category"
    return "date" if isinstance(code, DayCodes) else "number"


def _read(name: str, code: Any, values: Sequence[Any]) -> Sequence[Any] | npt.NDArray[Any]:
    if isinstance(code, LevelCodes):
        # 3 and "3" are the same category unless training had both
        by_text = {str(level): level for level in code.numbers}
        return [_level(name, row, v, code, by_text) for row, v in enumerate(values)]
    if isinstance(code, DayCodes):
        return [_date(name, row, v) for row, v in enumerate(values)]
    return _numbers(name, values)


def _numbers(name: str, values: Sequence[Any]) -> npt.NDArray[np.float64]:
    for row, value in enumerate(values):
        if value is not None and not isinstance(value, int | float):
            raise _wrong(name, row, value, "no number; give a number, or null if it is missing")
    out = np.array([_double(v) for v in values])
    bad = np.flatnonzero(np.isinf(out))
    if bad.size:
        row = int(bad[0])
        raise InputError(f"{quoted(name)}, row {row}: the number is beyond the range of doubles")
    return out


def _double(value: int | float | None) -> float:
    try:
        return np.nan if value is None else float(value)
    except OverflowError:  # a whole number of hundreds of digits
        return np.inf


def _level(name: str, row: int, value: Any, code: LevelCodes, by_text: dict[str, Any]) -> Any:
    if isinstance(value, list | dict):
        raise _wrong(name, row, value, "no category; give text, or null if it is missing")
    if value is None or value in code.numbers:
        return value
    return by_text.get(str(value), value)


def _date(name: str, row: int, value: Any) -> datetime.datetime | None:
    if value is None:
        return None
    try:
        date = datetime.datetime.fromisoformat(value)
        return date if date.tzinfo is None else date.astimezone(datetime.UTC)
    except (TypeError, ValueError, OverflowError) as error:
        hint = 'no date; write it like "2026-02-28" or "2026-02-28T12:00:00Z"'
        raise _wrong(name, row, value, hint) from error


def _wrong(name: str, row: int, value: Any, what: str) -> InputError:
    return InputError(f"{quoted(name)}, row {row}: {value!r:.80} is {what}")
