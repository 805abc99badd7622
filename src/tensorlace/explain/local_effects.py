"""Effects along the data: rows are moved no farther than to values that rows like them have.

A curve is accumulated from differences between neighbouring values, each averaged over the rows
that are there (accumulated local effects; Apley & Zhu 2020). Categories are compared pair by pair,
over rows of one that are most like rows of the other; their effects are those that fit all
comparisons best. Either is a linear function of the response at given points, so its posterior is
that of this very average.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import final

import numpy as np
import numpy.typing as npt

from tensorlace._types import Array, Mask
from tensorlace.machines.ensemble import Ensemble
from tensorlace.machines.machine import KernelMachine
from tensorlace.predictive.distributions import Mixture
from tensorlace.sources.reference_rows import ReferenceRows

__all__ = ["Comparisons", "band_of", "between_categories", "between_values"]

ROWS = 1024
"""Reference rows that effects are averaged over; see docs/decisions.md#explanations."""

LEAST = 20
"""Rows of each difference: those between two values, or the nearest; likewise the rows of other
categories that are moved to one; see docs/decisions.md#explanations."""

_OUTERMOST, _FEWEST = 0.01, 3.0
"""Share and number of rows at or beyond either end of a curve; farther out there are too few."""

_NO_SHARE = 1e-12

_BATCH_NUMBERS = 1 << 21
"""Numbers in the Jacobian of a batch of points."""

Numbers = npt.NDArray[np.intp]


@final
@dataclass(frozen=True, eq=False)
class Comparisons:
    """Averages of the response over points, and how effects follow from them.

    Average ``a`` is ``Σ sign_p v_row(p) f(X_p)`` over the points p of part a, divided by the sum of
    the ``v`` of its rows. The last part are the rows as they are.

    Attributes
    ----------
    X : (p, D) array
        Points.
    row, part : (p,) int arrays
        The row that each is made of, and the average that it is in.
    sign : (p,) array
        1, or -1 for the value that a row is moved from.
    near : (k, n) mask
        Rows that each value rests on.
    combine : callable
        From weights (n,) of the rows and the sums of weights (a,) of the averages to the effects as
        a linear function (k, a) of the averages.
    """

    X: Array
    row: Numbers
    part: Numbers
    sign: Array
    near: Mask
    combine: Callable[[Array, Array], Array]

    def coefficients(self, v: Array, otherwise: Array) -> tuple[Array, Array]:
        """Of the points in their averages (p,), and of the averages in the effects (k, a).

        Rows weigh ``v`` (n,), or ``otherwise`` in averages none of whose rows have a weight.
        """
        ahead, a = self.sign > 0.0, int(self.part.max()) + 1
        total = np.bincount(self.part[ahead], v[self.row[ahead]], minlength=a)
        spare = np.bincount(self.part[ahead], otherwise[self.row[ahead]], minlength=a)
        empty = total <= _NO_SHARE * spare
        weight = np.where(empty[self.part], otherwise[self.row], v[self.row])
        sums = np.where(empty, spare, total)
        return self.sign * weight / sums[self.part], self.combine(
            otherwise if empty[-1] else v, sums
        )


def band_of(
    ensemble: Ensemble, rows: ReferenceRows, found: Comparisons, coverage: float, threads: int = 1
) -> tuple[Array, Array, Array, Array]:
    """Mean, std, lower and upper end (k,) of effects of a mixture, in units of y.

    The mean is the effect of what is predicted. For the band, members average over rows by the
    shares that they have in them, and count at each value by their share in the rows near it.
    """
    target, weight = ensemble.machines[0].target, rows.weight
    shares = ensemble.shares(rows.X, threads)
    near = found.near * weight
    local = shares @ (near / near.sum(axis=1, keepdims=True)).T
    means = np.empty((len(shares), len(near)))
    stds = np.empty_like(means)
    for m, (machine, share) in enumerate(zip(ensemble.machines, shares, strict=True)):
        v = weight * share
        v = v / v.sum() if v.sum() > _NO_SHARE else weight
        means[m], variance = _posterior_of(machine, found, *found.coefficients(v, weight))
        stds[m] = np.sqrt(np.maximum(variance, 0.0))
    dist = Mixture(means, stds, np.zeros_like(stds), local).affine(target.scale, target.location)
    point, combined = found.coefficients(weight, weight)
    values = point * ensemble.mean(found.X, threads)
    mean = combined @ np.bincount(found.part, values, minlength=combined.shape[1])
    lower, upper = dist.interval(coverage)
    shift = mean - dist.mean
    return mean, dist.epistemic_std, lower + shift, upper + shift


