"""What every noise of a mixture can be asked for."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Self

import numpy as np

from tensorlace._types import Array
from tensorlace.machines.machine import KernelMachine
from tensorlace.portable import Builder, Value

__all__ = ["NoiseModel"]


class NoiseModel(ABC):
    """How the noise of a mixture's members is to be changed. Concrete ones are frozen dataclasses.

    A member says ``N(f, e² + a²)`` of a row, with an epistemic and an aleatoric part. With noise
    it says a mixture of normals with weights w_k and variances ``s² (e² + (c σ_k)² exp(h) a²)``,
    for a factor c, log variance h of the row, scale s, and weights and deviations of the scale
    mixture. Where the whole error of a row has heavy tails, not its noise alone, e² is multiplied
    by τ_k², too. So every prediction stays a mixture of normals.

    Attributes
    ----------
    factor : float
        c, on the noise standard deviation of every member.
    strength : float
        Of the variation of h with x, 0 if there is none.
    shrink : float
        s, on the whole standard deviation of every member.
    machines : tuple of KernelMachine
        Networks that h is made from, of which only the mean is used; none if it is constant.
    """

    factor: float
    strength: float
    shrink: float
    machines: tuple[KernelMachine, ...]

    @property
    @abstractmethod
    def kind(self) -> str:
        """Name of its family in `NOISES`."""

    @property
    @abstractmethod
    def description(self) -> str:
        """The same for people, in a few words."""

    @property
    @abstractmethod
    def parameters(self) -> dict[str, float]:
        """Its free parameters by name, for the table of noises that were tried."""

    @property
    @abstractmethod
    def valid(self) -> bool:
        """Whether its parameters are in range, which those of a damaged file may not be."""

    @property
    @abstractmethod
    def trivial(self) -> bool:
        """Whether it changes nothing."""

    @property
    @abstractmethod
    def scale_mixture(self) -> tuple[Array, Array]:
        """Weights w and standard deviations σ, (k,) each."""

    @property
    def epistemic_factors(self) -> Array:
        """Factors τ (k,) on the epistemic standard deviation of the normals."""
        return np.ones(len(self.scale_mixture[0]))

    @abstractmethod
    def log_variance(self, X: Array, threads: int = 1) -> Array:
        """Logarithm h (n,) of the noise variance in units of its average."""

    @abstractmethod
    def portable(self, g: Builder, x: Sequence[Value]) -> Value | None:
        """`log_variance` as a graph, from columns (n,); None if it is zero everywhere."""

    @abstractmethod
    def scaled(self, shrink: float) -> Self:
        """The same noise with another ``shrink``."""

    def with_tails(self, degrees: float) -> Self:
        """The same noise, where the whole error is Student's t with so many degrees of freedom.

        Only asked of noises whose family says that it can be.
        """
        raise NotImplementedError(f"{type(self).__name__} has no tails of the whole error")

    @abstractmethod
    def with_machines(self, machines: tuple[KernelMachine, ...]) -> Self:
        """The same noise with other ``machines``."""

    def times(self, factor: float) -> Self:
        """The same noise with ``factor`` times the noise standard deviation."""
        return replace(self, factor=factor * self.factor)  # type: ignore[type-var]

    @property
    def variance_factor(self) -> float:
        """By which it changes the noise variance of a row of average noise."""
        weights, stds = self.scale_mixture
        return (self.shrink * self.factor) ** 2 * float(weights @ stds**2)
