"""Groups of weights that share a prior precision."""

from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from tensorlace._types import Array
from tensorlace.errors import InputError
from tensorlace.networks.network import Network

__all__ = [
    "Groups",
    "one_group",
    "per_column",
    "per_column_and_order",
    "per_order",
    "per_rank_term",
]

SMALLEST_PRIOR = 1e-10
"""Least prior precision that is learned, for weights of a target of unit variance."""

LARGEST_PRIOR = 1e10
"""Largest prior precision that is learned: weights that have it are switched off."""


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


def _groups(network: Network, label: str, column: bool = False) -> Groups:
    """Number the distinct values of ``label``: letters of d, r, i that a group is made of.

    A sum of one-column functions, whose rank term is -1, has groups of its own.
    """
    d, r, i = network.labels()
    keys = np.stack([r < 0, *({"d": d, "r": r, "i": i}[letter] for letter in label)])
    distinct, index, count = np.unique(keys, axis=1, return_inverse=True, return_counts=True)
    of_column = None
    if column:
        of_column = np.where(distinct[0] > 0, -1, distinct[1]).astype(np.intp)
    return Groups(index.ravel().astype(np.intp), count.astype(float), of_column)


def one_group(network: Network) -> Groups:
    """One prior precision for all weights, eq. (prior_weights)."""
    return _groups(network, "")


def per_column(network: Network) -> Groups:
    """One per column."""
    return _groups(network, "d", column=True)


def per_order(network: Network) -> Groups:
    """One per order of basis function, shared by the columns."""
    return _groups(network, "i")


def per_column_and_order(network: Network) -> Groups:
    """One per column and order: smoothness is learnt column by column."""
    return _groups(network, "di", column=True)


def per_rank_term(network: Network) -> Groups:
    """One per rank-one term: terms that are not needed switch off."""
    _, term, _ = network.labels()
    if network.n_terms == 0 and np.any(term >= 0):
        raise InputError(
            'prior_groups="rank" needs a network that is a sum of rank-one terms, which this one '
            'is not: give network="cpd", or another prior_groups'
        )
    return _groups(network, "r")
