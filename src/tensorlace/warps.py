"""Warps: how a raw column becomes the variable that a basis wants."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self, final

import numpy as np
import numpy.typing as npt

from tensorlace.bases import Array
from tensorlace.errors import InputError
from tensorlace.summaries import EXACT_VALUES, ColumnSummary, Frame, summarise_column

__all__ = ["Codes", "Frame", "Identity", "MinMax", "Mixed", "Quantile", "Standardise", "Warp"]

Mask = npt.NDArray[np.bool_]


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


@dataclass(frozen=True, eq=False)
class _Framed(Warp):
    frame: Frame

    @final
    def outside(self, x: Array) -> Mask:
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
        u = np.interp(self.frame.forward(x), self.knots, self.heights)
        return np.clip(u, 0.0, 1.0)  # knots a subnormal number apart make an infinite slope


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
        return 0.5 * MinMax(self.frame)(x) + 0.5 * self.quantile(x)


@final
@dataclass(frozen=True, eq=False)
class Codes(Warp):
    """Number the distinct training values 0, 1, ... in ascending order; any other value is -1."""

    interval: ClassVar[bool] = False
    values: Array  # (K,)

    @classmethod
    def from_summary(cls, s: ColumnSummary) -> Self:
        """Take the distinct values, which the sketch must have kept."""
        if s.compressions:
            raise InputError(
                f"more than {EXACT_VALUES} distinct values: too many distinct values for an "
                "indicator; use a numeric basis, or fewer categories"
            )
        return cls(_seen(s).values)

    def __call__(self, x: Array) -> Array:
        """Look each value up."""
        code = np.minimum(np.searchsorted(self.values, x), self.values.size - 1)
        return np.where(self.values[code] == x, code, -1).astype(np.float64)

    def outside(self, x: Array) -> Mask:
        """Not among the training values."""
        return self(x) < 0.0


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


def _seen(s: ColumnSummary) -> ColumnSummary:
    """Refuse a column without rows."""
    if s.empty:
        raise InputError("no row has a weight above 0; give 1 or more rows, all finite")
    return s
