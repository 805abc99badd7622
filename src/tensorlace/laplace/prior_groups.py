"""Groups of weights that share a prior precision."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from tensorlace._types import Array
from tensorlace.errors import InputError
from tensorlace.networks.network import Network

__all__ = [
    "RARE_ROWS",
    "Groups",
    "for_levels",
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

RARE_ROWS = 5.0
"""Rows of a level of a category whose weights in products have twice the prior precision of those
of a level with many rows. decisions.md#rare-levels"""


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
    relative : (P,) array or None
        Precision of each weight in units of that of its group; None: 1.
    """

    index: npt.NDArray[np.intp]
    count: Array
    column: npt.NDArray[np.intp] | None = None
    relative: Array | None = None

    def each(self, gamma: Array) -> Array:
        """Precision (P,) of each weight from those of the groups (n_groups,)."""
        return self.scaled(gamma[self.index])

    def scaled(self, values: Array) -> Array:
        """``values`` (P,) times relative precisions: squares of weights in units of their group."""
        return values if self.relative is None else values * self.relative

    def total(self, values: Array) -> Array:
        """Sum of ``values`` (P,) per group."""
        sums = np.bincount(self.index, weights=values, minlength=len(self.count))
        return sums.astype(np.float64, copy=False)

    def common(self, values: Array) -> Array:
        """Precision (n_groups,) of the groups from those of the weights (P,), see `each`."""
        out = np.zeros(len(self.count))
        out[self.index] = values if self.relative is None else values / self.relative
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


def for_levels(groups: Groups, network: Network, rows: Sequence[Sequence[float]]) -> Groups:
    """Groups in which rare levels of categories have a prior of their own in products.

    The deviations of all levels of a column, of the same row of a core, share the group of the
    first one: levels have no order. Within it the precision of a level with n rows is
    ``1 + RARE_ROWS / n`` times that of a level with many: factors that few rows know multiply,
    and a product of several is worth less than each alone. A sum of one-column functions is left
    as it is.

    Parameters
    ----------
    groups : Groups
    network : Network
    rows : sequence of length D
        Rows of each level of a column with the basis `Levels`; empty for other columns.

    Examples
    --------
    >>> from tensorlace.networks.cpd import CPD
    >>> network = CPD((np.ones((1, 3)), np.ones((1, 2))))
    >>> groups = for_levels(per_column_and_order(network), network, [(5.0, 95.0), ()])
    >>> groups.index
    array([0, 1, 1, 2, 3])
    >>> groups.relative.round(2)
    array([1.  , 2.  , 1.05, 1.  , 1.  ])
    """
    d, r, i = network.labels()
    index, relative = groups.index.copy(), np.ones(len(d))
    for column, n in enumerate(rows):
        if len(n):
            own = np.flatnonzero((d == column) & (r >= 0) & (i > 0))
            code = i[own] - 1
            # the functions of a row of a core are neighbours in the order of the weights
            index[own] = groups.index[own - code]
            relative[own] += RARE_ROWS / np.asarray(n)[code]
    used, index, count = np.unique(index, return_inverse=True, return_counts=True)
    of_column = None if groups.column is None else groups.column[used]
    return Groups(index.ravel().astype(np.intp), count.astype(float), of_column, relative)
