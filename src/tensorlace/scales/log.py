"""A target above a bound, whose logarithm is what adds up."""

from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import numpy.typing as npt
import scipy

from tensorlace._types import Array
from tensorlace.portable import Builder, Value
from tensorlace.portable.normal import portable_normal, portable_scaled_normal
from tensorlace.scales.scale import MARGIN, REACH, Scale

__all__ = ["Log"]

_TINY = float(np.finfo(float).tiny)
"""What y is above its bound at least, so that every y has a finite score."""


@final
@dataclass(frozen=True)
class Log(Scale):
    """``y = low + exp(rate u)``, and no more than ``high``.

    Without an upper bound the mean of y would grow with the exponential of the variance of u,
    without limit where a model knows nothing.

    >>> Log(high=100.0).moments(np.array([0.0, 9.0]), np.array([1.0, 1.0]))[0].round(6)
    array([ 1.64867 , 99.999904])
    """

    low: float = 0.0
    high: float = np.inf
    rate: float = 1.0

    @classmethod
    def of(cls, low: float, high: float) -> "Log":
        """Above ``low``, or above 0 if there is no such bound; at most ``high``."""
        return cls(low if low > -np.inf else 0.0, high)

    @property
    def name(self) -> str:
        """Always "log"."""
        return "log"

    @property
    def unit(self) -> str:
        """The logarithm."""
        return "log y" if self.low == 0.0 else f"log(y - {self.low:g})"

    @property
    def description(self) -> str:
        """The map in words."""
        return f"{self.unit} is modelled, so it is {self.range}"

    @property
    def valid(self) -> bool:
        """Whether there is something between the bounds."""
        return bool(-np.inf < self.low < self.high and 0.0 < self.rate < np.inf)

    @property
    def _top(self) -> float:
        """Largest value of ``rate u`` that is told from larger ones."""
        return float(np.log(self.high - self.low))

    def forward(self, u: Array) -> Array:
        """``min(low + exp(rate u), high)``."""
        v = np.minimum(self.rate * u, self._top)
        with np.errstate(over="ignore"):
            y = np.where(v < self._top, self.low + np.exp(v), self.high)
        return np.asarray(np.minimum(y, self.high))

    @property
    def range(self) -> str:
        """Above the bound."""
        return f"above {self.low:g}" + (
            "" if np.isinf(self.high) else f" and at most {self.high:.4g}"
        )

    def contains(self, y: Array) -> npt.NDArray[np.bool_]:
        """Whether targets are above the bound, any shape."""
        return np.asarray((y > self.low) & (y <= self.high))

    def inverse(self, y: Array) -> Array:
        """``log(y - low) / rate``; at or below the bound that of the smallest number above it."""
        return np.asarray(np.log(np.maximum(y - self.low, _TINY)) / self.rate)

    def log_derivative(self, y: Array) -> Array:
        """``-log(rate (y - low))``."""
        return np.asarray(-np.log(np.maximum(y - self.low, _TINY)) - np.log(self.rate))

    def moments(self, mean: Array, std: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of y where u is normal, any shape.

        With ``b`` the bound in standard deviations s of u, ``E exp(k U)`` below it is
        ``exp(k m + k² s² / 2) Φ(b - k s)``.
        """
        m, s = self.rate * np.asarray(mean), self.rate * np.asarray(std)
        normal = scipy.special
        with np.errstate(all="ignore"):
            b = np.nan_to_num((self._top - m) / s, nan=0.0, posinf=np.inf, neginf=-np.inf)
            reference = np.minimum(m, self._top)
            c = np.exp(self._top - reference)
            beyond = normal.ndtr(-b)
            ends = (
                np.where(beyond > 0.0, c * beyond, 0.0),
                np.where(beyond > 0.0, c * c * beyond, 0.0),
            )
            first = np.exp(m - reference + 0.5 * s * s + normal.log_ndtr(b - s)) + ends[0]
            second = np.exp(2.0 * (m - reference + s * s) + normal.log_ndtr(b - 2.0 * s)) + ends[1]
            free = np.exp(0.5 * s * s), np.exp(0.5 * s * s) * np.sqrt(np.expm1(s * s))
            far = b > REACH + 2.0 * s
            spread = np.fmin(np.sqrt(np.maximum(second - first * first, 0.0)), free[1])
            unit = np.exp(reference)
            most = 0.5 * (self.high - self.low)
            y = self.low + unit * np.where(far, free[0], first)
            return np.minimum(y, self.high), np.minimum(unit * np.where(far, free[1], spread), most)

    def portable(self, g: Builder, mean: Value, std: Value) -> tuple[Value, Value]:
        """`moments` as a graph."""
        m, s = mean * self.rate, g.maximum(std * self.rate, 1e-300)
        if np.isinf(self.high):
            first = g.exp(m + s * s * 0.5)
            return first + self.low, first * g.sqrt(g.exp(s * s) - 1.0)
        b, c = g.clip((self._top - m) / s, -1e150, 1e150), float(self.high - self.low)
        beyond = portable_normal(g, -b)[0]
        first = portable_scaled_normal(g, b - s, m + s * s * 0.5) + beyond * c
        second = portable_scaled_normal(g, b - s * 2.0, (m + s * s) * 2.0) + beyond * (c * c)
        spread = g.sqrt(g.maximum(second - first * first, 0.0))
        return g.minimum(first + self.low, self.high), g.minimum(spread, 0.5 * c)

    def in_units(self, location: float, unit: float) -> tuple[Scale, float, float]:
        """With the location in the unit of y."""
        factor = float(np.exp(self.rate * location))
        return Log(0.0, (self.high - self.low) / factor, self.rate * unit), self.low, factor

    def on_page(self) -> dict[str, Any]:
        """With the rate."""
        return {**super().on_page(), "rate": self.rate}

    def held_within(self, low: float, high: float) -> Scale:
        """With an upper bound where means of a model that has seen u up to ``high`` end."""
        top = self.forward(np.array(high + MARGIN * (high - low)))
        return replace(self, high=float(top))
