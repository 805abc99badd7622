"""Relevance of columns: Shapley effects of the predictive mean, by paths between rows.

On the way from one row to another, columns take the values of the other row one after the other,
in a random order. What the prediction changes by at each step is the column's part of the
difference, so that the parts add up. Columns that are strongly correlated with those that have
moved move along, see `tensorlace.explain.companions`.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice, permutations
from math import factorial

import numpy as np
import numpy.typing as npt

from tensorlace._types import Array
from tensorlace.explain.companions import Companions
from tensorlace.kinds import Categorical
from tensorlace.machines.fitted_model import FittedModel
from tensorlace.sources.reference_rows import ReferenceRows

__all__ = ["relevance_of", "shapley_effects"]

Rows = npt.NDArray[np.intp]

EVALUATIONS = 16_384
"""Rows that are predicted between rows, beside the reference rows themselves; see
docs/decisions.md#explanations."""

_CANDIDATES = 1 << 16
"""Pairs of rows that those with a path are drawn from."""

_ALL_ORDERS = 6
"""Orders of columns are all tried if they are no more than this: those of three columns."""

_ROUNDING = 1e-9

_BATCH = 8192
"""Rows that are predicted at once."""

_BATCH_NUMBERS = 1 << 23
"""Numbers in the covariances of the pairs that are worked on at once."""


def relevance_of(model: FittedModel) -> Array:
    """Share (D,) of the variance of y that each column of the table accounts for.

    Those in the record of the model, or else Shapley effects of the predictive mean over the
    reference rows, in units of the variance of y. They are not negative and sum to the share of
    the variance of y that predictions have, and to 1 at most.
    """
    known = model.record.relevance
    if known is not None:
        total = float(known.sum())
        if total <= 1.0 + _ROUNDING:
            return known
        if model.rows is None:  # of a file from when shares did not add up
            return np.asarray(known / total)
    rows, ensemble = model.reference_rows, model.ensemble
    companions = Companions.of(rows, [not isinstance(k, Categorical) for k in model.encoding.kinds])
    mean = partial(ensemble.mean, threads=model.threads)
    effects = shapley_effects(mean, rows, companions, np.random.default_rng(0))
    variance = ensemble.machines[0].target.scale ** 2
    return np.asarray(effects / max(variance, float(effects.sum())))


def shapley_effects(
    mean: Callable[[Array], Array],
    rows: ReferenceRows,
    companions: Companions,
    rng: np.random.Generator,
    evaluations: int = EVALUATIONS,
) -> Array:
    """Parts (D,) of the variance of a function of the table, one per column.

    For a pair of rows x, x' and an order of the columns, the part of column d is
    ``1/2 (f(x) - f(x')) Δ_d`` with the change ``Δ_d`` of f as d takes its value in x after those
    before it; the average over pairs and orders is what it accounts for. Between rows, f is held
    in the range that it has over the rows. Averages that come out negative are 0, and all are
    scaled to sum to the variance over the rows.

    Parameters
    ----------
    mean : callable
        From rows (n, D) to values (n,).
    rows : ReferenceRows
    companions : Companions
    rng : Generator
        Chooses pairs and orders.
    evaluations : int
        Rows between rows at which the function is asked.
    """
    D = rows.X.shape[1]
    f = _asked(mean, rows.X)
    centre = float(f @ rows.weight)
    variance = float((f - centre) ** 2 @ rows.weight)
    low, high = float(f.min()), float(f.max())
    if D < 2 or not high > low:
        return np.full(D, variance / max(D, 1))
    first, last = _pairs((f - low) / (high - low), rows.weight, max(evaluations // (D - 1), 2), rng)
    if not len(first):
        return np.full(D, variance / D)
    orders = _orders(D, len(first), rng)
    start, stop = f[first], f[last]
    parts = np.zeros((len(first), D))
    size = max(_BATCH_NUMBERS // D**2, 1)
    for a in range(0, len(first), size):
        few = slice(a, a + size)
        rows_between = companions.paths(rows.X[first[few]], rows.X[last[few]], orders[few])
        steps = _in_parts(mean, rows_between)
        here = start[few]
        for k, value in enumerate([*(np.clip(s, low, high) for s in steps), stop[few]]):
            change = (value - here) / (stop[few] - start[few])
            parts[np.arange(a, a + len(here)), orders[few, k]] = change
            here = value
    positive = np.maximum(parts.sum(axis=0), 0.0)
    return np.asarray(positive * (variance / positive.sum()))


def _pairs(f: Array, weight: Array, n: int, rng: np.random.Generator) -> tuple[Rows, Rows]:
    """Numbers (n,) of the first and of the last row of pairs, by how far they are apart.

    Drawn in proportion to the square of the difference, which is what they add to the variance.
    None if rows that differ hardly count.
    """
    edges = np.cumsum(weight)
    even = np.searchsorted(edges, (np.arange(_CANDIDATES) + 0.5) / _CANDIDATES * edges[-1])
    first, last = rng.permutation(even), rng.permutation(even)
    square = (f[first] - f[last]) ** 2
    order = np.argsort(square, kind="stable")
    edges = np.cumsum(square[order])
    if not edges[-1] > 0.0:
        n = 0
    chosen = np.searchsorted(edges, (np.arange(n) + 0.5) / max(n, 1) * edges[-1])
    return first[order[chosen]], last[order[chosen]]


def _orders(D: int, n: int, rng: np.random.Generator) -> Rows:
    """Orders (n, D) of columns: all if they are few, else random ones and their reverses."""
    if factorial(min(D, 20)) <= _ALL_ORDERS:
        found = np.array(list(permutations(range(D))), dtype=np.intp)
        return np.resize(found, (n, D))
    half = rng.permuted(np.tile(np.arange(D), (-(-n // 2), 1)), axis=1)
    return np.stack([half, half[:, ::-1]], axis=1).reshape(-1, D)[:n]


def _asked(mean: Callable[[Array], Array], X: Array) -> Array:
    parts = [mean(X[a : a + _BATCH]) for a in range(0, len(X), _BATCH)]
    return np.concatenate(parts)


def _in_parts(mean: Callable[[Array], Array], tables: Iterator[Array]) -> Iterator[Array]:
    """Values of the function at the rows of tables of the same size, several at once."""
    while several := list(islice(tables, 1)):
        while len(several) * len(several[0]) < _BATCH and (more := list(islice(tables, 1))):
            several += more
        yield from np.split(mean(np.concatenate(several)), len(several))
