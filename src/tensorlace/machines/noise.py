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
from scipy.special import gammainc, gammaincinv, ndtri, stdtrit

from tensorlace._types import Array
from tensorlace.laplace.precision import FEW_ROWS
from tensorlace.machines.machine import KernelMachine
from tensorlace.machines.noise_model import NoiseModel
from tensorlace.machines.portable_machine import portable_response
from tensorlace.portable import Builder, Value
from tensorlace.predictive.distributions import Distribution, Mixture

__all__ = ["GAUSSIAN", "LARGEST_LOG", "Noise", "noise_of_few_rows", "scales", "with_noise"]

LARGEST_LOG = 6.0
"""Most that the logarithm of a noise variance may differ from its average."""

FEWEST_DEGREES = 2.2
"""Least degrees of freedom of the noise where rows are few. decisions.md#few-rows"""

LEVEL = 0.975
"""Quantile at which widths of Student's t and of the normal are compared."""

_EDGES = np.array([0.0, 1e-5, 1e-4, 1e-3, 5e-3, 0.02, 0.06, 0.15, 0.3, 0.5, 0.7, 0.87, 1.0])
"""Cuts of the distribution of the random precision, finer where it is small: in the tails."""

_FEWER_EDGES = np.array([0.0, 1e-3, 0.01, 0.05, 0.2, 0.5, 1.0])
"""Fewer cuts, for tails of the whole error: they multiply the normals that the noise has."""


@lru_cache(maxsize=64)
def scales(degrees: float, *, fewer: bool = False) -> tuple[Array, Array]:
    """Weights and standard deviations (k,) of normals that make up Student's t.

    The precision of its normals is Gamma(ν/2, ν/2). Each of the k cells of that distribution lends
    its probability and its mean variance, so that the variance ν / (ν - 2) is exact.

    Parameters
    ----------
    degrees : float
        ν > 2; infinity is the normal.
    fewer : bool
        Six normals in place of twelve.

    Examples
    --------
    >>> weights, stds = scales(4.0)
    >>> round(float(weights @ stds**2), 12)
    2.0
    """
    if np.isinf(degrees):
        return np.ones(1), np.ones(1)
    half, edges = 0.5 * degrees, _FEWER_EDGES if fewer else _EDGES
    cuts = gammaincinv(half, edges)
    weights = np.diff(edges)
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
    tails : float
        Degrees of freedom of Student's t that the whole error of a member follows, infinity for
        the normal; ``degrees`` are those of its noise alone.
    """

    factor: float = 1.0
    degrees: float = np.inf
    strength: float = 0.0
    machines: tuple[KernelMachine, ...] = ()
    level: float = 0.0
    shrink: float = 1.0
    tails: float = np.inf

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
        if np.isinf(self.tails):
            return f"{tails}, {where}"
        return f"{tails}, {where}; whole errors Student's t with {self.tails:.3g}"

    @property
    def trivial(self) -> bool:
        """Whether it changes nothing."""
        plain = self.factor == self.shrink == 1.0 and self.kind == "gaussian"
        return plain and bool(np.isinf(self.tails))

    @property
    def valid(self) -> bool:
        """Whether its parameters are in range."""
        positive = self.factor > 0.0 and min(self.degrees, self.tails) > 2.0 and self.shrink > 0.0
        return positive and (self.strength == 0.0 or len(self.machines) > 0)

    @property
    def parameters(self) -> dict[str, float]:
        """Factor, degrees and strength."""
        return {"factor": self.factor, "degrees": self.degrees, "strength": self.strength}

    @property
    def scale_mixture(self) -> tuple[Array, Array]:
        """Of Student's t with these degrees of freedom, times that of the whole error."""
        weights, stds = scales(self.degrees)
        if np.isinf(self.tails):
            return weights, stds
        shares, wider = scales(self.tails, fewer=True)
        return np.outer(shares, weights).ravel(), np.outer(wider, stds).ravel()

    @property
    def epistemic_factors(self) -> Array:
        """Standard deviations of the Student's t of the whole error."""
        weights, _ = scales(self.degrees)
        if np.isinf(self.tails):
            return np.ones(len(weights))
        return np.repeat(scales(self.tails, fewer=True)[1], len(weights))

    def log_variance(self, X: Array, threads: int = 1) -> Array:
        """Logarithm of the noise variance (n,) in units of its average."""
        if self.strength == 0.0:
            return np.zeros(len(X))
        h = np.mean([machine.mean(X, threads) for machine in self.machines], axis=0)
        return np.clip(self.strength * (h - self.level), -LARGEST_LOG, LARGEST_LOG)

    def scaled(self, shrink: float) -> Self:
        """The same noise with another ``shrink``."""
        return replace(self, shrink=shrink)

    def with_tails(self, degrees: float) -> Self:
        """The same noise with other ``tails``."""
        return replace(self, tails=degrees)

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


def noise_of_few_rows(n: float, determined: float, *, tails: bool) -> Noise:
    """Noise that is as unsure as ``n`` rows leave a fit with so many effective weights.

    The noise variance is known from ``n - determined`` degrees of freedom, and the scale that all
    is measured in from ``n - 1``: an interval of Student's t with these is wider than the normal's.
    Both fade to nothing at `FEW_ROWS`.

    >>> noise_of_few_rows(50.0, 8.0, tails=True).trivial
    True
    >>> noise = noise_of_few_rows(12.0, 8.0, tails=True)
    >>> round(noise.degrees, 2), round(noise.shrink, 3)
    (5.26, 1.131)
    """
    left = 1.0 - n / FEW_ROWS
    if left <= 0.0:
        return GAUSSIAN
    rows = max(n, 2.0)
    wide = float(stdtrit(rows - 1.0, LEVEL) / ndtri(LEVEL)) * np.sqrt(rows / (rows - 1.0))
    degrees = max((n - determined) / left, FEWEST_DEGREES) if tails else np.inf
    return Noise(degrees=float(degrees), shrink=float(1.0 + (wide - 1.0) * left))


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
    e = noise.shrink * dist.epistemic_stds
    shares, stds = noise.scale_mixture
    return Mixture(
        np.tile(dist.means, (len(shares), 1)),
        np.concatenate([e * factor for factor in noise.epistemic_factors]),
        np.concatenate([a * std for std in stds]),
        np.concatenate([share * dist.weights for share in shares]),
    )
