"""Layout of stored arrays: C order, little-endian, one half of a triangular matrix."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Layout", "pack", "unpack"]

AnyArray = npt.NDArray[Any]
Layout = dict[str, str]


def pack(value: AnyArray) -> tuple[AnyArray, Layout]:
    """Numbers to store, and the layout that `unpack` restores.

    >>> stored, layout = pack(np.array([[1.0, 2.0], [0.0, 3.0]]))
    >>> stored, layout
    (array([1., 2., 3.]), {'order': 'C', 'triangle': 'upper'})
    >>> unpack(stored, **layout)
    array([[1., 2.],
           [0., 3.]])
    """
    # sums and products depend, in their last bits, on how the numbers lie in memory
    steps = [abs(s) for s in value.strides]
    fortran = value.ndim > 1 and steps == sorted(steps) and not value.flags.c_contiguous
    stored = np.asarray(value.T if fortran else value, order="C")
    stored = stored.astype(stored.dtype.newbyteorder("<"), copy=False)
    layout = {"order": "F" if fortran else "C"}
    if stored.ndim == 2 and stored.shape[0] == stored.shape[1] > 1:
        for name, other in (("upper", "lower"), ("lower", "upper")):
            if all(_nothing(row) for row in _parts(stored, other, 1)):
                return np.concatenate(_parts(stored, name)), {**layout, "triangle": name}
    return stored, layout


def unpack(stored: AnyArray, order: str, triangle: str | None = None) -> AnyArray:
    """The array as it was, aligned, and free of the bytes that ``stored`` looks at.

    Raises
    ------
    ValueError
        If the numbers cannot have been stored like that.
    """
    if order not in ("C", "F") or triangle not in (None, "upper", "lower"):
        raise ValueError(f"there is no layout {order!r:.40}, {triangle!r:.40}")
    out = stored.copy()
    if triangle is not None:
        n = (math.isqrt(8 * stored.size + 1) - 1) // 2
        if stored.shape != (n * (n + 1) // 2,):
            raise ValueError(f"numbers of shape {stored.shape} are no triangle")
        out, start = np.zeros((n, n), dtype=stored.dtype), 0
        for row in _parts(out, triangle):
            row[:] = stored[start : start + row.size]
            start += row.size
    return out.T if order == "F" else out


def _parts(square: AnyArray, triangle: str, offset: int = 0) -> list[AnyArray]:
    """Rows of a triangle, as views; ``offset`` leaves out the diagonal."""
    if triangle == "upper":
        return [row[k + offset :] for k, row in enumerate(square)]
    return [row[: k + 1 - offset] for k, row in enumerate(square)]


def _nothing(row: AnyArray) -> bool:
    """Whether all bits are zero, which those of a negative zero are not."""
    return not row.view(np.uint8).any()
