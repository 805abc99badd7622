"""Warps: how a raw column becomes the variable that a basis wants."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self, final

import numpy as np
import numpy.typing as npt

from tensorlace.bases import Array
from tensorlace.errors import InputError

__all__ = ["Codes", "Frame", "Identity", "MinMax", "Mixed", "Quantile", "Standardise", "Warp"]

Mask = npt.NDArray[np.bool_]


class Warp(ABC):
    """A map of one raw column, learned from its training rows."""

    interval: ClassVar[bool]  # training rows land in [0, 1]

    @classmethod
    @abstractmethod
    def fit(cls, x: Array, w: Array | None = None) -> Self:
        """Learn from rows ``x`` (n,), each there ``w`` (n,) times; weight 0 is not there."""

    @abstractmethod
    def __call__(self, x: Array) -> Array:
        """Map raw values (n,) to the variable (n,)."""

    @abstractmethod
    def outside(self, x: Array) -> Mask:
        """Tell which raw values (n,) lie beyond what was seen in training."""


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
    def fit(cls, x: Array) -> Self:
        """Take the range of ``x``, which is not empty."""
        low, high = float(x.min()), float(x.max())
        size = math.frexp(max(-low, high))[1]
        width, e = math.frexp(math.ldexp(high, -size) - math.ldexp(low, -size))
        return cls(low, high, width, e + size if width else 0)

    def forward(self, x: Array) -> Array:
        """``t = (x - low) / 2^e``; a value too far away for a float becomes infinite."""
        return _times_power(x, -self.exponent) - math.ldexp(self.low, -self.exponent)

    def backward(self, t: Array) -> Array:
        """``x = low + 2^e t``, the inverse of :meth:`forward`."""
        return _times_power(math.ldexp(self.low, -self.exponent) + t, self.exponent)


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
    def fit(cls, x: Array, w: Array | None = None) -> Self:
        """Two passes: the mean first, then the mean square of what is left."""
        frame, x, w = _present(x, w)
        t = frame.forward(x)
        offset = _mean(t, w)
        return cls(frame, offset, math.sqrt(_mean((t - offset) ** 2, w)) or 1.0)

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
    def fit(cls, x: Array, w: Array | None = None) -> Self:
        """Take the range of the rows present."""
        return cls(_present(x, w)[0])

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

    Examples
    --------
    >>> Quantile.fit(np.array([0.0, 1.0, 100.0]))(np.array([0.0, 1.0, 50.5, 100.0]))
    array([0.  , 0.5 , 0.75, 1.  ])
    """

    interval: ClassVar[bool] = True
    knots: Array  # (K,) distinct training values in units of the frame, ascending
    heights: Array  # (K,) where they go

    @classmethod
    def fit(cls, x: Array, w: Array | None = None) -> Self:
        """Sort the rows present and add up the weight on each value."""
        frame, x, w = _present(x, w)
        if frame.width == 0.0:
            return cls(frame, np.zeros(1), np.full(1, 0.5))
        order = np.argsort(x, kind="stable")
        knots, first = np.unique(frame.forward(x[order]), return_index=True)
        mass = np.add.reduceat(w[order], first)
        middle = np.cumsum(mass) - 0.5 * mass
        return cls(frame, knots, (middle - middle[0]) / (middle[-1] - middle[0]))

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
    def fit(cls, x: Array, w: Array | None = None) -> Self:
        """Fit both halves, which share their frame."""
        quantile = Quantile.fit(x, w)
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
    def fit(cls, x: Array, w: Array | None = None) -> Self:
        """Collect the distinct values of the rows present."""
        return cls(np.unique(_present(x, w)[1]))

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
    def fit(cls, x: Array, w: Array | None = None) -> Self:
        """Note the range of the rows present."""
        return cls(_present(x, w)[0])

    def __call__(self, x: Array) -> Array:
        """Return a copy."""
        return x.copy()


def _times_power(x: Array, k: int) -> Array:
    """``x * 2^k``, in two factors since ``2^k`` may be no float; six times faster than ldexp."""
    with np.errstate(over="ignore"):
        return x * 2.0 ** (k // 2) * 2.0 ** (k - k // 2)


def _present(x: Array, w: Array | None) -> tuple[Frame, Array, Array]:
    """Check, and return the rows of positive weight: their frame, values and weights (or 1)."""
    w = np.ones(x.shape) if w is None else w
    if w.shape != x.shape or not np.isfinite(w).all() or (w < 0.0).any():
        raise InputError(f"weights {w} for rows of shape {x.shape}: give one per row, 0 or more")
    x, w = x[w > 0.0], w[w > 0.0]
    bad = np.count_nonzero(~np.isfinite(x))
    if bad or not x.size:
        raise InputError(f"{bad} of {x.size} rows are not finite; give 1 or more rows, all finite")
    return Frame.fit(x), x, w


def _mean(t: Array, w: Array) -> float:
    """Weighted mean; the second pass gives back what the first one rounded away."""
    m = np.average(t, weights=w)
    return float(m + np.average(t - m, weights=w))
