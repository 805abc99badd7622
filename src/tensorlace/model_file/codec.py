"""Values as JSON and arrays, and back, to the bit; of classes only those that are named.

JSON numbers, strings, booleans, null and lists stand for themselves. Anything else is an object
with a ``type``: a tuple, a mapping, an array (its numbers are kept apart, under a key), a NumPy
scalar, a date, or a frozen dataclass with its fields. Nothing here imports, calls or evaluates
what a file names: a name is looked up in a table of known classes or refused.
"""

import dataclasses
import datetime
import hashlib
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, final

import numpy as np
import numpy.typing as npt

from tensorlace.errors import ModelFileError
from tensorlace.model_file.array_layout import pack, unpack
from tensorlace.model_file.container import Arrays
from tensorlace.model_file.records import LATER_FIELDS, in_file, in_memory
from tensorlace.model_file.type_check import conforms, hints

__all__ = ["Decoder", "Encoder"]

Json = Any

_SCALAR = re.compile(r"bool|u?int(8|16|32|64)|float(16|32|64)|(datetime|timedelta)64(\[\w+\])?")
_SPECIAL = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


@final
class Encoder:
    """Turns values into JSON and puts their arrays aside, each content once.

    Parameters
    ----------
    classes : mapping
        Dataclasses that may be stored, by name.

    Examples
    --------
    >>> encoder = Encoder({})
    >>> encoder.encode({"a": (1, np.ones(2))}, "x")
    {'type': 'dict', 'items': [['a', {'type': 'tuple', 'items': [1, {'type': 'array', \
'key': 'x.a.1', 'order': 'C'}]}]]}
    >>> encoder.arrays
    {'x.a.1': array([1., 1.])}
    """

    def __init__(self, classes: Mapping[str, type]) -> None:
        self._names = {cls: name for name, cls in classes.items()}
        self._keys: dict[bytes, str] = {}
        self.arrays: Arrays = {}

    def encode(self, value: Any, where: str) -> Json:
        """Value as JSON; ``where`` it is, such as ``machines_.0``, names its arrays."""
        value = in_file(value)
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if math.isfinite(value) else {"type": "float", "value": repr(value)}
        if kind is list:
            return self._all(value, where)
        if kind is tuple:
            return {"type": "tuple", "items": self._all(value, where)}
        if kind is dict:
            return {"type": "dict", "items": [self._pair(k, v, where) for k, v in value.items()]}
        if kind in self._names:
            return {"type": self._names[kind], "fields": self._fields(value, where)}
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        return self._scalar(value, where)

    def _all(self, values: Any, where: str) -> list[Json]:
        return [self.encode(v, f"{where}.{k}") for k, v in enumerate(values)]

    def _pair(self, key: Any, value: Any, where: str) -> list[Json]:
        name = re.sub(r"\W", "_", str(key), flags=re.ASCII)
        return [self.encode(key, f"{where}.keys"), self.encode(value, f"{where}.{name}")]

    def _fields(self, value: Any, where: str) -> dict[str, Json]:
        later = LATER_FIELDS.get(type(value), {})
        values = {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init}
        return {
            name: self.encode(part, f"{where}.{name}")
            for name, part in values.items()
            if name not in later or part != later[name]
        }

    def _array(self, value: npt.NDArray[Any], where: str) -> Json:
        if value.dtype.kind == "O":
            items = self._all(value.ravel().tolist(), where)
            return {"type": "objects", "shape": list(value.shape), "items": items}
        if value.dtype.kind not in "biuf" or value.dtype.itemsize > 8:
            _refuse(where, f"an array of {value.dtype}")
        stored, layout = pack(value)
        content = hashlib.sha256(f"{stored.dtype.str}{stored.shape}".encode())
        content.update(stored.tobytes())
        key = self._keys.setdefault(content.digest(), self._free(where))
        self.arrays[key] = stored
        return {"type": "array", "key": key, **layout}

    def _free(self, where: str) -> str:
        key, count = where, 2
        while key in self.arrays:
            key, count = f"{where}_{count}", count + 1
        return key

    def _scalar(self, value: Any, where: str) -> Json:
        if isinstance(value, str):  # NumPy's strings are equal to Python's
            return str(value)
        if isinstance(value, np.generic) and _SCALAR.fullmatch(value.dtype.name):
            number = value.view("i8") if value.dtype.kind in "mM" else value
            plain = self.encode(number.item(), where)
            return {"type": "scalar", "dtype": value.dtype.name, "value": plain}
        if isinstance(value, datetime.datetime):
            if getattr(value, "nanosecond", 0):
                _refuse(where, "a time with nanoseconds")
            return {"type": "datetime", "value": value.isoformat()}
        if isinstance(value, datetime.date):
            return {"type": "date", "value": value.isoformat()}
        if isinstance(value, bytes):
            return {"type": "bytes", "value": value.hex()}
        if isinstance(value, np.random.RandomState):
            state: Any = value.get_state(legacy=False)
            name, inner = state["bit_generator"], state["state"]
            if name != "MT19937":
                _refuse(where, f"a RandomState of {name}")
            five = (name, inner["key"], int(inner["pos"]), state["has_gauss"], state["gauss"])
            return {"type": "random_state", "state": self.encode(five, where)}
        if _of_pandas(value, "Interval"):
            ends = {k: self.encode(getattr(value, k), where) for k in ("left", "right")}
            return {"type": "interval", **ends, "closed": value.closed}
        if _of_pandas(value, "DataFrame"):
            columns = [[name, self._all(value[name].tolist(), f"{where}.{name}")] for name in value]
            return {"type": "table", "columns": columns}
        return _refuse(where, f"a {type(value).__module__}.{type(value).__qualname__}")


