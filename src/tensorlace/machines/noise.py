"""Normal or Student's t noise, constant or varying with x, for all members of a mixture.

The members of a mixture agree on a noise level each; what is common to all of them is said here
once: a factor on their noise, a second network for the logarithm of its variance, and Student's t
in place of the normal. Student's t is a normal whose variance is random, so a few normals with the
right variances make it up, and every prediction stays a mixture of normals.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Self, final

import numpy as np
from scipy.special import gammainc, gammaincinv

from tensorlace._types import Array
from tensorlace.machines.machine import KernelMachine
from tensorlace.machines.noise_model import NoiseModel
from tensorlace.machines.portable_machine import portable_response
from tensorlace.portable import Builder, Value
from tensorlace.predictive.distributions import Distribution, Mixture

__all__ = ["GAUSSIAN", "LARGEST_LOG", "Noise", "scales", "with_noise"]

LARGEST_LOG = 6.0
"""Most that the logarithm of a noise variance may differ from its average."""

_EDGES = np.array([0.0, 1e-5, 1e-4, 1e-3, 5e-3, 0.02, 0.06, 0.15, 0.3, 0.5, 0.7, 0.87, 1.0])
"""Cuts of the distribution of the random precision, finer where it is small: in the tails."""


@lru_cache(maxsize=64)
def scales(degrees: float) -> tuple[Array, Array]:
    """Weights and standard deviations (k,) of normals that make up Student's t.

    The precision of its normals is Gamma(ν/2, ν/2). Each of the k cells of that distribution lends
    its probability and its mean variance, so that the variance ν / (ν - 2) is exact.

    Parameters
    ----------
    degrees : float
        ν > 2; infinity is the normal.

    Examples
    --------
    >>> weights, stds = scales(4.0)
    >>> round(float(weights @ stds**2), 12)
    2.0
    """
    if np.isinf(degrees):
        return np.ones(1), np.ones(1)
    half = 0.5 * degrees
    cuts = gammaincinv(half, _EDGES)
    weights = np.diff(_EDGES)
    # ∫ τ⁻¹ Gamma(τ; k, k) over a cell is k / (k - 1) times a Gamma(k - 1) probability
    part = np.diff(gammainc(half - 1.0, cuts)) * half / (half - 1.0)
    return weights, np.sqrt(part / weights)


@final
@dataclass(frozen=True, eq=False)
class Noise(NoiseModel):
    """Normal or Student's t noise, constant or varying with x.

    Attributes
    ----------
    factor : float
        On the noise standard deviation of every member.
    degrees : float
        Degrees of freedom of Student's t, infinity for the normal.
    strength : float
        Of the variation with x: 0 is none, 1 what ``machines`` say.
    machines : tuple of KernelMachine
        Each predicts the logarithm of the squared noise, up to a constant; they are averaged.
    level : float
        Average of their predictions over the training rows.
    shrink : float
        On the whole standard deviation of every member, noise or not.
    """

    factor: float = 1.0
    degrees: float = np.inf
    strength: float = 0.0
    machines: tuple[KernelMachine, ...] = ()
    level: float = 0.0
    shrink: float = 1.0

    @property
    def kind(self) -> str:
        """One of "gaussian", "student", "varying" and "varying_student"."""
        heavy = np.isfinite(self.degrees)
        if self.strength > 0.0:
            return "varying_student" if heavy else "varying"
        return "student" if heavy else "gaussian"

    @property
    def description(self) -> str:
        """Tails, and whether it varies."""
        tails = "normal"
        if np.isfinite(self.degrees):
            tails = f"Student's t with {self.degrees:.3g} degrees of freedom"
        where = "varies with the columns" if self.strength > 0.0 else "the same everywhere"
        return f"{tails}, {where}"

    @property
    def trivial(self) -> bool:
        """Whether it changes nothing."""
        return self.factor == self.shrink == 1.0 and self.kind == "gaussian"

    @property
    def valid(self) -> bool:
        """Whether its parameters are in range."""
        positive = self.factor > 0.0 and self.degrees > 2.0 and self.shrink > 0.0
        return positive and (self.strength == 0.0 or len(self.machines) > 0)

    @property
    def parameters(self) -> dict[str, float]:
        """Factor, degrees and strength."""
        return {"factor": self.factor, "degrees": self.degrees, "strength": self.strength}

    @property
    def scale_mixture(self) -> tuple[Array, Array]:
        """Of Student's t with these degrees of freedom, or of one normal."""
        return scales(self.degrees)

    def log_variance(self, X: Array, threads: int = 1) -> Array:
        """Logarithm of the noise variance (n,) in units of its average."""
        if self.strength == 0.0:
            return np.zeros(len(X))
        h = np.mean([machine.mean(X, threads) for machine in self.machines], axis=0)
        return np.clip(self.strength * (h - self.level), -LARGEST_LOG, LARGEST_LOG)

    def scaled(self, shrink: float) -> Self:
        """The same noise with another ``shrink``."""
        return replace(self, shrink=shrink)

    def with_machines(self, machines: tuple[KernelMachine, ...]) -> Self:
        """The same noise with other networks for its variation."""
        return replace(self, machines=machines)

    def portable(self, g: Builder, x: Sequence[Value]) -> Value | None:
        """`log_variance` (n,) as a graph, from columns (n,); None if it is zero everywhere."""
        if self.strength == 0.0:
            return None
        total: Value | None = None
        for machine in self.machines:
            f = portable_response(g, machine, x) * machine.target.scale + machine.target.location
            total = f if total is None else total + f
        assert total is not None
        h = (total / len(self.machines) - self.level) * self.strength
        return g.clip(h, -LARGEST_LOG, LARGEST_LOG)


GAUSSIAN = Noise()
"""The members' own."""


def with_noise(dist: Distribution, noise: NoiseModel, log_variance: Array) -> Distribution:
    """``dist`` with its aleatoric part changed, and all of it shrunk if the noise says so.

    Parameters
    ----------
    dist : Normal or Mixture of n rows
    noise : NoiseModel
    log_variance : (n,) array
        See `NoiseModel.log_variance`.
    """
    a = dist.aleatoric_stds * (noise.shrink * noise.factor * np.exp(0.5 * log_variance))
    shares, stds = noise.scale_mixture
    if len(shares) == 1:
        return _mixture([a], dist, [1.0], noise.shrink)
    return _mixture([a * std for std in stds], dist, shares, noise.shrink)


def _mixture(
    noises: Sequence[Array], dist: Distribution, shares: Sequence[float] | Array, shrink: float
) -> Distribution:
    """Mixture with one copy of ``dist`` for each of the aleatoric parts ``noises``."""
    k = len(noises)
    weights = np.concatenate([share * dist.weights for share in shares])
    means, e = np.tile(dist.means, (k, 1)), np.tile(shrink * dist.epistemic_stds, (k, 1))
    return Mixture(means, e, np.concatenate(noises), weights)
