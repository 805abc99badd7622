"""What every scale of the target can be asked for."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from tensorlace._types import Array
from tensorlace.errors import InputError
from tensorlace.portable import Builder, Value

__all__ = ["REACH", "Scale"]

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
    @abstractmethod
    def valid(self) -> bool:
        """Whether its numbers are such as can be, which those of a damaged file may not be."""

    @abstractmethod
    def forward(self, u: Array) -> Array:
        """Values of y, any shape; within the bounds."""

    @abstractmethod
    def inverse(self, y: Array) -> Array:
        """Values of u, any shape, infinite where no finite one has that y."""

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
    def standardised(self, location: float, unit: float) -> "Scale":
        """The same scale where both y and u are measured in ``unit`` from ``location``."""

    def on_page(self) -> dict[str, Any]:
        """The same as plain data for the panel of a report; None stands for no bound."""
        low, high = (b if np.isfinite(b) else None for b in (self.low, self.high))
        return {"name": self.name, "low": low, "high": high}

    def refuse_outside(self, y: Array) -> None:
        """Refuse targets (n,) that no prediction could be near."""
        wrong = ~((y >= self.low) & (y <= self.high))
        if np.any(wrong):
            raise InputError(
                f"{np.count_nonzero(wrong)} of {wrong.size} targets are not from {self.low:g} to "
                f"{self.high:g}, such as {float(y[wrong][0]):g}: give a wider target_range"
            )
