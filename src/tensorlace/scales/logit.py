"""A target between two bounds, whose log odds add up."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt
import scipy

from tensorlace._types import Array
from tensorlace.portable import Builder, Value
from tensorlace.scales.scale import REACH, Scale

__all__ = ["Logit"]

_TINY = 1e-300
"""Least part of the range that is below a y, so that every y has a finite score."""

_STEPS = 72
"""Steps on either side of the mean in sums over a normal: right to 1e-13 where log odds have a
standard deviation of up to 5, and to 1e-6 up to 10. decisions.md#scale-of-the-target"""

_Z = np.linspace(-REACH, REACH, 2 * _STEPS + 1)
_WEIGHTS = np.exp(-0.5 * _Z**2) / np.sum(np.exp(-0.5 * _Z**2))


@final
@dataclass(frozen=True)
class Logit(Scale):
    """``y = low + (high - low) / (1 + exp(-(rate u + shift)))``.

    >>> Logit().moments(np.array([0.0, 9.0]), np.array([1.0, 0.0]))[0].round(6)
    array([0.5     , 0.999877])
    """

    low: float = 0.0
    high: float = 1.0
    rate: float = 1.0
    shift: float = 0.0

    @classmethod
    def of(cls, low: float, high: float) -> "Logit":
        """Between ``low`` and ``high``, or where there is no bound 0 and 1."""
        return cls(low if low > -np.inf else 0.0, high if high < np.inf else 1.0)

    @property
    def name(self) -> str:
        """Always "logit"."""
        return "logit"

    @property
    def unit(self) -> str:
        """The log odds."""
        return "log odds of y"

    @property
    def description(self) -> str:
        """The map in words."""
        return f"{self.unit} are modelled, so it is {self.range}"

    @property
    def range(self) -> str:
        """Between the bounds."""
        return f"between {self.low:g} and {self.high:g}"

    @property
    def valid(self) -> bool:
        """Whether there is something between the bounds."""
        bounds = -np.inf < self.low < self.high < np.inf
        return bool(bounds and 0.0 < self.rate < np.inf and np.isfinite(self.shift))

    def contains(self, y: Array) -> npt.NDArray[np.bool_]:
        """Whether targets are between the bounds, any shape."""
        return np.asarray((y > self.low) & (y < self.high))

    def forward(self, u: Array) -> Array:
        """Values of y, any shape."""
        share = scipy.special.expit(self.rate * u + self.shift)
        return np.asarray(np.clip(self.low + (self.high - self.low) * share, self.low, self.high))

    def inverse(self, y: Array) -> Array:
        """Log odds, less the shift and over the rate; on the bounds and beyond that of the next."""
        below, above = self._shares(y)
        return np.asarray((np.log(below) - np.log(above) - self.shift) / self.rate)

    def log_derivative(self, y: Array) -> Array:
        """``-log(rate (y - low) (high - y) / (high - low))``."""
        below, above = self._shares(y)
        scale = np.log(self.rate) + np.log(self.high - self.low)
        return np.asarray(-np.log(below) - np.log(above) - scale)

    def _shares(self, y: Array) -> tuple[Array, Array]:
        """Parts of the range that are below and above y, any shape."""
        width = self.high - self.low
        least = np.finfo(float).epsneg
        below = np.clip((y - self.low) / width, _TINY, 1.0)
        return below, np.clip((self.high - y) / width, least, 1.0)

    def moments(self, mean: Array, std: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of y where u is normal, any shape, by sums over a grid."""
        m, s = self.rate * np.asarray(mean) + self.shift, self.rate * np.asarray(std)
        middle = scipy.special.expit(m)
        first, second = np.zeros(np.shape(m)), np.zeros(np.shape(m))
        for z, weight in zip(_Z.tolist(), _WEIGHTS.tolist(), strict=True):
            away = scipy.special.expit(m + s * z) - middle
            first += weight * away
            second += weight * away * away
        width = self.high - self.low
        spread = np.sqrt(np.maximum(second - first * first, 0.0))
        y = self.low + width * (middle + first)
        return np.clip(y, self.low, self.high), np.minimum(width * spread, 0.5 * width)

    def portable(self, g: Builder, mean: Value, std: Value) -> tuple[Value, Value]:
        """`moments` as a graph."""
        m, s = mean * self.rate + self.shift, std * self.rate

        def share(v: Value) -> Value:
            return 1.0 / (g.exp(-v) + 1.0)

        middle = share(m)
        first = second = g.expand(0.0, m)
        for z, weight in zip(_Z.tolist(), _WEIGHTS.tolist(), strict=True):
            away = share(m + s * z) - middle
            first, second = first + away * weight, second + away * away * weight
        width = self.high - self.low
        spread = g.sqrt(g.maximum(second - first * first, 0.0))
        y = (middle + first) * width + self.low
        return g.clip(y, self.low, self.high), g.minimum(spread * width, 0.5 * width)

    def in_units(self, location: float, unit: float) -> tuple[Scale, float, float]:
        """With the location in the shift; y is as it was."""
        shift = self.shift + self.rate * location
        return Logit(self.low, self.high, self.rate * unit, shift), 0.0, 1.0

    def on_page(self) -> dict[str, Any]:
        """With rate and shift."""
        return {**super().on_page(), "rate": self.rate, "shift": self.shift}