def _posterior_of(
    machine: KernelMachine, found: Comparisons, point: Array, combined: Array
) -> tuple[Array, Array]:
    """Mean and variance (k,) of the effects of one machine, for its standardised target."""
    width, total = machine.fit.posterior.n_weights, None
    size = int(np.clip(_BATCH_NUMBERS // max(width, 1), 32, 512))
    for a in range(0, len(point), size):
        part = found.part[a : a + size]
        hit, which = np.unique(part, return_inverse=True)
        place = np.zeros((len(part), len(hit)))
        place[np.arange(len(part)), which] = point[a : a + size]
        some = machine.linear_response(found.X[a : a + size]).combined(place)
        effects = some.combined(combined[:, hit].T)
        total = effects if total is None else total + effects
    assert total is not None
    return total.mean, machine.variance(total)


def between_values(
    rows: ReferenceRows,
    d: int,
    n_points: int,
    asked: Array | None = None,
    *,
    period: float | None = None,
    all_values: bool = False,
) -> tuple[Array, Comparisons]:
    """Values (k,) of a column with an order, and the comparisons behind its curve.

    Parameters
    ----------
    rows : ReferenceRows
    d : int
        Number of the column, in which some row has a value.
    n_points : int
        Most values of the curve: quantiles of the rows, from one near the least to one near the
        largest.
    asked : (k,) array, optional
        Values on the curve that are wanted, in place of its own.
    period : float, optional
        If values lie on a circle; the curve then goes round and closes.
    all_values : bool
        Whether the curve has all values of the rows.
    """
    x, weight = rows.X[:, d], rows.weight
    there = np.flatnonzero(~np.isnan(x))
    if period is not None:
        x = np.mod(x, period)
    edges = _edges(x[there], weight[there], n_points, period, all_values)
    grid = edges if asked is None else asked
    if period is not None:
        grid = np.where(grid == period, period, np.mod(grid, period))
    K = len(edges) - 1
    moved = [_around(x, there, *ends, period) for ends in pairwise(edges)]
    row = np.concatenate([*(np.tile(m, 2) for m in moved), there])
    part = np.repeat(np.arange(K + 1), [*(2 * len(m) for m in moved), len(there)])
    sign = np.concatenate([*(np.repeat([-1.0, 1.0], len(m)) for m in moved), np.ones(len(there))])
    X = rows.X[row]
    if K:
        lower = np.minimum(part, K - 1)
        X[:, d] = np.where(part == K, X[:, d], np.where(sign < 0, edges[lower], edges[lower + 1]))
    accumulated = np.tri(K + 1, K, -1)
    if period is not None:  # what is missing when the circle closes is shared out
        accumulated -= (edges / period)[:, None] * accumulated[-1]
    on_grid, at_rows = _between(edges, grid), np.zeros((len(x), K + 1))
    at_rows[there] = _between(edges, x[there])

    def combine(v: Array, _: Array) -> Array:
        centre = v @ at_rows / v[there].sum()
        return np.column_stack([(on_grid - centre) @ accumulated, np.ones(len(grid))])

    near = (on_grid > 0.0) @ _beside(edges, x, round_trip=period is not None)
    return grid, Comparisons(X, row, part, sign, near, combine)


def _beside(edges: Array, x: Array, *, round_trip: bool) -> Mask:
    """Which values (n,) are on either side of each edge (K + 1, n), up to the next."""
    if len(edges) == 1:
        return np.asarray(~np.isnan(x)[None])
    inside = (x >= edges[:-1, None]) & (x <= edges[1:, None])
    out = np.zeros((len(edges), len(x)), dtype=np.bool_)
    out[:-1] |= inside
    out[1:] |= inside
    if round_trip:
        out[[0, -1]] = out[0] | out[-1]
    return out


def _edges(x: Array, weight: Array, n_points: int, period: float | None, all_values: bool) -> Array:
    """Values (K + 1,) that a curve goes through."""
    values, which = np.unique(x, return_inverse=True)
    if not all_values and len(values) > LEAST:
        share = np.bincount(which, weight) / weight.sum()
        beyond = min(max(_OUTERMOST, _FEWEST / len(x)), 0.25)
        below, above = np.cumsum(share), np.cumsum(share[::-1])[::-1]
        kept = (below >= beyond) & (above >= beyond)
        middle = (below - 0.5 * share)[kept]
        values = values[kept]
        if len(values) > n_points:
            levels = np.linspace(middle[0], middle[-1], n_points)
            values = values[np.unique(np.searchsorted(middle, levels).clip(max=len(values) - 1))]
    if period is not None:
        values = np.unique([0.0, *values, period])
    return values


def _around(x: Array, there: Numbers, low: float, high: float, period: float | None) -> Numbers:
    """Rows with values between two, or so many that are nearest."""
    away = np.abs(x[there] - 0.5 * (low + high))
    if period is not None:
        away = np.minimum(away, period - away)
    inside = away <= 0.5 * (high - low) * (1.0 + 1e-9)
    if inside.sum() >= LEAST:
        return there[inside]
    return there[np.sort(np.argsort(away, kind="stable")[:LEAST])]


def _between(edges: Array, x: Array) -> Array:
    """Weights (n, K + 1) of the edges in the linear interpolation at x (n,)."""
    out = np.zeros((len(x), len(edges)))
    if len(edges) == 1:
        return out + 1.0
    k = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, len(edges) - 2)
    t = np.clip((x - edges[k]) / (edges[k + 1] - edges[k]), 0.0, 1.0)
    out[np.arange(len(x)), k], out[np.arange(len(x)), k + 1] = 1.0 - t, t
    return out


def between_categories(
    rows: ReferenceRows, d: int, ordered: Mask, asked: Array | None = None
) -> tuple[Array, Comparisons]:
    """Categories (k,) of a column, and the comparisons behind their effects.

    To each category, rows of others are moved: half as many as it has itself, those that are most
    like one of its rows.

    Parameters
    ----------
    rows : ReferenceRows
    d : int
    ordered : (D,) mask
        Columns whose values are near or far; those of others are equal or not.
    asked : (k,) array, optional
        Categories that are wanted, all of which some row has. By default all that rows have, NaN
        for missing values last.
    """
    codes = rows.X[:, d]
    levels, own = np.unique(codes, return_inverse=True)
    size, n = np.bincount(own), len(codes)
    away = _distances(rows, d, ordered, own, len(levels))
    guests = []
    for level, many in enumerate(size):
        others = np.flatnonzero(own != level)
        most = min(max(many // 2, LEAST), len(others))
        guests.append(np.sort(others[np.argsort(away[level, others], kind="stable")[:most]]))
    to = np.repeat(np.arange(len(levels)), [len(g) for g in guests])
    guest = np.concatenate(guests) if guests else np.zeros(0, dtype=np.intp)
    pairs, pair = np.unique(to * len(levels) + own[guest], return_inverse=True)
    order = np.argsort(pair, kind="stable")
    guest, to, pair = guest[order], to[order], pair[order]
    row = np.concatenate([np.repeat(guest, 2), np.arange(n)])
    part = np.concatenate([np.repeat(pair, 2), np.full(n, len(pairs))])
    sign = np.concatenate([np.tile([-1.0, 1.0], len(guest)), np.ones(n)])
    X = rows.X[row]
    X[1 : 2 * len(guest) : 2, d] = levels[to]
    ends = np.zeros((len(pairs), len(levels)))
    ends[np.arange(len(pairs)), pairs // len(levels)] = 1.0
    ends[np.arange(len(pairs)), pairs % len(levels)] -= 1.0
    wanted = np.arange(len(levels)) if asked is None else np.searchsorted(levels, asked)

    def combine(v: Array, sums: Array) -> Array:
        weighted = ends.T * sums[:-1]
        fitted = np.linalg.pinv(weighted @ ends, hermitian=True) @ weighted
        centre = np.bincount(own, v, minlength=len(levels)) / v.sum() @ fitted
        return np.column_stack([fitted[wanted] - centre, np.ones(len(wanted))])

    near = own == wanted[:, None]
    return levels[wanted], Comparisons(X, row, part, sign, near, combine)


def _distances(rows: ReferenceRows, d: int, ordered: Mask, own: Numbers, n_levels: int) -> Array:
    """How far each row is from the nearest of each category (L, n), over all other columns."""
    n = len(own)
    away = np.zeros((n, n))
    for e in range(rows.X.shape[1]):
        x = rows.X[:, e]
        if e == d:
            continue
        if ordered[e]:
            rank = np.unique(x, return_inverse=True)[1].astype(float)
            rank = np.where(np.isnan(x), np.nan, rank / max(float(rank.max()), 1.0))
            step = np.abs(rank[:, None] - rank)
            away += np.where(np.isnan(step), np.isnan(x)[:, None] != np.isnan(x), step)
        else:
            away += (x[:, None] != x) & ~(np.isnan(x)[:, None] & np.isnan(x))
    return np.stack([away[own == level].min(axis=0) for level in range(n_levels)])