@final
class Decoder:
    """Turns JSON and arrays into the values that were encoded, or refuses.

    Parameters
    ----------
    classes : mapping
        Dataclasses that are known, by name.
    arrays : dict
        Arrays by key; each must be asked for.

    Examples
    --------
    >>> Decoder({}, {}).decode({"type": "tuple", "items": [1, {"type": "date", \
"value": "2026-02-28"}]}, "x")
    (1, datetime.date(2026, 2, 28))
    """

    def __init__(self, classes: Mapping[str, type], arrays: Arrays) -> None:
        self._classes, self._arrays = classes, arrays
        self._used: dict[tuple[Any, ...], npt.NDArray[Any]] = {}
        self._plain: dict[str, Callable[..., Any]] = {
            "float": lambda where, value: _SPECIAL[value],
            "tuple": lambda where, items: tuple(self._all(items, where)),
            "dict": self._dict,
            "array": self._array,
            "objects": self._objects,
            "scalar": self._scalar,
            "datetime": lambda where, value: datetime.datetime.fromisoformat(value),
            "date": lambda where, value: datetime.date.fromisoformat(value),
            "bytes": lambda where, value: bytes.fromhex(value),
            "random_state": self._random_state,
            "interval": self._interval,
            "table": self._table,
        }

    def decode(self, node: Json, where: str) -> Any:
        """Value of a node; ``where`` it is, for messages."""
        if isinstance(node, list):
            return self._all(node, where)
        if not isinstance(node, dict):
            return node
        parts = dict(node)
        kind = parts.pop("type", None)
        if not isinstance(kind, str):
            raise ModelFileError(f"{where} has no type: the file is not one of tensorlace")
        try:
            if kind in self._plain:
                return self._plain[kind](where, **parts)
            if kind in self._classes:
                return self._instance(self._classes[kind], where, **parts)
        except ModelFileError:
            raise
        except (TypeError, ValueError, LookupError, OverflowError) as error:
            text = " ".join(str(error).split())
            raise ModelFileError(f"{where}: {kind} cannot be read ({text[:200]})") from error
        raise ModelFileError(
            f"{where} is of the unknown type {kind[:80]!r}: update tensorlace to read this file"
        )

    def unused(self) -> list[str]:
        """Keys of arrays that no value refers to."""
        return sorted(set(self._arrays) - {name[0] for name in self._used})

    def _all(self, items: Json, where: str) -> list[Any]:
        if not isinstance(items, list):
            raise ModelFileError(f"{where}: a list was expected")
        return [self.decode(item, f"{where}.{k}") for k, item in enumerate(items)]

    def _dict(self, where: str, items: Json) -> dict[Any, Any]:
        pairs = [(self.decode(k, where), self.decode(v, f"{where}[{k!r:.40}]")) for k, v in items]
        out = dict(pairs)
        if len(out) < len(pairs):
            raise ModelFileError(f"{where} has a key twice")
        return out

    def _instance(self, cls: type, where: str, fields: Json) -> Any:
        expected, later = hints(cls), LATER_FIELDS.get(cls, {}).keys()
        if not isinstance(fields, dict) or (fields.keys() | later) != expected.keys():
            wrong = sorted(set(fields) ^ set(expected)) if isinstance(fields, dict) else ["fields"]
            raise ModelFileError(
                f"{where}: {cls.__name__} has unknown or missing fields ({', '.join(wrong)[:200]})"
            )
        values = {name: self.decode(node, f"{where}.{name}") for name, node in fields.items()}
        for name, value in values.items():
            if not conforms(value, expected[name]):
                raise ModelFileError(
                    f"{where}.{name} is of the wrong type: {cls.__name__} cannot take "
                    f"{type(value).__name__}"
                )
        return in_memory(cls(**values), where)

    def _array(self, where: str, key: str, **layout: str) -> npt.NDArray[Any]:
        if key not in self._arrays:
            raise ModelFileError(f"{where}: there is no array {str(key)[:80]!r}")
        name = (key, *layout.items())
        if name not in self._used:
            self._used[name] = unpack(self._arrays[key], **layout)
        return self._used[name]

    def _objects(self, where: str, shape: Json, items: Json) -> npt.NDArray[Any]:
        values = self._all(items, where)
        out = np.empty(len(values), dtype=object)
        out[:] = values
        return out.reshape(shape)

    def _scalar(self, where: str, dtype: str, value: Json) -> Any:
        if not _SCALAR.fullmatch(dtype):
            raise ModelFileError(f"{where}: no scalar is of type {dtype[:40]!r}")
        number, kind = self.decode(value, where), np.dtype(dtype)
        if type(number) is not {"b": bool, "f": float}.get(kind.kind, int):
            raise ModelFileError(f"{where}: {number!r:.40} is no {dtype}")
        return np.int64(number).view(kind) if kind.kind in "mM" else kind.type(number)

    def _random_state(self, where: str, state: Json) -> np.random.RandomState:
        name, keys, position, has_gauss, gauss = self.decode(state, where)
        if not (name == "MT19937" and conforms(keys, npt.NDArray[np.uint32])):
            raise ModelFileError(f"{where}: only MT19937 is known")
        if keys.shape != (624,) or position not in range(625):  # NumPy would read beyond the keys
            raise ModelFileError(f"{where}: MT19937 has no such state")
        out = np.random.RandomState()
        out.set_state((name, keys, position, int(bool(has_gauss)), float(gauss)))
        return out

    def _interval(self, where: str, left: Json, right: Json, closed: str) -> Any:
        try:
            import pandas as pd
        except ImportError as error:
            raise ModelFileError(f"{where} is an interval of pandas: install pandas") from error
        return pd.Interval(self.decode(left, where), self.decode(right, where), closed)

    def _table(self, where: str, columns: Json) -> Any:
        values = {name: self._all(column, where) for name, column in columns}
        if len(values) < len(columns):
            raise ModelFileError(f"{where} has a column twice")
        try:
            import pandas as pd
        except ImportError:  # as a search leaves its results where there is no pandas
            return [
                dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)
            ]
        return pd.DataFrame(values)


def _of_pandas(value: Any, name: str) -> bool:
    kind = type(value)
    return kind.__name__ == name and kind.__module__.split(".")[0] == "pandas"


def _refuse(where: str, what: str) -> NoReturn:
    raise ModelFileError(f"{where} is {what}, which a model file cannot hold")
