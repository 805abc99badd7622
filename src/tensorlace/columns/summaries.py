"""Summaries: what the warps need to know of a column, from one pass over its rows.

Rows are cut into leaves of :data:`LEAF_ROWS` on the absolute row index, each leaf is summarised,
and summaries are merged pairwise in a fixed tree. So a table in memory and the same table read
leaf by leaf from anywhere give the same summary, to the bit.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Self, final

import numpy as np

from tensorlace._types import Array
from tensorlace.errors import InputError
from tensorlace.portable import Builder, Value
from tensorlace.sources.reduction import tree_reduce

__all__ = [
    "ColumnSummary",
    "Frame",
    "TableSummary",
    "canonical_order",
    "merge",
    "merge_tables",
    "summarise",
    "summarise_column",
    "summarise_leaf",
    "summarise_table",
]

LEAF_ROWS = 4096
"""Rows that are summarised at once; summaries of leaves are merged."""

EXACT_VALUES = 16384
"""Most distinct values of a sketch that is exact; one of more values is compressed."""

KEPT_VALUES = 8192
"""Most distinct values of a compressed sketch: half the former, so that two merge without loss."""

_DIGITS = 9
"""Digits in which the shapes of two columns are compared: fewer than rounding leaves."""

Names = Sequence[str] | None


@final
@dataclass(frozen=True)
class Frame:
    """The range of a column: ``t = (x - low) / 2^e`` puts training rows into [0, 1).

    Powers of two divide exactly: a change of units by one, or a shift that does not round, leaves
    ``t`` the same to the bit. Scaling precedes subtracting, whose result may be no float.
    """

    low: float
    high: float
    width: float  # t of ``high``: in [1/2, 1), or 0 for a constant column
    exponent: int  # e, or 0 for a constant column

    @classmethod
    def spanning(cls, low: float, high: float) -> Self:
        """Frame the range from ``low`` to ``high``."""
        size = math.frexp(max(-low, high))[1]
        width, e = math.frexp(math.ldexp(high, -size) - math.ldexp(low, -size))
        return cls(low, high, width, e + size if width else 0)

    def forward(self, x: Array) -> Array:
        """``t = (x - low) / 2^e``; a value too far away for a float becomes infinite."""
        return _times_power(x, -self.exponent) - math.ldexp(self.low, -self.exponent)

    def portable(self, g: Builder, x: Value) -> Value:
        """`forward` as a graph."""
        k = -self.exponent
        scaled = (x * 2.0 ** (k // 2)) * 2.0 ** (k - k // 2)
        return scaled - math.ldexp(self.low, k)

    def backward(self, t: Array) -> Array:
        """``x = low + 2^e t``, the inverse of :meth:`forward`."""
        return _times_power(math.ldexp(self.low, -self.exponent) + t, self.exponent)


@final
@dataclass(frozen=True, eq=False)  # arrays do not compare to one truth value
class ColumnSummary:
    """Range, moments and distribution of a column; rows of weight 0 do not count.

    The distribution is a sketch: distinct values and the weight on each. It is exact up to 16384
    distinct values. Beyond, it is compressed to at most 8192 of them, one at every equal step of
    the cumulative weight, the smallest and the largest included. Each compression moves the
    weight up to any point by at most ``n / (2 * 8191)``. Merging adds weights, so errors relative
    to ``n`` do not grow by it, and a sketch with at most ``L`` compressions on the way from any
    leaf is wrong by at most ``L / (2 * 8191)`` of all weight, where ``L`` is below the depth of
    the tree. (The KLL sketch of Apache DataSketches is randomised: no promise of the same bits.)
    """

    n: float  # total weight
    frame: Frame  # smallest and largest value, and the units of the moments
    mean: float  # of t = frame.forward(x)
    m2: float  # weighted sum of (t - mean)^2
    values: Array  # (K,) of the sketch, in raw units, ascending
    masses: Array  # (K,) their weights
    compressions: int  # L
    missing: float = 0.0  # weight of the rows without a value; nothing above counts them

    @property
    def empty(self) -> bool:
        """No value with weight was seen."""
        return not self.values.size

    @property
    def constant(self) -> bool:
        """All values seen are the same."""
        return self.frame.low == self.frame.high

    @property
    def rank_error(self) -> float:
        """Bound on the error of the sketch's distribution function, at any value."""
        return self.compressions / (2 * (KEPT_VALUES - 1))


