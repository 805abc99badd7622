"""Warps: how a raw column becomes the variable that a basis wants."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self, final

import numpy as np
import numpy.typing as npt

from tensorlace._types import Array, Mask
from tensorlace.columns.summaries import EXACT_VALUES, ColumnSummary, Frame, summarise_column
from tensorlace.errors import InputError
from tensorlace.portable import Builder, Value

__all__ = [
    "FARTHEST",
    "Codes",
    "Cyclic",
    "Frame",
    "Identity",
    "Mask",
    "MinMax",
    "Mixed",
    "Quantile",
    "Standardise",
    "Warp",
]

FARTHEST = 1e6
"""Largest distance from a training range that is told from larger ones, in halves of its width."""


_OUTER = ((0.15865525393145707, 1.0), (0.05, 1.6448536269514722), (0.01, 2.3263478740408408))
"""Shares of a normal that lie beyond so many standard deviations, to one side."""


class Warp(ABC):
    """A map of one raw column, learned from its training rows."""

    interval: ClassVar[bool]  # training rows land in [0, 1]

    @classmethod
    @final
    def fit(cls, x: Array, w: Array | None = None) -> Self:
        """Learn from rows ``x`` (n,), each there ``w`` (n,) times; weight 0 is not there."""
        return cls.from_summary(summarise_column(x, w))

    @classmethod
    @abstractmethod
    def from_summary(cls, s: ColumnSummary) -> Self:
        """Learn from the summary of the rows, wherever they are."""

    @abstractmethod
    def __call__(self, x: Array) -> Array:
        """Map raw values (n,) to the variable (n,)."""

    @abstractmethod
    def outside(self, x: Array) -> Mask:
        """Tell which raw values (n,) lie beyond what was seen in training."""

    def beyond(self, x: Array) -> Array:
        """How far raw values (n,) lie beyond the training range, in halves of its width."""
        return np.zeros(x.shape)

    def portable_beyond(self, g: Builder, x: Value) -> Value | None:
        """`beyond` as a graph: values (n,), or None if it is zero everywhere."""
        return None

    def portable(self, g: Builder, x: Value) -> Value:
        """The map as a graph: raw values (n,) give the variable (n,).

        Raises
        ------
        InputError
            Unless the warp has a portable form.
        """
        raise InputError(_no_portable_form(self, "portable"))

    def portable_outside(self, g: Builder, x: Value) -> Value | None:
        """`outside` as a graph: a mask (n,), or None if nothing ever is.

        Raises
        ------
        InputError
            Unless the warp has a portable form.
        """
        raise InputError(_no_portable_form(self, "portable_outside"))


@dataclass(frozen=True, eq=False)
class _Framed(Warp):
    frame: Frame

    @final
    def outside(self, x: Array) -> Mask:
        """Beyond the smallest or largest training value."""
        return (x < self.frame.low) | (x > self.frame.high)

    @final
    def beyond(self, x: Array) -> Array:
        """Distance to the range; a constant column says nothing wherever it goes."""
        width = self.frame.width
        if width == 0.0:
            return np.zeros(x.shape)
        t = self.frame.forward(x)
        far = np.maximum(-t, t - width) / (0.5 * width)
        return np.where(far > 0.0, np.minimum(far, FARTHEST), 0.0)

    @final
    def portable_beyond(self, g: Builder, x: Value) -> Value | None:
        """Distance to the range."""
        width = self.frame.width
        if width == 0.0:
            return None
        t = self.frame.portable(g, x)
        far = g.maximum(-t, t - width) / (0.5 * width)
        return g.where(far > 0.0, g.minimum(far, FARTHEST), 0.0)

    @final
    def portable_outside(self, g: Builder, x: Value) -> Value:
        """Beyond the smallest or largest training value."""
        return (x < self.frame.low) | (x > self.frame.high)


@final
@dataclass(frozen=True)
class Standardise(_Framed):
    """Subtract the mean, divide by the (population) standard deviation; 1 for a constant column."""

    interval: ClassVar[bool] = False
    offset: float  # mean, in units of the frame
    spread: float  # standard deviation, in units of the frame

    @classmethod
    def from_summary(cls, s: ColumnSummary) -> Self:
        """Take the moments."""
        s = _seen(s)
        return cls(s.frame, s.mean, math.sqrt(s.m2 / s.n) or 1.0)

    @classmethod
    def robust(cls, s: ColumnSummary) -> Self:
        """Take the median, and the width of the middle part: few wild rows change neither.

        Half the width of the middle 68 %, or of 90 or 98 % (in standard deviations of a normal)
        where most values are the same; where nearly all are, the moments.
        """
        s = _seen(s)
        t = s.frame.forward(s.values)
        up, down = np.cumsum(s.masses), np.cumsum(s.masses[::-1])

        def ends(share: float) -> tuple[float, float]:
            """Values below and above which there is no more than a share, the same if mirrored."""
            last = len(t) - 1
            low, high = (min(int(np.searchsorted(c, share * s.n)), last) for c in (up, down))
            return float(t[low]), float(t[last - high])

        middle = 0.5 * sum(ends(0.5))
        for share, deviations in _OUTER:
            low, high = ends(share)
            if high > low:
                return cls(s.frame, middle, 0.5 * (high - low) / deviations)
        return cls.from_summary(s)

    @classmethod
    def unchanged(cls) -> Self:
        """Values as they are."""
        return cls(Frame(0.0, 1.0, 0.5, 0), 0.0, 1.0)

    @property
    def location(self) -> float:
        """Mean of the training rows, in raw units."""
        return float(self.frame.backward(np.array(self.offset)))

    @property
    def scale(self) -> float:
        """Standard deviation of the training rows, in raw units."""
        return math.ldexp(self.spread, self.frame.exponent)

    def __call__(self, x: Array) -> Array:
        """``(x - location) / scale``."""
        return (self.frame.forward(x) - self.offset) / self.spread

    def portable(self, g: Builder, x: Value) -> Value:
        """``(x - location) / scale``."""
        return (self.frame.portable(g, x) - self.offset) / self.spread

    def inverse(self, u: Array) -> Array:
        """``location + scale * u``, for ``u`` of any shape."""
        return self.frame.backward(self.offset + self.spread * u)


@final
@dataclass(frozen=True)
class MinMax(_Framed):
    """Map the training range to [0, 1] and go on along the same line; constant columns to 1/2."""

    interval: ClassVar[bool] = True

    @classmethod
    def from_summary(cls, s: ColumnSummary) -> Self:
        """Take the range."""
        return cls(_seen(s).frame)

    def __call__(self, x: Array) -> Array:
        """``(x - low) / (high - low)``."""
        if self.frame.width == 0.0:
            return np.full(x.shape, 0.5)
        return self.frame.forward(x) / self.frame.width

    def portable(self, g: Builder, x: Value) -> Value:
        """``(x - low) / (high - low)``."""
        if self.frame.width == 0.0:
            return g.expand(0.5, x)
        return self.frame.portable(g, x) / self.frame.width


@final
@dataclass(frozen=True, eq=False)  # arrays do not compare to one truth value
class Quantile(_Framed):
    """The empirical distribution function, joined by straight lines and stretched to [0, 1].

    The smallest training value goes to 0, the largest to 1, tied values to the middle of the
    ranks they share, values beyond the range to 0 or 1, and a constant column to 1/2.
    Of more than 16384 distinct values only some are knots, right to a few times the summary's
    ``rank_error``; so are values between knots, except in the gaps beside a value with a jump.

    Examples
    --------
    >>> Quantile.fit(np.array([0.0, 1.0, 100.0]))(np.array([0.0, 1.0, 50.5, 100.0]))
    array([0.  , 0.5 , 0.75, 1.  ])
    """

    interval: ClassVar[bool] = True
    knots: Array  # (K,) distinct training values in units of the frame, ascending
    heights: Array  # (K,) where they go

    @classmethod
    def from_summary(cls, s: ColumnSummary) -> Self:
        """Take the sketch: every distinct value, or if these are too many, at most 16384."""
        s = _seen(s)
        if s.constant:
            return cls(s.frame, np.zeros(1), np.full(1, 0.5))
        knots, first = np.unique(s.frame.forward(s.values), return_index=True)
        mass = np.add.reduceat(s.masses, first)
        middle = np.cumsum(mass) - 0.5 * mass
        return cls(s.frame, knots, (middle - middle[0]) / (middle[-1] - middle[0]))

    def __call__(self, x: Array) -> Array:
        """Interpolate between the knots; constant beyond them."""
        return self.at(self.frame.forward(x))

    def at(self, t: Array) -> Array:
        """Heights (n,) of values ``t`` (n,) in units of the frame: ``np.interp``, but faster."""
        cells, following, slopes = self.cells
        t = np.clip(t, self.knots[0], self.knots[-1])
        knot = cells.take((t * cells.size).astype(np.intp))
        crowded = np.flatnonzero(knot < 0)
        knot += t >= following.take(knot)
        knot[crowded] = np.searchsorted(following, t[crowded], side="right")
        t -= self.knots.take(knot)
        t *= slopes.take(knot)
        t += self.heights.take(knot)
        return np.minimum(t, 1.0, out=t)

    def portable(self, g: Builder, x: Value) -> Value:
        """Interpolate between the knots."""
        return self.portable_at(g, self.frame.portable(g, x))

    def portable_at(self, g: Builder, t: Value) -> Value:
        """`at` as a graph; slopes are left to be computed from the knots, once."""
        knots, heights, K = g.constant(self.knots), g.constant(self.heights), self.knots.size
        slopes: Value = g.constant(np.zeros(1))
        if K > 1:
            rise = g.slice(heights, 1, K) - g.slice(heights, 0, K - 1)
            slope = rise / (g.slice(knots, 1, K) - g.slice(knots, 0, K - 1))
            slopes = g.concat([g.where(g.isinf(slope), 0.0, slope), slopes])
        t = g.clip(t, float(self.knots[0]), float(self.knots[-1]))
        knot = g.locate(knots, t)
        rise = (t - g.lookup(knots, knot)) * g.lookup(slopes, knot)
        return g.minimum(rise + g.lookup(heights, knot), 1.0)

    @cached_property
    def cells(self) -> tuple[npt.NDArray[np.intp], Array, Array]:
        """Last knot up to the start of each of many equal cells of [0, 1), next knots, slopes.

        A cell with two knots or more inside has -1: there a binary search has to decide.
        """
        edges = np.linspace(0.0, 1.0, 2 ** (self.knots.size.bit_length() + 3) + 1)
        first = np.searchsorted(self.knots, edges[:-1], side="right") - 1
        last = np.searchsorted(self.knots, edges[1:], side="left") - 1
        following = np.append(self.knots[1:], np.inf)
        with np.errstate(over="ignore"):
            slopes = np.diff(self.heights, append=1.0) / (following - self.knots)
        slopes[~np.isfinite(slopes)] = 0.0  # knots a subnormal number apart
        return np.where(last - first < 2, first, -1), following, slopes

    @cached_property
    def packed(self) -> tuple[npt.NDArray[np.intc], Array]:
        """`cells` for C: cells, and knots, next knots, slopes and heights (K, 4)."""
        cells, following, slopes = self.cells
        return cells.astype(np.intc), np.stack([self.knots, following, slopes, self.heights], 1)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be computed again."""
        return {name: v for name, v in vars(self).items() if name not in ("cells", "packed")}


