"""What every scale of the target can be asked for."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from tensorlace._types import Array
from tensorlace.errors import InputError
from tensorlace.portable import Builder, Value

__all__ = ["MARGIN", "REACH", "Scale"]

MARGIN = 0.5
"""Part of the range of u by which y may leave the range of the targets where it has no bound of its
own: that of `tensorlace.machines.support`. decisions.md#scale-of-the-target"""

REACH = 9.0
"""Standard deviations beyond which a normal has nothing: 1e-19 of it, less than rounding."""


class Scale(ABC):
    """A rising map ``y = forward(u)`` from where a model is fitted to what is observed.

    Models are fitted to u and say mixtures of normals of it. Concrete ones are frozen dataclasses.

    Attributes
    ----------
    low, high : float
        Bounds of y, infinite if there are none.
    """

    low: float
    high: float

    @property
    @abstractmethod
    def name(self) -> str:
        """Its name in `SCALES`."""

    @property
    @abstractmethod
    def description(self) -> str:
        """The same for people, in a few words."""

    @property
    def trivial(self) -> bool:
        """Whether it changes nothing."""
        return False

    @property
    def plain(self) -> bool:
        """Whether y is u wherever it is within the bounds."""
        return False

    @property
    def unit(self) -> str:
        """What u is, for people."""
        return "y"

    @property
    @abstractmethod
    def valid(self) -> bool:
        """Whether its numbers are such as can be, which those of a damaged file may not be."""

    @property
    def range(self) -> str:
        """The values that y can have, in words."""
        return f"from {self.low:g} to {self.high:g}"

    @abstractmethod
    def forward(self, u: Array) -> Array:
        """Values of y, any shape; within the bounds."""

    @abstractmethod
    def inverse(self, y: Array) -> Array:
        """Values of u, any shape; finite also for a y that none has."""

    @abstractmethod
    def log_derivative(self, y: Array) -> Array:
        """``log du/dy``, any shape: what a log density of u gains to be one of y."""

    @abstractmethod
    def moments(self, mean: Array, std: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of y where u is normal, any shape."""

    def straight(self, mean: Array, std: Array) -> npt.NDArray[np.bool_]:
        """Where y is u, so that a normal u stays as it is, any shape."""
        return np.zeros(np.shape(mean), dtype=np.bool_)

    @abstractmethod
    def portable(self, g: Builder, mean: Value, std: Value) -> tuple[Value, Value]:
        """`moments` as a graph."""

    @abstractmethod
    def in_units(self, location: float, unit: float) -> tuple["Scale", float, float]:
        """The same of t, where ``u = location + unit t``: a scale, and a location and unit of y."""

    def moved(self, factor: float, shift: float) -> "Scale":
        """The scale that gives ``shift + factor y`` of ``shift + factor u``."""
        raise InputError(
            f"a distribution on the scale {self.name!r} has no other units: transform the target"
        )

    def held_within(self, low: float, high: float) -> "Scale":
        """The same for u from ``low`` to ``high``, beyond which means of a model do not go."""
        return self

    def on_page(self) -> dict[str, Any]:
        """The same as plain data for the panel of a report; None stands for no bound."""
        low, high = (b if np.isfinite(b) else None for b in (self.low, self.high))
        return {"name": self.name, "low": low, "high": high}

    def contains(self, y: Array) -> npt.NDArray[np.bool_]:
        """Whether targets can be, any shape."""
        return np.asarray((y >= self.low) & (y <= self.high))

    def refuse_outside(self, y: Array) -> None:
        """Refuse targets (n,) that no prediction could be near."""
        wrong = ~self.contains(y)
        if np.any(wrong):
            raise InputError(
                f"{np.count_nonzero(wrong)} of {wrong.size} targets are not {self.range}, "
                f"such as {float(y[wrong][0]):g}: give another target_range"
            )
