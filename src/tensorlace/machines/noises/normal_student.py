"""Families of normal and Student's t noise, constant and varying."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import final

import numpy as np

from tensorlace.machines.machine import KernelMachine
from tensorlace.machines.noise import Noise
from tensorlace.machines.noise_model import NoiseModel
from tensorlace.machines.noises.family import NoiseFamily, NoiseGrid

__all__ = ["NormalStudent"]


@final
@dataclass(frozen=True)
class NormalStudent(NoiseFamily):
    """Members of `Noise`.

    Attributes
    ----------
    name : str
    heavy_tailed : bool
        Student's t rather than the normal.
    varies : bool
        With x, rather than constant.
    whole_tails : bool
        The whole error can be Student's t, too.
    """

    name: str
    heavy_tailed: bool = False
    varies: bool = False
    noise: type[NoiseModel] = Noise
    whole_tails: bool = True

    def candidates(
        self, grid: NoiseGrid, machines: tuple[KernelMachine, ...], level: float
    ) -> Iterator[Noise]:
        """All strengths, factors and degrees of the grid that the family has."""
        if not self.varies:
            return self._tried(Noise(), (0.0,), grid)
        return self._tried(Noise(machines=machines, level=level), grid.strengths, grid)

    def neighbours(self, noise: NoiseModel, grid: NoiseGrid) -> Iterator[Noise]:
        """All factors and degrees of the grid with the variation of ``noise``."""
        base = noise if isinstance(noise, Noise) else Noise()
        return self._tried(base, (base.strength,), grid)

    def _tried(self, base: Noise, strengths: Sequence[float], grid: NoiseGrid) -> Iterator[Noise]:
        degrees = grid.degrees if self.heavy_tailed else (np.inf,)
        for strength, factor, nu in product(strengths, grid.factors, degrees):
            yield replace(base, factor=factor, degrees=nu, strength=strength)
