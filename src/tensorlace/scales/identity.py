"""The scale that changes nothing."""

from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from tensorlace._types import Array
from tensorlace.portable import Builder, Value
from tensorlace.scales.scale import Scale

__all__ = ["IDENTITY", "Identity"]


@final
@dataclass(frozen=True)
class Identity(Scale):
    """``y = u``, without bounds.

    >>> Identity().forward(np.array([-1.0, 2.0]))
    array([-1.,  2.])
    """

    low: float = -np.inf
    high: float = np.inf

    @property
    def name(self) -> str:
        """Always "identity"."""
        return "identity"

    @property
    def description(self) -> str:
        """What it is in words."""
        return "as observed, without bounds"

    @property
    def trivial(self) -> bool:
        """Always."""
        return True

    @property
    def plain(self) -> bool:
        """Always."""
        return True

    @property
    def valid(self) -> bool:
        """Whether it has no bounds."""
        return self == IDENTITY

    def forward(self, u: Array) -> Array:
        """The same."""
        return u

    def inverse(self, y: Array) -> Array:
        """The same."""
        return y

    def log_derivative(self, y: Array) -> Array:
        """Zero."""
        return np.zeros(np.shape(y))

    def moments(self, mean: Array, std: Array) -> tuple[Array, Array]:
        """The same."""
        return mean, std

    def straight(self, mean: Array, std: Array) -> npt.NDArray[np.bool_]:
        """Everywhere."""
        return np.ones(np.shape(mean), dtype=np.bool_)

    def portable(self, g: Builder, mean: Value, std: Value) -> tuple[Value, Value]:
        """`moments` as a graph."""
        return mean, std

    def in_units(self, location: float, unit: float) -> tuple[Scale, float, float]:
        """The same."""
        return self, location, unit

    def moved(self, factor: float, shift: float) -> Scale:
        """The same."""
        return self


IDENTITY = Identity()
"""The only one that there is."""
