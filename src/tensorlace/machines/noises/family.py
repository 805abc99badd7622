"""A family of noises: what is fitted for it and which of its members are tried."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from tensorlace.machines.machine import KernelMachine
from tensorlace.machines.noise_model import NoiseModel

__all__ = ["NoiseFamily", "NoiseGrid"]


@final
@dataclass(frozen=True)
class NoiseGrid:
    """Values of the parameters that are tried.

    Attributes
    ----------
    factors : tuple of float
        On the noise standard deviation of the members.
    degrees : tuple of float
        Finite degrees of freedom of Student's t.
    strengths : tuple of float
        Of a variation with x.
    """

    factors: tuple[float, ...]
    degrees: tuple[float, ...]
    strengths: tuple[float, ...]


class NoiseFamily(ABC):
    """Noises of one kind.

    Attributes
    ----------
    name : str
        What the ``noise`` argument of the estimator calls it, and `NoiseModel.kind`.
    noise : type
        Class of its members, a frozen dataclass; model files hold it by its name.
    varies : bool
        Whether a network for the logarithm of the variance is fitted for it. Such a noise has to
        be clearly better than a constant one.
    heavy_tailed : bool
        Whether tails are heavier than those of the normal.
    whole_tails : bool
        Whether its members can be given tails of the whole error, by `NoiseModel.with_tails`.
    """

    name: str
    noise: type[NoiseModel]
    varies: bool
    heavy_tailed: bool = False
    whole_tails: bool = False

    @abstractmethod
    def candidates(
        self, grid: NoiseGrid, machines: tuple[KernelMachine, ...], level: float
    ) -> Iterator[NoiseModel]:
        """Members of the family to be compared.

        Parameters
        ----------
        grid : NoiseGrid
        machines : tuple of KernelMachine
            Networks for the logarithm of the variance; none if the family does not vary.
        level : float
            Average of what they predict over the training rows.
        """

    @abstractmethod
    def neighbours(self, noise: NoiseModel, grid: NoiseGrid) -> Iterator[NoiseModel]:
        """Members that vary with x as ``noise`` does, or like it are constant."""
