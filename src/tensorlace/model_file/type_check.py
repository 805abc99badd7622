"""Whether a value is what the annotation of a dataclass field says."""

import dataclasses
import types
import typing
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

__all__ = ["conforms", "hints"]


@cache
def hints(cls: type) -> dict[str, Any]:
    """Annotations of the fields that a dataclass is made from.

    >>> from tensorlace.kinds import Periodic
    >>> hints(Periodic)
    {'period': <class 'float'>}
    """
    known = typing.get_type_hints(cls)
    return {f.name: known[f.name] for f in dataclasses.fields(cls) if f.init}


def conforms(value: Any, hint: Any) -> bool:
    """Tell whether ``value`` is of the type ``hint``, to the last element and dtype.

    As for type checkers, a whole number is a float too; a boolean is no number here.

    >>> conforms((1, 2), tuple[int, ...]), conforms((1, 2.0), tuple[int, ...])
    (True, False)
    >>> from tensorlace.columns.bases.basis import Array
    >>> conforms(np.zeros(2), Array), conforms(np.zeros(2, dtype=int), Array)
    (True, False)
    """
    if hint is Any:
        return True
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(conforms(value, one) for one in inner)
    if origin is None:
        return _is_instance(value, hint)
    if origin is np.ndarray:
        (scalar,) = typing.get_args(inner[1])
        return isinstance(value, np.ndarray) and value.dtype == np.dtype(scalar)
    if not isinstance(value, origin) or isinstance(value, str):
        return False
    if origin is tuple and inner[-1] is not Ellipsis:
        return len(value) == len(inner) and all(map(conforms, value, inner))
    if issubclass(origin, Mapping):
        return all(conforms(k, inner[0]) and conforms(v, inner[1]) for k, v in value.items())
    if issubclass(origin, tuple | Sequence):
        return all(conforms(v, inner[0]) for v in value)
    raise TypeError(f"no rule for {hint}")


def _is_instance(value: Any, kind: type) -> bool:
    if kind in (int, float):
        numbers = int | np.integer if kind is int else int | float | np.integer | np.floating
        return isinstance(value, numbers) and not isinstance(value, bool)
    return isinstance(value, bool | np.bool_ if kind is bool else kind)