@final
@dataclass(frozen=True, eq=False)
class Mixed(_Framed):
    """Half :class:`MinMax`, half :class:`Quantile`: spreads crowds, yet keeps distances."""

    interval: ClassVar[bool] = True
    quantile: Quantile

    @classmethod
    def from_summary(cls, s: ColumnSummary) -> Self:
        """Fit both halves, which share their frame."""
        quantile = Quantile.from_summary(s)
        return cls(quantile.frame, quantile)

    def __call__(self, x: Array) -> Array:
        """Average both halves; beyond the range only the first one still rises."""
        if self.frame.width == 0.0:
            return np.full(x.shape, 0.5)
        t = self.frame.forward(x)
        return 0.5 * (t / self.frame.width) + 0.5 * self.quantile.at(t)

    def portable(self, g: Builder, x: Value) -> Value:
        """Average both halves."""
        if self.frame.width == 0.0:
            return g.expand(0.5, x)
        t = self.frame.portable(g, x)
        return 0.5 * (t / self.frame.width) + 0.5 * self.quantile.portable_at(g, t)


@final
@dataclass(frozen=True, eq=False)
class Codes(Warp):
    """Number the distinct training values 0, 1, ... in ascending order; any other value is -1.

    If values were missing (NaN) in training, missing is a value too, and the last one.
    """

    interval: ClassVar[bool] = False
    values: Array  # (K,)
    missing: bool = False

    @classmethod
    def from_summary(cls, s: ColumnSummary) -> Self:
        """Take the distinct values, which the sketch must have kept."""
        if s.compressions:
            raise InputError(
                f"more than {EXACT_VALUES} distinct values: too many distinct values for an "
                "indicator; use a numeric basis, or fewer categories"
            )
        return cls(s.values, True) if s.missing else cls(_seen(s).values)

    @property
    def n(self) -> int:
        """How many values there are, missing included."""
        return self.values.size + self.missing

    def __call__(self, x: Array) -> Array:
        """Look each value up."""
        code = np.searchsorted(self.values, x)
        known = np.append(self.values, np.nan)[code] == x
        return np.where(known | (np.isnan(x) & self.missing), code, -1).astype(np.float64)

    def outside(self, x: Array) -> Mask:
        """Not among the training values."""
        return self(x) < 0.0

    def portable(self, g: Builder, x: Value) -> Value:
        """Look each value up."""
        gap = float(self.values.size) if self.missing else -1.0
        if not self.values.size:
            return g.where(g.isnan(x), gap, -1.0)
        place = g.locate(self.values, x)
        known = g.equal(g.lookup(self.values, place), x)
        return g.where(g.isnan(x), gap, g.where(known, place, -1.0))

    def portable_outside(self, g: Builder, x: Value) -> Value:
        """Not among the training values."""
        return self.portable(g, x) < 0.0


