"""The operations of a graph: what each computes, in NumPy, and the shape of its result.

Arrays are numbers in double precision or masks, and broadcast as NumPy's do. The set is closed: a
translator of graphs knows each of these names, so a new basis or network adds none.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from tensorlace.errors import InputError
from tensorlace.portable.graph import ROWS, Kind, Shape

__all__ = ["OPERATIONS", "Operation", "broadcast"]

_Array = npt.NDArray[Any]
_Numbers = npt.NDArray[np.float64]


@final
@dataclass(frozen=True)
class Operation:
    """One operation.

    Attributes
    ----------
    compute : callable
        From arrays, and attributes by name, to the result.
    shape : callable
        From shapes, and attributes by name, to that of the result.
    takes : tuple of {"number", "mask", "text"}, or None
        Kinds of the arrays; None is any number of arrays of numbers.
    gives : {"number", "mask"}
    """

    compute: Callable[..., _Array]
    shape: Callable[..., Shape]
    takes: tuple[Kind, ...] | None
    gives: Kind = "number"


def broadcast(*shapes: Shape) -> Shape:
    """Shape of arrays of these shapes together.

    >>> broadcast((3, 1), (ROWS,))
    (3, -1)
    """
    rank = max(map(len, shapes))
    out = []
    for lengths in zip(*((1,) * (rank - len(shape)) + shape for shape in shapes), strict=True):
        longer = {length for length in lengths if length != 1}
        if len(longer) > 1:
            raise InputError(
                f"arrays of shapes {', '.join(map(str, shapes))} do not go together ({ROWS} stands "
                "for rows): make their axes equal, or of length 1"
            )
        out.append(longer.pop() if longer else 1)
    return tuple(out)


def _matmul_shape(a: Shape, b: Shape) -> Shape:
    if len(a) not in (1, 2) or len(b) != 2 or a[-1] != b[0] or b[0] == ROWS:
        raise InputError(
            f"matmul was given the shapes {a} and {b} ({ROWS} stands for rows); use (m, k) and "
            "(k, n), or (k,) and (k, n)"
        )
    return (*a[:-1], b[1])


def _reduced_shape(a: Shape, *, axis: int) -> Shape:
    if not 0 <= axis < len(a) or a[axis] == ROWS:
        raise InputError(
            f"axis {axis} of an array of shape {a} cannot be reduced ({ROWS} stands for rows): "
            "each row is on its own"
        )
    return a[:axis] + a[axis + 1 :]


def _concat_shape(*shapes: Shape) -> Shape:
    if len({shape[1:] for shape in shapes}) != 1 or any(shape[:1] == (ROWS,) for shape in shapes):
        raise InputError(f"concat was given the shapes {shapes}; only first axes may differ")
    return (sum(shape[0] for shape in shapes), *shapes[0][1:])


def _reshape_shape(a: Shape, *, shape: Sequence[int]) -> Shape:
    sizes = [int(np.prod([k for k in s if k != ROWS])) for s in (a, tuple(shape))]
    if sizes[0] != sizes[1] or list(a).count(ROWS) != list(shape).count(ROWS):
        raise InputError(f"an array of shape {a} cannot become one of shape {tuple(shape)}")
    return tuple(shape)


def _transpose_shape(a: Shape) -> Shape:
    if len(a) != 2:
        raise InputError(f"transpose was given the shape {a}; use a matrix")
    return a[::-1]


def _slice_shape(a: Shape, *, start: int, stop: int) -> Shape:
    if not (a and 0 <= start <= stop <= a[0]):
        raise InputError(f"an array of shape {a} has no entries {start} to {stop}")
    return (stop - start, *a[1:])


def _take_shape(a: Shape, *, which: Sequence[int]) -> Shape:
    if not a or any(not 0 <= k < a[0] for k in which):
        raise InputError(f"an array of shape {a} has no entries {tuple(which)}")
    return (len(which), *a[1:])


def _column_shape(a: Shape, *, place: int) -> Shape:
    if len(a) != 2 or not 0 <= place < a[1]:
        raise InputError(f"an array of shape {a} has no column {place}")
    return a[:1]


def _first_shape(a: Shape, *_: Shape, **__: Any) -> Shape:
    return a


def _second_shape(_: Shape, b: Shape) -> Shape:
    return b


def _expand_shape(a: Shape, like: Shape) -> Shape:
    if broadcast(a, like) != like:
        raise InputError(f"an array of shape {a} cannot fill one of shape {like}")
    return like


def _locate(knots: _Numbers, t: _Numbers) -> _Numbers:
    """Number of the last of ascending ``knots`` (K,) up to ``t``; 0 below all, and for NaN."""
    last = np.searchsorted(knots, t, side="right") - 1.0
    return np.where(np.isnan(t), 0.0, np.maximum(last, 0.0))


def _lookup(table: _Numbers, place: _Numbers) -> _Numbers:
    """Entries of ``table`` (K,) at whole numbers ``place``."""
    out: _Numbers = table[place.astype(np.intp)]
    return out


def _label(text: _Array, *, keys: Sequence[str], values: Sequence[float], other: float) -> _Numbers:
    """The whole number of each text, ``other`` if it is none of ``keys``."""
    known = dict(zip(keys, values, strict=True))
    numbers = [known.get(item, other) for item in text.ravel().tolist()]
    return np.array(numbers, dtype=np.float64).reshape(text.shape)


_TWO: tuple[Kind, ...] = ("number", "number")
_ONE: tuple[Kind, ...] = ("number",)


def _pair(compute: Callable[..., _Array], gives: Kind = "number") -> Operation:
    return Operation(compute, broadcast, _TWO, gives)


def _single(compute: Callable[..., _Array], gives: Kind = "number") -> Operation:
    return Operation(compute, _first_shape, _ONE, gives)


OPERATIONS: Mapping[str, Operation] = {
    # entry by entry, of two arrays
    "add": _pair(np.add),
    "sub": _pair(np.subtract),
    "mul": _pair(np.multiply),
    "div": _pair(np.divide),
    "fmod": _pair(np.fmod),  # the rest has the sign of the first
    "pow": _pair(np.power),
    "min": _pair(np.minimum),
    "max": _pair(np.maximum),
    "less": _pair(np.less, "mask"),
    "less_equal": _pair(np.less_equal, "mask"),
    "equal": _pair(np.equal, "mask"),
    "and": Operation(np.logical_and, broadcast, ("mask", "mask"), "mask"),
    "or": Operation(np.logical_or, broadcast, ("mask", "mask"), "mask"),
    # entry by entry, of one array
    "neg": _single(np.negative),
    "abs": _single(np.abs),
    "sqrt": _single(np.sqrt),
    "exp": _single(np.exp),
    "log": _single(np.log),
    "cos": _single(np.cos),
    "sin": _single(np.sin),
    "round": _single(np.rint),  # halves to the even neighbour
    "isnan": _single(np.isnan, "mask"),
    "isinf": _single(np.isinf, "mask"),
    "not": Operation(np.logical_not, _first_shape, ("mask",), "mask"),
    "number": Operation(lambda a: a.astype(np.float64), _first_shape, ("mask",)),  # 0 and 1
    "where": Operation(np.where, broadcast, ("mask", "number", "number")),
    "expand": Operation(lambda a, like: np.broadcast_to(a, like.shape), _expand_shape, _TWO),
    # tables
    "locate": Operation(_locate, _second_shape, _TWO),
    "lookup": Operation(_lookup, _second_shape, _TWO),
    "label": Operation(_label, _first_shape, ("text",)),
    # products and reductions
    "matmul": Operation(np.matmul, _matmul_shape, _TWO),
    "sum": Operation(lambda a, *, axis: a.sum(axis=axis), _reduced_shape, _ONE),
    "largest": Operation(lambda a, *, axis: a.max(axis=axis), _reduced_shape, _ONE),
    # layout; ``column`` is of the second axis, all others of the first
    "concat": Operation(lambda *parts: np.concatenate(parts), _concat_shape, None),
    "reshape": Operation(lambda a, *, shape: a.reshape(shape), _reshape_shape, _ONE),
    "transpose": Operation(np.transpose, _transpose_shape, _ONE),
    "slice": Operation(lambda a, *, start, stop: a[start:stop], _slice_shape, _ONE),
    "take": Operation(lambda a, *, which: a[list(which)], _take_shape, _ONE),
    "column": Operation(lambda a, *, place: a[:, place], _column_shape, _ONE),
}
"""By name."""