TableSummary = tuple[ColumnSummary, ...]
"""One summary per column."""


def canonical_order(summaries: Sequence[ColumnSummary]) -> list[int]:
    """Numbers of the columns in an order that says nothing of how they stand in the table.

    By the shape of their distributions, which neither units nor a change of sign alter. Columns
    that cannot be told apart stay as they stand.

    >>> a, b = (summarise(np.array(x)) for x in ([0.0, 5.0, 6.0], [1.0, 2.0, 4.0]))
    >>> canonical_order([a, b]), canonical_order([b, a])
    ([0, 1], [1, 0])
    """

    def shape(k: int) -> tuple[float, ...]:
        s = summaries[k]
        if s.empty or s.constant:
            return 0.0, 0.0, round(s.missing / (s.n + s.missing or 1.0), _DIGITS)
        middle = s.mean / s.frame.width
        spread = math.sqrt(s.m2 / s.n) / s.frame.width
        missing = s.missing / (s.n + s.missing)
        return (
            round(min(middle, 1.0 - middle), _DIGITS),
            round(spread, _DIGITS),
            round(missing, _DIGITS),
        )

    return sorted(range(len(summaries)), key=shape)


def summarise(x: Array, w: Array | None = None, *, missing: bool = False) -> ColumnSummary:
    """Summarise one leaf.

    Parameters
    ----------
    x : ndarray of shape (n,)
    w : ndarray of shape (n,) or None
        How many times each row is there; a leaf without any row is fine.
    missing : bool
        Count NaN as a missing value, where otherwise it is refused.

    Examples
    --------
    >>> s = merge(summarise(np.array([1.0, 3.0])), summarise(np.array([3.0, 5.0])))
    >>> s.n, s.values, s.masses
    (4.0, array([1., 3., 5.]), array([1., 2., 1.]))
    """
    w = np.ones(x.shape) if w is None else w
    if w.shape != x.shape or not np.isfinite(w).all() or (w < 0.0).any():
        raise InputError(f"weights {w} for rows of shape {x.shape}: give one per row, 0 or more")
    present = w > 0.0
    x, w = x[present].astype(np.float64) + 0.0, w[present].astype(np.float64)  # -0 becomes 0
    absent = 0.0
    if missing and np.isnan(x).any():
        there = ~np.isnan(x)
        absent = float(w[~there].sum())
        x, w = x[there], w[there]
    if not x.size:
        return ColumnSummary(0.0, Frame(math.inf, -math.inf, 0.0, 0), 0.0, 0.0, x, w, 0, absent)
    bad = np.count_nonzero(~np.isfinite(x))
    if bad:
        raise InputError(f"{bad} of {x.size} rows are not finite; give finite values only")
    frame = Frame.spanning(float(x.min()), float(x.max()))
    t = frame.forward(x)
    n = float(w.sum())
    mean = float((t * w).sum()) / n
    mean += float(((t - mean) * w).sum()) / n  # what the first pass rounded away
    m2 = float(((t - mean) ** 2 * w).sum())
    return ColumnSummary(n, frame, mean, m2, *_sketch(x, w, 0), absent)


def merge(a: ColumnSummary, b: ColumnSummary) -> ColumnSummary:
    """Summarise the rows of ``a`` and ``b``: Chan, Golub and LeVeque (1979), in a common frame."""
    missing = a.missing + b.missing
    if a.empty or b.empty:
        return replace(b if a.empty else a, missing=missing)
    frame = Frame.spanning(min(a.frame.low, b.frame.low), max(a.frame.high, b.frame.high))
    n = a.n + b.n
    mean, m2 = _reframed(a, frame)
    mean_b, m2_b = _reframed(b, frame)
    delta = mean_b - mean
    mean += delta * (b.n / n)
    m2 += m2_b + delta**2 * (a.n * (b.n / n))
    values, masses = np.concatenate([a.values, b.values]), np.concatenate([a.masses, b.masses])
    sketch = _sketch(values, masses, max(a.compressions, b.compressions))
    return ColumnSummary(n, frame, mean, m2, *sketch, missing)