@final
@dataclass(frozen=True)
class Cyclic(Warp):
    """Fold the line onto a circle: where in its period a value lies, from 0 to 1."""

    interval: ClassVar[bool] = True
    period: float

    @classmethod
    def from_summary(cls, s: ColumnSummary) -> Self:
        """Refuse: rows do not tell their period."""
        raise InputError(
            f"rows from {s.frame.low:g} to {s.frame.high:g} do not tell their period; give it, as "
            "in Periodic(24)"
        )

    def __call__(self, x: Array) -> Array:
        """``(x mod period) / period``."""
        return np.mod(x, self.period) / self.period

    def portable(self, g: Builder, x: Value) -> Value:
        """``(x mod period) / period``."""
        rest = g.fmod(x, self.period)  # has the sign of x
        return g.where(rest < 0.0, rest + self.period, rest) / self.period

    def portable_outside(self, g: Builder, x: Value) -> None:
        """Nowhere."""

    def outside(self, x: Array) -> Mask:
        """Nowhere: a circle has no ends."""
        return np.zeros(x.shape, dtype=np.bool_)


@final
@dataclass(frozen=True)
class Identity(_Framed):
    """Take the column as it is."""

    interval: ClassVar[bool] = False

    @classmethod
    def from_summary(cls, s: ColumnSummary) -> Self:
        """Note the range."""
        return cls(_seen(s).frame)

    def __call__(self, x: Array) -> Array:
        """Return a copy."""
        return x.copy()

    def portable(self, g: Builder, x: Value) -> Value:
        """The column as it is."""
        return x


def _no_portable_form(warp: Warp, method: str) -> str:
    name = type(warp).__name__
    return (
        f"the warp {name} has no portable form, which exports and pages need: give {name} a "
        f"method {method}(g, x)"
    )


def _seen(s: ColumnSummary) -> ColumnSummary:
    """Refuse a column without rows."""
    if s.empty:
        raise InputError("no row has a weight above 0; give 1 or more rows, all finite")
    return s
