"""Warps with fewer knots: those that a straight line between others replaces are left out."""

import heapq
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tensorlace._types import Array, Mask
from tensorlace.columns.warps import Mixed, Quantile, Warp
from tensorlace.machines.machine import KernelMachine

__all__ = ["quantile_of", "thinned", "turning_points"]


def thinned(machines: Sequence[KernelMachine], most_knots: int) -> list[KernelMachine]:
    """Machines whose quantile warps have at most so many knots together, equal ones counted once.

    Both ends of a warp always stay.
    """
    found = {
        _key(warp): warp
        for machine in machines
        for column in machine.columns.columns
        if (warp := quantile_of(column.warp)) is not None
    }
    if sum(warp.knots.size for warp in found.values()) <= most_knots:
        return list(machines)
    masks = turning_points([(warp.knots, warp.heights) for warp in found.values()], most_knots)
    fewer = {
        key: (warp.knots[kept], warp.heights[kept])
        for (key, warp), kept in zip(found.items(), masks, strict=True)
    }
    return [_with_warps(machine, fewer) for machine in machines]


def quantile_of(warp: Warp) -> Quantile | None:
    """The part of a warp that has knots."""
    warp = warp.quantile if isinstance(warp, Mixed) else warp
    return warp if isinstance(warp, Quantile) else None


def turning_points(lines: Sequence[tuple[Array, Array]], most: int) -> list[Mask]:
    """Which points of some lines, each x (n,) and y (n,), to keep so that the error in y is small.

    Both ends, and then, one after the other, the point that is farthest from the straight line
    between its neighbours among those kept: at most ``most`` of all lines together.

    >>> line = np.arange(5.0), np.array([0.0, 1.0, 2.0, 2.5, 3.0])
    >>> turning_points([line], 3)
    [array([ True, False,  True, False,  True])]
    """
    masks = [np.zeros(len(x), dtype=np.bool_) for x, _ in lines]
    stretches: list[tuple[float, int, int, int, int]] = []

    def open_stretch(k: int, first: int, last: int) -> None:
        if last - first < 2:
            return
        x, y = lines[k]
        inner = slice(first + 1, last)
        share = (x[inner] - x[first]) / (x[last] - x[first])
        error = np.abs(y[inner] - (y[first] + share * (y[last] - y[first])))
        far = int(np.argmax(error))
        if error[far] > 0.0:
            heapq.heappush(stretches, (-float(error[far]), k, first, first + 1 + far, last))

    for k, mask in enumerate(masks):
        mask[[0, -1]] = True
        open_stretch(k, 0, len(mask) - 1)
    left = most - sum(int(mask.sum()) for mask in masks)
    while stretches and left > 0:
        _, k, first, middle, last = heapq.heappop(stretches)
        masks[k][middle] = True
        left -= 1
        open_stretch(k, first, middle)
        open_stretch(k, middle, last)
    return masks


def _key(warp: Quantile) -> tuple[bytes, bytes]:
    return warp.knots.tobytes(), warp.heights.tobytes()


def _with_warps(
    machine: KernelMachine, fewer: dict[tuple[bytes, bytes], tuple[Array, Array]]
) -> KernelMachine:
    columns = []
    for column in machine.columns.columns:
        quantile, warp = quantile_of(column.warp), column.warp
        if quantile is not None:
            knots, heights = fewer[_key(quantile)]
            new = replace(quantile, knots=knots, heights=heights)
            warp = replace(warp, quantile=new) if isinstance(warp, Mixed) else new
        columns.append(replace(column, warp=warp))
    return replace(machine, columns=replace(machine.columns, columns=tuple(columns)))
