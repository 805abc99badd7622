"""What a likelihood is: the density of a target given the response, and its derivatives.

The most probable weights minimise ``½ β Σ_n w_n D(y_n, f_n) + ½ vᵀΓv`` with the deviance
``D = 2 (log p(y | y's best f) - log p(y | f)) ≥ 0``, which is ``(y - f)²`` of the Gaussian.
Solvers, curvatures and evidence see any likelihood as least squares at the present response f_0:
targets ``f_0 + g / h`` with row weights ``h``, from its slope g and its expected curvature h.
"""

from abc import ABC, abstractmethod

import numpy as np

from tensorlace._types import Array
from tensorlace.errors import InputError
from tensorlace.portable import Builder, Value
from tensorlace.predictive.distributions import Distribution

__all__ = ["Likelihood"]


class Likelihood(ABC):
    """Density ``p(y | f)`` of a target given the response; frozen.

    Attributes
    ----------
    squared : bool
        The deviance is ``(y - f)²``: least squares needs no steps, and the noise precision β is
        found with the weights. Otherwise β is 1.
    standardises : bool
        Targets are brought to mean 0 and standard deviation 1 first, and predictions back.
    """

    squared: bool
    standardises: bool

    @abstractmethod
    def check(self, y: Array) -> None:
        """Refuse targets (n,) that cannot be.

        Raises
        ------
        InputError
            Saying which, and what can be.
        """

    @abstractmethod
    def deviance(self, y: Array, f: Array) -> Array:
        """``D(y, f)`` (n,), at least 0."""

    @abstractmethod
    def log_saturated(self, y: Array) -> Array:
        """``log p`` (n,) at the response that is best for each target."""

    @abstractmethod
    def slope(self, y: Array, f: Array) -> Array:
        """``∂ log p / ∂f`` (n,)."""

    @abstractmethod
    def curvature(self, y: Array, f: Array) -> Array:
        """``-∂² log p / ∂f²`` (n,) or what is expected of it, at least 0: weights of the GGN."""

    @abstractmethod
    def predictive(self, mean: Array, std: Array, noise_std: float) -> Distribution:
        """Distribution of new targets where the response is ``N(mean, std²)``, (n,) each."""

    def portable(
        self, g: Builder, mean: Value, variance: Value, noise_std: float
    ) -> tuple[Value, Value, Value]:
        """`predictive` as a graph, where it is normal, from mean and variance of the response.

        Returns
        -------
        tuple of three (n,) values
            Mean, epistemic variance, aleatoric standard deviation.

        Raises
        ------
        InputError
            Unless the predictive distribution is normal.
        """
        raise InputError(
            f"predictions of the likelihood {type(self).__name__} are not normal distributions, "
            "which exports and pages need: predict in Python"
        )

    @abstractmethod
    def sample(self, f: Array, noise_std: float, rng: np.random.Generator) -> Array:
        """Targets drawn at responses ``f``, of any shape."""

    def log_density(self, y: Array, f: Array) -> Array:
        """``log p(y | f)`` (n,) for β = 1."""
        return self.log_saturated(y) - 0.5 * self.deviance(y, f)