def summarise_column(x: Array, w: Array | None = None, *, missing: bool = False) -> ColumnSummary:
    """Summarise a whole column (n,) with weights (n,): leaf by leaf, merged in the fixed tree."""
    if w is not None and w.shape != x.shape:
        raise InputError(f"{w.shape} weights for {x.shape} rows: give one per row, 0 or more")
    cuts = [slice(i, i + LEAF_ROWS) for i in range(0, max(len(x), 1), LEAF_ROWS)]
    leaves = (summarise(x[c], None if w is None else w[c], missing=missing) for c in cuts)
    return tree_reduce(leaves, merge)


def summarise_table(
    X: Array, w: Array | None = None, names: Names = None, *, missing: bool = False
) -> TableSummary:
    """Summarise all columns of (N, D); ``names`` are for error messages."""
    return _each(partial(summarise_column, missing=missing), X, w, names)


def summarise_leaf(
    X: Array, w: Array | None = None, names: Names = None, *, missing: bool = False
) -> TableSummary:
    """Summarise all columns of one leaf (n, D), n at most :data:`LEAF_ROWS`.

    ``tree_reduce`` by :func:`merge_tables` over all leaves in order gives, to the bit, what
    :func:`summarise_table` gives for the whole table.
    """
    return _each(partial(summarise, missing=missing), X, w, names)


def merge_tables(a: TableSummary, b: TableSummary) -> TableSummary:
    """Merge column by column."""
    return tuple(merge(s, t) for s, t in zip(a, b, strict=True))


def _each(f: Callable[..., ColumnSummary], X: Array, w: Array | None, names: Names) -> TableSummary:
    summaries = []
    for d, x in enumerate(X.T):
        try:
            summaries.append(f(x, w))
        except InputError as error:
            raise InputError(f"column {d if names is None else repr(names[d])}: {error}") from error
    return tuple(summaries)


def _reframed(s: ColumnSummary, frame: Frame) -> tuple[float, float]:
    """Mean and m2 of ``s`` in a wider frame; the shift of lows is free of a common offset."""
    shift = math.ldexp(s.frame.low, -frame.exponent) - math.ldexp(frame.low, -frame.exponent)
    k = s.frame.exponent - frame.exponent  # at most 0, unless s is constant: then both are 0
    return math.ldexp(s.mean, k) + shift, math.ldexp(s.m2, 2 * k)


def _sketch(x: Array, w: Array, compressions: int) -> tuple[Array, Array, int]:
    """Sort, add up the weight on each value, and compress if these are too many."""
    order = np.argsort(x, kind="stable")  # linear in time for two sorted runs
    x, w = x[order], w[order]
    first = np.flatnonzero(np.concatenate([[True], x[1:] != x[:-1]]))
    x, w = x[first], np.add.reduceat(w, first)
    if x.size <= EXACT_VALUES:
        return x, w, compressions
    # Targets 0, h, 2h, ..., (K-1)h = total, of mass h but h/2 at both ends; each goes to the value
    # that covers it. If m targets are below the cumulative weight c, then (m-1)h < c <= mh, and
    # the sketch has (m-1/2)h: wrong by h/2 at most.
    c = np.cumsum(w)
    h = c[-1] / (KEPT_VALUES - 1)
    m = np.clip(np.ceil(c / h), 1, KEPT_VALUES - 1)
    m[-1] = KEPT_VALUES
    count = np.diff(m, prepend=0.0)
    count[[0, -1]] -= 0.5
    kept = count > 0.0
    return x[kept], count[kept] * h, compressions + 1


def _times_power(x: Array, k: int) -> Array:
    """``x * 2^k``, in two factors since ``2^k`` may be no float; six times faster than ldexp."""
    with np.errstate(over="ignore"):
        return x * 2.0 ** (k // 2) * 2.0 ** (k - k // 2)
