"""Noise precision β and prior precisions γ: fixed, the paper's Gamma-VI, or evidence (MacKay).

Prior precisions come in groups of weights that share one. Every update starts from the prior: the
recursion printed in the paper's appendix A.2, a^(t) = a^(t-1) + N/2, would count the data once per
round.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np

from tensorlace._types import Array
from tensorlace.laplace.prior_groups import LARGEST_PRIOR, SMALLEST_PRIOR

__all__ = ["Evidence", "Fixed", "GammaVI", "Moments", "Policy"]

LARGEST_NOISE_PRECISION = 1e12
"""For a target of unit variance: residuals below 1e-6 standard deviations count as none."""


@final
@dataclass(frozen=True)
class Moments:
    """What an update may look at.

    Attributes
    ----------
    n : float
        Total weight of the rows.
    rss, expected_rss : float
        Residual sum of squares at the MAP; its posterior expectation.
    determined : float
        Effective number of Bayesian weights, ``Σ (1 - Γ_kk Σ_kk)``.
    count, square, spread, group_determined : (n_groups,) arrays
        Number of weights, ``‖v_g‖²``, ``tr Σ_g`` and effective number per group.
    """

    n: float
    rss: float
    expected_rss: float
    determined: float
    count: Array
    square: Array
    spread: Array
    group_determined: Array


class Policy(ABC):
    """How a precision is found.

    Attributes
    ----------
    learns : bool
        It changes.
    expects : bool
        It needs `Moments.expected_rss`, which is NaN otherwise.
    """

    learns: bool
    expects: bool

    @abstractmethod
    def start(self, default: float) -> float:
        """First value."""

    @abstractmethod
    def noise(self, m: Moments, beta: float) -> float:
        """Next noise precision."""

    @abstractmethod
    def prior(self, m: Moments, gamma: Array) -> Array:
        """Next prior precision per group."""


@final
@dataclass(frozen=True)
class Fixed(Policy):
    """A precision that is known."""

    value: float
    learns: bool = False
    expects: bool = False

    def start(self, default: float) -> float:
        """The value."""
        return self.value

    def noise(self, m: Moments, beta: float) -> float:
        """The value."""
        return beta

    def prior(self, m: Moments, gamma: Array) -> Array:
        """The value."""
        return gamma


@final
@dataclass(frozen=True)
class GammaVI(Policy):
    """Mean-field variational inference, eq. (q_var), with Gamma priors, eq. (prior_gamma_beta)."""

    a: float = 1e-6
    b: float = 1e-6
    learns: bool = True
    expects: bool = True

    def start(self, default: float) -> float:
        """Not informed yet."""
        return default

    def noise(self, m: Moments, beta: float) -> float:
        """Mean of q(β), eq. (noise_precision)."""
        value = (self.a + 0.5 * m.n) / (self.b + 0.5 * m.expected_rss)
        return float(min(value, LARGEST_NOISE_PRECISION))

    def prior(self, m: Moments, gamma: Array) -> Array:
        """Mean of q(γ), eq. (weights_precision)."""
        value = (self.a + 0.5 * m.count) / (self.b + 0.5 * (m.square + m.spread))
        return np.clip(value, SMALLEST_PRIOR, LARGEST_PRIOR)


@final
@dataclass(frozen=True)
class Evidence(Policy):
    """MacKay's fixed point of the Laplace evidence."""

    learns: bool = True
    expects: bool = False

    def start(self, default: float) -> float:
        """Not informed yet."""
        return default

    def noise(self, m: Moments, beta: float) -> float:
        """``(N - Σ(1 - Γ_kk Σ_kk)) / ‖r‖²``; noise keeps at least half a degree of freedom."""
        free = max(m.n - m.determined, 0.5)
        return float(
            min(free / max(m.rss, free / LARGEST_NOISE_PRECISION), LARGEST_NOISE_PRECISION)
        )

    def prior(self, m: Moments, gamma: Array) -> Array:
        """``Σ_g (1 - Γ_kk Σ_kk) / ‖v_g‖²``."""
        determined = np.maximum(m.group_determined, 1e-9 * m.count)
        return np.clip(
            determined / np.maximum(m.square, determined / LARGEST_PRIOR),
            SMALLEST_PRIOR,
            LARGEST_PRIOR,
        )
