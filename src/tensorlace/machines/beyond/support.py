"""What training rows support, and predictions beyond it: means that stay, widths that grow.

The posterior of a bounded basis knows nothing of what lies beyond the rows: features stay as they
are at the edge of a range, and so does the standard deviation. And the linearised posterior of
products is too sure where several factors are large at once. So beyond what rows have shown

- a value outside the range of its column counts as one function more, which is 0 on all training
  rows and grows outside like an integrated Wiener process with an unknown slope, of the size that
  the response has over the range;
- an epistemic standard deviation above the largest one that a training row had, had it been left
  out, grows by the factor by which it is above it;
- the mean stays within bounds around the targets, and what is cut off is added to the variance.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from tensorlace._types import Array
from tensorlace.columns.columns import Columns
from tensorlace.networks.network import Network
from tensorlace.portable import Builder, Value

__all__ = [
    "MARGIN",
    "Support",
    "beyond_variance",
    "largest_left_out",
    "range_roots",
    "wiener",
]

MARGIN = 0.5
"""Part of the range of the targets by which a mean may leave it. decisions.md#beyond-the-rows"""

_GRID = 65
"""Values of a column, all over its range, that its covariance is taken over."""

LEAST_STD = 1e-9
"""Epistemic standard deviation below which machines count as equally sure."""

LEAST_LEFT = 0.01
"""Smallest 1 - h by which the variance of a row of leverage h is divided to leave it out."""


@final
@dataclass(frozen=True)
class Support:
    """Bounds of what a machine has shown on its training rows, in standard units.

    Attributes
    ----------
    low, high : float
        Bounds of the mean.
    largest : float
        Largest epistemic standard deviation of a training row, had it been left out.
    """

    low: float
    high: float
    largest: float

    @property
    def valid(self) -> bool:
        """Whether the numbers are such as can be."""
        return bool(-np.inf < self.low <= self.high < np.inf and self.largest > 0.0)

    @classmethod
    def around(cls, low: float, high: float, largest: float) -> "Support":
        """Bounds around targets from ``low`` to ``high``.

        >>> Support.around(0.0, 2.0, 0.1)
        Support(low=-1.0, high=3.0, largest=0.1)
        """
        margin = MARGIN * (high - low)
        return cls(low - margin, high + margin, max(largest, LEAST_STD))

    def held(self, mean: Array, variance: Array) -> tuple[Array, Array]:
        """Mean and variance (n,) within the bounds.

        >>> Support(-1.0, 1.0, 0.5).held(np.array([0.0, 4.0]), np.array([0.25, 1.0]))
        (array([0., 1.]), array([ 0.25, 13.  ]))
        """
        middle = np.clip(mean, self.low, self.high)
        square = self.largest * self.largest
        wider = np.maximum(variance / square, 1.0)
        return middle, variance * wider + (mean - middle) ** 2

    def portable(self, g: Builder, mean: Value, variance: Value) -> tuple[Value, Value]:
        """`held` as a graph."""
        middle = g.clip(mean, self.low, self.high)
        away = mean - middle
        wider = g.maximum(variance / (self.largest * self.largest), 1.0)
        return middle, variance * wider + away * away


def wiener(beyond: Array) -> Array:
    """Standard deviations so far beyond a range, any shape, if they are 1 over the range.

    ``(o² + o³)^½`` at o halves of the range: a slope of random size, and the variance of an
    integrated Wiener process, which grows with o³. decisions.md#beyond-the-rows
    """
    return beyond * np.sqrt(1.0 + beyond)


def range_roots(network: Network, columns: Columns) -> tuple[Array, ...]:
    """Roots (K', n) of the covariances ``C`` of the factors of each column over its range.

    With the environment z (K',) of a row, ``‖rootᵀ z‖²`` is the variance of its response as the
    column goes all over its range.
    """
    roots = []
    for weights, column in zip(network.column_weights(network.cores), columns.columns, strict=True):
        factors = weights @ column.phi(column.values_over(_GRID))
        away = factors - factors.mean(axis=1, keepdims=True)
        roots.append(away / np.sqrt(away.shape[1]))
    return tuple(roots)


def beyond_variance(
    network: Network, phi: Sequence[Array], amounts: Array, roots: Sequence[Array]
) -> Array:
    """Variance (n,) that values beyond ranges add, from features and `wiener` of them (D, n)."""
    extra = np.zeros(amounts.shape[1])
    for z, root, amount in zip(network.column_environments(phi), roots, amounts, strict=True):
        extra += amount * amount * np.sum(((root @ root.T) @ z) * z, axis=0)
    return extra


def largest_left_out(epistemic: Array, noise: float) -> float:
    """Largest epistemic standard deviation of rows (n,), had each been left out of the fit.

    In closed form for a linear model with noise standard deviation ``noise``: the variance of a
    row of leverage h is divided by 1 - h.
    """
    stays = np.maximum(1.0 - (epistemic / noise) ** 2, LEAST_LEFT)
    return float(np.max(epistemic / np.sqrt(stays), initial=0.0))
