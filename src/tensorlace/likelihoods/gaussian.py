"""The Gaussian: squared loss, whose sums have closed forms."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from tensorlace._types import Array
from tensorlace.likelihoods.likelihood import Likelihood
from tensorlace.portable import Builder, Value
from tensorlace.predictive.distributions import Normal

__all__ = ["GAUSSIAN", "Gaussian"]


@final
@dataclass(frozen=True)
class Gaussian(Likelihood):
    """``y ~ N(f, 1/β)``, eq. (cond_model)."""

    squared: ClassVar[bool] = True  # type: ignore[misc]
    standardises: ClassVar[bool] = True  # type: ignore[misc]

    def check(self, y: Array) -> None:
        """Any number may be."""

    def deviance(self, y: Array, f: Array) -> Array:
        """Squared residual."""
        residual = y - f
        return residual * residual

    def log_saturated(self, y: Array) -> Array:
        """``-½ log 2π``."""
        return np.full(np.shape(y), -0.5 * np.log(2.0 * np.pi))

    def slope(self, y: Array, f: Array) -> Array:
        """Residual."""
        return y - f

    def curvature(self, y: Array, f: Array) -> Array:
        """One."""
        return np.ones_like(f)

    def predictive(self, mean: Array, std: Array, noise_std: float) -> Normal:
        """Variances add."""
        return Normal(mean, std, np.full(std.shape, noise_std))

    def portable(
        self, g: Builder, mean: Value, variance: Value, noise_std: float
    ) -> tuple[Value, Value, Value]:
        """The moments of the response, and the noise."""
        return mean, variance, g.expand(noise_std, mean)

    def sample(self, f: Array, noise_std: float, rng: np.random.Generator) -> Array:
        """Noise added."""
        return f + noise_std * rng.standard_normal(f.shape)


GAUSSIAN = Gaussian()
