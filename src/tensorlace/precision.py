"""Noise precision β and prior precisions γ: fixed, the paper's Gamma-VI, or evidence (MacKay).

Prior precisions come in groups of weights that share one. Every update starts from the prior: the
recursion printed in the paper's appendix A.2, a^(t) = a^(t-1) + N/2, would count the data once per
round.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from tensorlace.bases.basis import Array

__all__ = [
    "Evidence",
    "Fixed",
    "GammaVI",
    "Groups",
    "Moments",
    "Policy",
    "log_evidence",
    "one_group",
    "per_column",
    "per_column_and_order",
    "per_order",
    "per_rank_term",
]

LARGEST_NOISE_PRECISION = 1e12
"""For a target of unit variance: residuals below 1e-6 standard deviations count as none."""

SMALLEST_PRIOR, LARGEST_PRIOR = 1e-10, 1e10


@final
@dataclass(frozen=True)
class Groups:
    """Which weights share a prior precision.

    Attributes
    ----------
    index : (P,) int array
        Group of each weight, in the order of the weight vector.
    count : (n_groups,) array
        Weights per group.
    column : (n_groups,) int array or None
        Column of each group when groups belong to columns, -1 for those of the additive part. The
        response only sees the product of the columns' scales, so a common factor per column is
        arbitrary and must be pinned.
    """

    index: npt.NDArray[np.intp]
    count: Array
    column: npt.NDArray[np.intp] | None = None

    def total(self, values: Array) -> Array:
        """Sum of ``values`` (P,) per group."""
        sums = np.bincount(self.index, weights=values, minlength=len(self.count))
        return sums.astype(np.float64, copy=False)

    def common(self, values: Array) -> Array:
        """Value (n_groups,) that the weights of each group have in common."""
        out = np.zeros(len(self.count))
        out[self.index] = values
        return out

    def pinned(self, gamma: Array, weight: Array | None = None) -> Array:
        """Same prior up to a factor per column: all columns get the same geometric mean.

        ``weight`` (n_groups,) says how much a group counts in it, its size by default. Groups that
        are switched off should count little: where many are, the others would have to make up for
        their precisions and run to the largest one themselves.
        """
        if self.column is None:
            return gamma
        product = self.column >= 0
        if not product.any():  # nothing but the additive part
            return gamma
        count = (self.count if weight is None else weight)[product]
        column, log = self.column[product], np.log(gamma[product])
        size = np.bincount(column, weights=count)
        mean = np.bincount(column, weights=count * log) / size
        out = gamma.copy()
        out[product] = np.exp(log - mean[column] + mean.mean())
        return out


def _groups(
    sizes: Sequence[int], rank: int, additive: bool, label: str, column: bool = False
) -> Groups:
    """Number the distinct values of ``label``: letters of d, r, i that a group is made of.

    The additive part follows the columns as rank term -1 and has groups of its own.
    """
    terms = [(d, n, range(rank)) for d, n in enumerate(sizes)]
    if additive:
        terms += [(d, n, range(-1, 0)) for d, n in enumerate(sizes)]
    grid = [
        np.stack(np.meshgrid([d], r, range(n), indexing="ij")).reshape(3, -1) for d, n, r in terms
    ]
    d, r, i = np.concatenate(grid, axis=1)
    keys = np.stack([r < 0, *({"d": d, "r": r, "i": i}[letter] for letter in label)])
    distinct, index, count = np.unique(keys, axis=1, return_inverse=True, return_counts=True)
    of_column = None
    if column:
        of_column = np.where(distinct[0] > 0, -1, distinct[1]).astype(np.intp)
    return Groups(index.ravel().astype(np.intp), count.astype(float), of_column)


def one_group(sizes: Sequence[int], rank: int, additive: bool = False) -> Groups:
    """One prior precision for all weights, eq. (prior_weights)."""
    return _groups(sizes, rank, additive, "")


def per_column(sizes: Sequence[int], rank: int, additive: bool = False) -> Groups:
    """One per column."""
    return _groups(sizes, rank, additive, "d", column=True)


def per_order(sizes: Sequence[int], rank: int, additive: bool = False) -> Groups:
    """One per order of basis function, shared by the columns."""
    return _groups(sizes, rank, additive, "i")


def per_column_and_order(sizes: Sequence[int], rank: int, additive: bool = False) -> Groups:
    """One per column and order: smoothness is learnt column by column."""
    return _groups(sizes, rank, additive, "di", column=True)


def per_rank_term(sizes: Sequence[int], rank: int, additive: bool = False) -> Groups:
    """One per rank-one term: terms that are not needed switch off."""
    return _groups(sizes, rank, additive, "r")


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


def log_evidence(
    n: float, rss: float, beta: float, v: Array, gamma: Array, logdet: float, n_dropped: int
) -> float:
    """Laplace evidence ``log p(y | β, γ)`` of the Bayesian weights ``v`` (P,).

    ``N/2 log β - β/2 ‖r‖² + ½ Σ log γ - ½ vᵀΓv - ½ log|H| - N/2 log 2π``; dropped directions count
    as if the rows said nothing about them. A flat prior has no evidence: minus infinity.
    """
    if np.any(gamma <= 0):
        return -np.inf
    log_prior = float(np.sum(np.log(gamma)))
    dropped = n_dropped * log_prior / len(gamma)
    return 0.5 * (
        n * np.log(beta / (2.0 * np.pi))
        - beta * rss
        + log_prior
        - float(gamma @ (v * v))
        - (logdet + dropped)
    )
