"""Columns that follow others: what moves along when a column is moved.

Columns are given normal scores, by their ranks; categories are put in order by what distinguishes
their rows in the other columns. When some columns are moved, those that are correlated with them
move by their regression on these, as jointly normal scores would. So a row that has some columns
of another row stays among combinations of values that rows have, and every value is one that some
row has.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self, final

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import connected_components
from scipy.special import ndtri

from tensorlace._types import Array
from tensorlace.sources.reference_rows import ReferenceRows

__all__ = ["Companions", "Scores"]

FAINT = 0.1
"""Columns whose scores are correlated less, directly and by way of others, do not follow each
other; see docs/decisions.md#explanations."""

_CHANCE = 4.0
"""Nor if the correlation is below so many standard errors of one that is zero."""

_RIDGE = 1e-3
"""Share of the variances of scores that is added to them, so that equal columns share alike."""

_LEAST_RANK = 1e-12
"""Ranks are at least so far from 0 and 1, which rows of hardly any weight may reach by rounding."""

_APART, _FAR = 100.0, 40.0
"""Columns' scores are laid out so far apart, and none is farther than this from 0."""

Numbers = npt.NDArray[np.intp]


@final
@dataclass(frozen=True, eq=False)
class Scores:
    """Normal scores of the values of one column, and back.

    Attributes
    ----------
    values : (m,) array
        Distinct values, in order.
    scores : (m,) array
        Normal quantile at the middle of the rank of each; 0 stands for a missing value.
    """

    values: Array
    scores: Array

    @classmethod
    def of(cls, x: Array, weight: Array, place: Array | None = None) -> Self:
        """Learn from a column (n,), which may have missing values.

        Values are ranked by ``place`` (m,), one number per distinct value; by default as they are.

        >>> Scores.of(np.array([3.0, 1.0, 1.0, np.nan, 3.0]), np.ones(5)).scores.round(3)
        array([-0.674,  0.674])
        """
        there = ~np.isnan(x)
        values, which = np.unique(x[there], return_inverse=True)
        counted = np.bincount(which, weight[there], minlength=len(values))
        share = counted / max(float(counted.sum()), np.finfo(float).tiny)
        order = np.argsort(values if place is None else place, kind="stable")
        scores = np.empty(len(values))
        rank = np.cumsum(share[order]) - 0.5 * share[order]
        scores[order] = ndtri(np.clip(rank, _LEAST_RANK, 1.0 - _LEAST_RANK))
        return cls(values, scores)

    def __call__(self, x: Array) -> Array:
        """Scores (n,) of values (n,) that were there."""
        out = np.zeros(len(x))
        there = ~np.isnan(x)
        out[there] = self.scores[np.searchsorted(self.values, x[there])]
        return out


@final
@dataclass(frozen=True, eq=False)
class _Nearest:
    """Values whose scores are nearest, for many columns at once.

    Attributes
    ----------
    middles : array
        Between neighbouring scores, of all columns one after the other, each farther up.
    values : array
        In the order of their scores, of all columns.
    more : (D,) int array
        How many more values than middles there are before those of each column.
    """

    middles: Array
    values: Array
    more: Numbers

    @classmethod
    def of(cls, scores: Sequence[Scores]) -> Self:
        orders = [np.argsort(s.scores, kind="stable") for s in scores]
        values = [s.values[order] for s, order in zip(scores, orders, strict=True)]
        known = [s.scores[order] for s, order in zip(scores, orders, strict=True)]
        middles = [0.5 * (s[1:] + s[:-1]) + d * _APART for d, s in enumerate(known)]
        more = [len(v) - len(m) for v, m in zip(values, middles, strict=True)]
        return cls(np.concatenate(middles), np.concatenate(values), np.cumsum([0, *more[:-1]]))

    def __call__(self, column: Numbers, score: Array) -> Array:
        """Values (k,) of columns (k,), which have some, at scores (k,)."""
        at = np.searchsorted(self.middles, np.clip(score, -_FAR, _FAR) + column * _APART)
        return np.asarray(self.values[at + self.more[column]])


