"""Noise precision β and prior precisions γ: fixed, the paper's Gamma-VI, or evidence (MacKay).

Prior precisions come in groups of weights that share one. Every update starts from the prior: the
recursion printed in the paper's appendix A.2, a^(t) = a^(t-1) + N/2, would count the data once per
round.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import final

import numpy as np

from tensorlace._types import Array
from tensorlace.laplace.prior_groups import LARGEST_PRIOR, SMALLEST_PRIOR

__all__ = ["Evidence", "Fixed", "GammaVI", "Moments", "Policy"]

LARGEST_NOISE_PRECISION = 1e12
"""For a target of unit variance: residuals below 1e-6 standard deviations count as none."""

FEW_ROWS = 50.0
"""Rows from which a fit of a fixed rank takes the noise as known. decisions.md#few-rows"""

DOUBT_ROWS = 1.0
"""Rows that the prior of the noise precision is worth at most. decisions.md#few-rows"""

DOUBT_VARIANCE = 0.25
"""Their mean squared residual, for a target of unit variance. decisions.md#few-rows"""


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

    def doubting(self) -> "Policy":
        """The same for rows that may be too few to know their noise, if it can doubt."""
        return self

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
    """MacKay's fixed point of the Laplace evidence.

    Attributes
    ----------
    doubt : float
        Rows that a Gamma prior of the noise precision is worth where n rows leave no degree of
        freedom: a model with as many weights finds no noise in them at all. With ``free`` degrees
        it is worth ``(1 - n / FEW_ROWS) / (1 + free)`` of that, nothing from `FEW_ROWS` on. Its
        rows have the mean squared residual `DOUBT_VARIANCE`.
    """

    learns: bool = True
    expects: bool = False
    doubt: float = field(default=0.0, repr=False)

    def doubting(self) -> "Evidence":
        """With a prior of the noise precision."""
        return replace(self, doubt=DOUBT_ROWS)

    def start(self, default: float) -> float:
        """Not informed yet."""
        return default

    def noise(self, m: Moments, beta: float) -> float:
        """``(N - Σ(1 - Γ_kk Σ_kk)) / ‖r‖²``; noise keeps at least half a degree of freedom."""
        free = max(m.n - m.determined, 0.5)
        worth = self.doubt * max(1.0 - m.n / FEW_ROWS, 0.0) / (1.0 + free)
        free, rss = free + worth, m.rss + worth * DOUBT_VARIANCE
        return float(min(free / max(rss, free / LARGEST_NOISE_PRECISION), LARGEST_NOISE_PRECISION))

    def prior(self, m: Moments, gamma: Array) -> Array:
        """``Σ_g (1 - Γ_kk Σ_kk) / ‖v_g‖²``."""
        determined = np.maximum(m.group_determined, 1e-9 * m.count)
        return np.clip(
            determined / np.maximum(m.square, determined / LARGEST_PRIOR),
            SMALLEST_PRIOR,
            LARGEST_PRIOR,
        )
