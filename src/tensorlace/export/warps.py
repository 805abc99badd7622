"""Warps as operators: from a raw column (n, 1) to the variable (n, 1)."""

import math

import numpy as np

from tensorlace.columns.columns import Column
from tensorlace.columns.summaries import Frame
from tensorlace.columns.warps import (
    Codes,
    Cyclic,
    Identity,
    MinMax,
    Mixed,
    Quantile,
    Standardise,
    Warp,
)
from tensorlace.export.graph import Graph

__all__ = ["level_codes", "variable"]


def variable(g: Graph, column: Column, x: str) -> str:
    """`Column.variable`: NaN stays NaN, except that it may have a code."""
    if isinstance(column.warp, Codes):
        return _codes(g, column.warp, x)
    u = _warped(g, column.warp, x)
    if column.warp.interval and column.basis.interval is not None:
        low, high = column.basis.interval
        u = g.affine(u, high - low, low)
    return g.op("Where", g.op("IsNaN", x), np.nan, u)


def _warped(g: Graph, warp: Warp, x: str) -> str:
    if isinstance(warp, Identity):
        return x
    if isinstance(warp, Cyclic):
        rest = g.op("Mod", x, float(warp.period), fmod=1)  # has the sign of x
        turned = g.op("Add", rest, float(warp.period))
        return g.op("Div", g.op("Where", g.op("Less", rest, 0.0), turned, rest), float(warp.period))
    if isinstance(warp, Standardise):
        t = _framed(g, warp.frame, x)
        return g.op("Div", g.op("Sub", t, float(warp.offset)), float(warp.spread))
    if isinstance(warp, Quantile):
        return _heights(g, warp, _framed(g, warp.frame, x))
    if isinstance(warp, MinMax | Mixed):
        if warp.frame.width == 0.0:  # 1/2 in each row: no finite number is infinite
            return g.op("Add", g.as_number(g.op("IsInf", x)), 0.5)
        t = _framed(g, warp.frame, x)
        straight = g.op("Div", t, float(warp.frame.width))
        if isinstance(warp, MinMax):
            return straight
        both = g.op("Add", straight, _heights(g, warp.quantile, t))
        return g.op("Mul", both, 0.5)
    raise TypeError(f"no operators for the warp {type(warp).__name__}")


def _framed(g: Graph, frame: Frame, x: str) -> str:
    """`Frame.forward`, in two factors as there."""
    k = -frame.exponent
    scaled = g.op("Mul", g.op("Mul", x, 2.0 ** (k // 2)), 2.0 ** (k - k // 2))
    return g.op("Sub", scaled, math.ldexp(frame.low, k))


def _heights(g: Graph, warp: Quantile, t: str) -> str:
    """`Quantile.at`: a binary search for the last knot up to ``t``, then a straight line."""
    knots, heights, slopes = warp.knots, warp.heights, warp.cells[2]
    steps = (knots.size - 1).bit_length()
    padded = np.concatenate([knots, np.full(2**steps - knots.size, np.inf)])
    t = g.op("Clip", t, float(knots[0]), float(knots[-1]))
    at = g.constant(np.zeros((1, 1), dtype=np.int64))
    for k in reversed(range(steps)):
        further = g.op("Add", at, 2**k)
        reached = g.op("LessOrEqual", g.op("Gather", padded, further), t)
        at = g.op("Where", reached, further, at)
    rise = g.op("Sub", t, g.op("Gather", knots, at))
    u = g.op("Add", g.op("Mul", rise, g.op("Gather", slopes, at)), g.op("Gather", heights, at))
    return g.op("Min", u, 1.0)


def _codes(g: Graph, warp: Codes, x: str) -> str:
    code = level_codes(g, warp.values, x)
    return g.op("Where", g.op("IsNaN", x), float(warp.values.size) if warp.missing else -1.0, code)


def level_codes(g: Graph, values: np.typing.NDArray[np.float64], x: str) -> str:
    """Place of each value (n, 1) among distinct ``values`` (K,), -1 for any other and for NaN."""
    if not values.size:
        return g.op("Sub", g.as_number(g.op("IsInf", x)), 1.0)
    same = g.as_number(g.op("Equal", x, values[None]))
    return g.op("Sub", g.op("MatMul", same, np.arange(1.0, values.size + 1.0)[:, None]), 1.0)
