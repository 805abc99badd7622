"""Partial dependence: the response at values of one column, averaged over the others."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from tensorlace._types import Array
from tensorlace.columns.encoding import Encoding
from tensorlace.errors import InputError
from tensorlace.explain.averaged_response import averaged_response
from tensorlace.kinds import Categorical, Kind, Ordinal, Periodic
from tensorlace.machines.ensemble import Ensemble
from tensorlace.machines.fitted_model import FittedModel
from tensorlace.predictive.distributions import Mixture
from tensorlace.sources.reference_rows import ReferenceRows

__all__ = ["Effects", "chosen_values", "effects_of", "partial_effects"]

_SHIFTED_ROWS = 128
"""Rows whose shares are computed for every value of a column."""

_NO_SHARE = 1e-12


@final
@dataclass(frozen=True, eq=False)
class Effects:
    """Average response at each value of a column, in units of y.

    The band is about the average function, not about new targets: the noise is no part of it, and
    what is uncertain in all rows alike does not average out.

    Attributes
    ----------
    column : str
    kind : Kind
    grid : (k,) array
        Values as in the table: numbers, dates, or categories (None where it is missing).
    mean, std : (k,) arrays
        Of the average function under the posterior.
    lower, upper : (k,) arrays
        Ends of the central band.
    coverage : float
        Probability that the average function lies in the band, at any one value.
    """

    column: str
    kind: Kind
    grid: npt.NDArray[Any]
    mean: Array
    std: Array
    lower: Array
    upper: Array
    coverage: float

    @property
    def discrete(self) -> bool:
        """Whether the values are categories."""
        return isinstance(self.kind, Categorical | Ordinal)

    def __len__(self) -> int:
        return len(self.mean)


def partial_effects(
    model: FittedModel,
    column: str | int,
    grid: Any = None,
    n_points: int = 50,
    coverage: float = 0.9,
) -> Effects:
    """Average prediction over the reference rows as one column varies, with its band.

    Parameters
    ----------
    model : FittedModel
    column : str or int
        Name or position.
    grid, n_points
        See `chosen_values`.
    coverage : float
        Probability of the band, for the average function at each value.
    """
    d, rows = model.column(column), model.reference_rows
    values, raw = chosen_values(model.encoding, rows, d, grid, n_points)
    parts = effects_of(model.ensemble, rows, d, values, coverage, model.threads)
    return Effects(model.names[d], model.encoding.kinds[d], raw, *parts, coverage)


def effects_of(
    ensemble: Ensemble,
    rows: ReferenceRows,
    d: int,
    values: Array,
    coverage: float,
    threads: int = 1,
) -> tuple[Array, Array, Array, Array]:
    """Mean, std, lower and upper end (k,) of the average response of a mixture, in units of y.

    Members average over rows by the shares they have in them, and count by the average share. That
    shares change with the column is made up for on some of the rows, so that the mean is the
    average of what is predicted.
    """
    if not 0.0 < coverage < 1.0:
        raise InputError(f"coverage={coverage:g} is no probability: give a number between 0 and 1")
    shares = ensemble.shares(rows.X, threads)
    overall = shares @ rows.weight
    parts = [
        averaged_response(machine, _counting(rows, share), d, values)
        for machine, share in zip(ensemble.machines, shares, strict=True)
    ]
    means = np.stack([mean for mean, _ in parts])
    stds = np.sqrt(np.stack([variance for _, variance in parts]))
    target = ensemble.machines[0].target
    dist = Mixture(means, stds, np.zeros_like(stds), overall)
    dist = dist.affine(target.scale, target.location)
    lower, upper = dist.interval(coverage)
    shift = 0.0 if ensemble.plain else _shift(ensemble, shares, rows, d, values, threads)
    return dist.mean + shift, dist.epistemic_std, lower + shift, upper + shift


def _counting(rows: ReferenceRows, share: Array) -> ReferenceRows:
    """Rows weighted by the share of a member; as they are if it has none."""
    weight = rows.weight * share
    total = float(weight.sum())
    return ReferenceRows(rows.X, weight / total) if total > _NO_SHARE else rows


def _shift(
    ensemble: Ensemble, shares: Array, rows: ReferenceRows, d: int, values: Array, threads: int
) -> Array:
    """Change (k,) of the average as members' shares follow the column, over the first rows."""
    few, k = rows.part(_SHIFTED_ROWS), len(values)
    n = len(few.X)
    X = np.repeat(few.X, k, axis=0)
    X[:, d] = np.tile(values, n)
    means = np.stack([m.mean(X, threads, ensemble.engine) for m in ensemble.machines])
    change = ensemble.shares(X, threads) - np.repeat(shares[:, :n], k, axis=1)
    return few.weight @ np.sum(change * means, axis=0).reshape(n, k)


def chosen_values(
    encoding: Encoding, rows: ReferenceRows, d: int, grid: Any, n_points: int
) -> tuple[Array, npt.NDArray[Any]]:
    """Values of a column as numbers (k,), and the same as they stand in a table (k,).

    Parameters
    ----------
    encoding : Encoding
    rows : ReferenceRows
    d : int
        Number of the column.
    grid : array-like or None
        Values as they stand in a table. None: all categories, the distinct numbers if there are no
        more than ``n_points``, or else that many at equal distances over the range of the rows.
    """
    if grid is not None:
        raw = _as_column(grid)
        if raw.size == 0:
            raise InputError("grid has no values: give at least one, or leave it out")
        return encoding.codes[d](raw), raw
    if n_points < 2:
        raise InputError(f"n_points={n_points} is too few for a curve: give 2 or more")
    kind, x = encoding.kinds[d], rows.X[:, d]
    seen = np.unique(x[~np.isnan(x)])
    labels = encoding.labels(d)
    if labels is not None:
        seen = np.arange(float(len(labels)))
    if isinstance(kind, Categorical | Ordinal):
        values = np.append(seen, np.nan) if np.isnan(x).any() else seen
    elif isinstance(kind, Periodic):
        values = np.linspace(0.0, kind.period, n_points)
    elif seen.size <= n_points:
        values = seen if seen.size else np.array([np.nan])
    else:
        values = np.linspace(seen[0], seen[-1], n_points)
    return values, encoding.decoded(d, values)


def _as_column(grid: Any) -> npt.NDArray[Any]:
    items = grid if isinstance(grid, np.ndarray) else list(grid)
    raw = np.asarray(items)
    if raw.ndim == 1 and raw.dtype.kind in "US":  # mixed lists would have become text
        raw = np.empty(len(items), dtype=object)
        raw[:] = items
    if raw.ndim != 1:
        raise InputError(f"grid has shape {raw.shape}: give values of one column, shape (k,)")
    return raw