@final
@dataclass(frozen=True, eq=False)
class Companions:
    """Which columns follow which, learnt from rows.

    Attributes
    ----------
    scores : tuple of D Scores
    group : (D,) int array
        Columns with the same number follow each other.
    covariance : (D, D) array
        Of the scores; 0 between groups.
    """

    scores: tuple[Scores, ...]
    group: Numbers
    covariance: Array

    @classmethod
    def of(cls, rows: ReferenceRows, ordered: Sequence[bool], faint: float = FAINT) -> Self:
        """Learn from rows; ``ordered`` says of each column whether its numbers have an order.

        ``faint`` is the least correlation that counts; above 1, no column follows another.
        """
        X, weight = rows.X, rows.weight
        found = {d: Scores.of(X[:, d], weight) for d, order in enumerate(ordered) if order}
        known = np.stack([s(X[:, d]) for d, s in found.items()]) if found else np.zeros((0, len(X)))
        freedom = np.zeros(len(ordered))
        for d in set(range(len(ordered))) - found.keys():
            found[d] = Scores.of(X[:, d], weight, _places(X[:, d], weight, known))
            freedom[d] = len(found[d].values) - 1  # their order was chosen
        scores = tuple(found[d] for d in range(len(ordered)))
        S = np.stack([s(x) for s, x in zip(scores, X.T, strict=True)])
        S -= (S @ weight)[:, None]
        covariance = (S * weight) @ S.T
        std = np.sqrt(np.maximum(np.diag(covariance), np.finfo(float).tiny))
        n = 1.0 / float(weight @ weight)
        chance = (_CHANCE**2 + 2.0 * (freedom + freedom[:, None])) / n
        close = (covariance / std / std[:, None]) ** 2 >= np.maximum(faint**2, chance)
        group = connected_components(close, directed=False)[1]
        together = group[:, None] == group
        return cls(scores, group.astype(np.intp), np.where(together, covariance, 0.0))

    def paths(self, source: Array, target: Array, orders: Numbers) -> Iterator[Array]:
        """Rows (n, D) on the way from ``source`` to ``target``, without the two.

        Columns of row p take the values of ``target`` in the order ``orders[p]``, and those of the
        same group that have not had their turn follow. With the Cholesky factor L of the
        covariance in that order, each turn moves scores by one more column of L.
        """
        n, D = orders.shape
        each, first = np.arange(n), self._scored(source)
        change = self._scored(target) - first
        variance = np.diag(self.covariance)
        S = self.covariance + np.diag(np.where(variance > 0.0, _RIDGE * variance, 1.0))
        L = np.linalg.cholesky(S[orders[:, :, None], orders[:, None, :]])
        steps = solve_lower(L, np.take_along_axis(change, orders, axis=1))
        chosen, by, known = np.zeros((n, D), dtype=np.bool_), np.zeros((n, D)), ~np.isnan(source)
        nearest = _Nearest.of(self.scores)
        for k in range(D - 1):
            chosen[each, orders[:, k]] = True
            by[each[:, None], orders] += L[:, :, k] * steps[:, k, None]
            here = np.where(chosen, target, source)
            follow = ~chosen & (by != 0.0) & known
            rows, columns = np.nonzero(follow)
            here[rows, columns] = nearest(columns, (first + by)[rows, columns])
            yield here

    def _scored(self, X: Array) -> Array:
        return np.stack([s(x) for s, x in zip(self.scores, X.T, strict=True)], axis=1)


def solve_lower(L: Array, b: Array) -> Array:
    """``L⁻¹ b`` (n, D) for each of n lower triangles (n, D, D).

    >>> solve_lower(np.array([[[2.0, 0.0], [1.0, 1.0]]]), np.array([[2.0, 3.0]]))
    array([[1., 2.]])
    """
    out = b.copy()
    for k in range(b.shape[1]):
        out[:, k] -= np.einsum("nj,nj->n", L[:, k, :k], out[:, :k])
        out[:, k] /= L[:, k, k]
    return out


def _places(x: Array, weight: Array, known: Array) -> Array:
    """Places (m,) of the categories of a column on a line: their means on the principal axis.

    That is the axis of the scores (K, n) of columns with an order along which means of the
    categories differ most.
    """
    there = ~np.isnan(x)
    values, which = np.unique(x[there], return_inverse=True)
    if not len(known) or len(values) < 2:
        return np.arange(float(len(values)))
    share = np.bincount(which, weight[there], minlength=len(values))
    sums = [np.bincount(which, s * weight[there], minlength=len(values)) for s in known[:, there]]
    means = np.stack(sums) / np.maximum(share, np.finfo(float).tiny)
    means = means - (means @ share / share.sum())[:, None]
    axis = np.linalg.svd(means * np.sqrt(share), full_matrices=False)[0][:, 0]
    return np.asarray(axis @ means)
