"""A target that stays within bounds, and may pile up on them."""

from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt
import scipy

from tensorlace._types import Array
from tensorlace.portable import Builder, Value
from tensorlace.portable.normal import portable_normal
from tensorlace.scales.scale import REACH, Scale

__all__ = ["Clip"]

_FAR = 40.0
"""Standard deviations beyond which the probability of a normal is no number but zero."""


@final
@dataclass(frozen=True)
class Clip(Scale):
    """``y = min(max(u, low), high)``: all that u says beyond a bound is said of the bound.

    A density at y is that of u, also on the bounds and beyond them: so a log score compares models
    as if nothing had been clipped, and no row has a score without limit.

    >>> Clip(low=0.0).moments(np.array([0.0, 50.0]), np.array([1.0, 1.0]))[0].round(6)
    array([ 0.398942, 50.      ])
    """

    low: float = -np.inf
    high: float = np.inf

    @property
    def name(self) -> str:
        """Always "clip"."""
        return "clip"

    @property
    def description(self) -> str:
        """The bounds."""
        if np.isinf(self.high):
            return f"as observed, {self.low:g} or more"
        if np.isinf(self.low):
            return f"as observed, {self.high:g} or less"
        return f"as observed, from {self.low:g} to {self.high:g}"

    @property
    def plain(self) -> bool:
        """Always."""
        return True

    @property
    def valid(self) -> bool:
        """Whether there is something between the bounds."""
        return bool(self.low < self.high and (self.low > -np.inf or self.high < np.inf))

    def forward(self, u: Array) -> Array:
        """The nearest value within the bounds."""
        return np.clip(u, self.low, self.high)

    def inverse(self, y: Array) -> Array:
        """``y`` itself, also beyond the bounds."""
        return y

    def log_derivative(self, y: Array) -> Array:
        """Zero."""
        return np.zeros(np.shape(y))

    def straight(self, mean: Array, std: Array) -> npt.NDArray[np.bool_]:
        """Where nothing reaches a bound, any shape."""
        inside = (mean - REACH * std >= self.low) & (mean + REACH * std <= self.high)
        return np.asarray(inside)

    def moments(self, mean: Array, std: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of y where u is normal, any shape.

        With standard normal Z, bounds α and β in units of ``std`` and c what is nearest to 0
        between them, ``Y - c = (Z - c)₊ - (c - Z)₊``, both cut off at the bounds. Neither part is
        a difference of large numbers.
        """
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            a = np.nan_to_num(np.clip((self.low - mean) / std, -_FAR, _FAR))
            b = np.nan_to_num(np.clip((self.high - mean) / std, -_FAR, _FAR))
        c = np.clip(0.0, a, b)
        at_c, at_a, at_b = (_excess(x) for x in (c, a, -b))
        over = _excess(-c)
        first = (over[0] - at_b[0]) - (at_c[0] - at_a[0])
        below = at_c[1] - at_a[1] - 2.0 * (c - a) * at_a[0]
        above = over[1] - at_b[1] - 2.0 * (b - c) * at_b[0]
        square = np.maximum(below + above - first * first, 0.0)
        most = 0.5 * (self.high - self.low)  # half on either bound
        spread = np.minimum(std * np.sqrt(square), most)
        return self.forward(self.forward(mean) + std * first), spread

    def portable(self, g: Builder, mean: Value, std: Value) -> tuple[Value, Value]:
        """`moments` as a graph."""
        unit = g.maximum(std, 1e-300)

        def bound(value: float) -> Value:
            if np.isinf(value):
                return g.expand(np.sign(value) * _FAR, mean)
            return g.clip((value - mean) / unit, -_FAR, _FAR)

        def excess(x: Value) -> tuple[Value, Value]:
            below, density = portable_normal(g, x)
            return x * below + density, (x * x + 1.0) * below + x * density

        a, b = bound(self.low), bound(self.high)
        c = g.minimum(g.maximum(a, 0.0), b)
        at_c, over, zero = excess(c), excess(-c), (0.0, 0.0)
        at_a = zero if np.isinf(self.low) else excess(a)
        at_b = zero if np.isinf(self.high) else excess(-b)
        first = (over[0] - at_b[0]) - (at_c[0] - at_a[0])
        below = at_c[1] - at_a[1] - 2.0 * (c - a) * at_a[0]
        above = over[1] - at_b[1] - 2.0 * (b - c) * at_b[0]
        square = g.maximum(below + above - first * first, 0.0)
        middle = g.clip(mean, self.low, self.high)
        spread = g.minimum(std * g.sqrt(square), 0.5 * (self.high - self.low))
        return g.clip(middle + std * first, self.low, self.high), spread

    def in_units(self, location: float, unit: float) -> tuple[Scale, float, float]:
        """Bounds in these units, which are those of y, too."""
        scale = Clip((self.low - location) / unit, (self.high - location) / unit)
        return scale, location, unit

    def moved(self, factor: float, shift: float) -> Scale:
        """Other bounds."""
        return Clip(shift + factor * self.low, shift + factor * self.high)


def _excess(x: Array) -> tuple[Array, Array]:
    """``E (x - Z)₊`` and ``E (x - Z)₊²`` for standard normal Z, any shape."""
    below, density = scipy.special.ndtr(x), np.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi)
    return x * below + density, (x * x + 1.0) * below + x * density
