"""Effects of single columns: average predictions along the data, or with a column moved alone."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from tensorlace._types import Array
from tensorlace.columns.encoding import Encoding
from tensorlace.errors import InputError
from tensorlace.explain import local_effects
from tensorlace.explain.averaged_response import averaged_response
from tensorlace.kinds import Categorical, Kind, Ordinal, Periodic
from tensorlace.machines.ensemble import Ensemble
from tensorlace.machines.fitted_model import FittedModel
from tensorlace.predictive.distributions import Mixture
from tensorlace.sources.reference_rows import ReferenceRows

__all__ = ["Effects", "effects_of", "partial_effects"]

_SHIFTED_ROWS = 128
"""Rows whose shares are computed for every value of a column."""

_NO_SHARE = 1e-12

_MOST_ROWS = 200
"""Values of single rows that are kept with effects."""

_Parts = tuple[Array, Array, Array, Array]
_Found = tuple[Array, npt.NDArray[np.intp], _Parts]


@final
@dataclass(frozen=True, eq=False)
class Effects:
    """Average prediction at values of a column, in units of y.

    The band is about the average function, not about new targets: the noise is no part of it, and
    what is uncertain in all rows alike does not average out. Beyond what training rows support,
    means are held and widths grow row by row as those of predictions.

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
    method : {"accumulated", "alone"}
        See `TNKMRegressor.partial_effects`.
    counts : (k,) int array
        Rows that each value rests on: those between the values beside it, or of the category.
    rows : (m,) array
        Values of the column in some rows, in order, 200 at most: where the data are.
    """

    column: str
    kind: Kind
    grid: npt.NDArray[Any]
    mean: Array
    std: Array
    lower: Array
    upper: Array
    coverage: float
    method: str
    counts: npt.NDArray[np.intp]
    rows: npt.NDArray[Any]

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
    method: str = "accumulated",
) -> Effects:
    """Average prediction over the reference rows as one column varies, with its band.

    Parameters
    ----------
    model : FittedModel
    column : str or int
        Name or position.
    grid : array-like or None
        Values as they stand in a table.
    n_points : int
        Most values of the default grid of a column of numbers.
    coverage : float
        Probability of the band, for the average function at each value.
    method : {"accumulated", "alone"}
        Along the data, see `tensorlace.explain.local_effects`; or all rows given the same value,
        whatever their other columns are.
    """
    if method not in _METHODS:
        raise InputError(f"method={method!r} is unknown: choose from {', '.join(_METHODS)}")
    if n_points < 2:
        raise InputError(f"n_points={n_points} is too few for a curve: give 2 or more")
    if not 0.0 < coverage < 1.0:
        raise InputError(f"coverage={coverage:g} is no probability: give a number between 0 and 1")
    d, rows = model.column(column), model.reference_rows
    raw = None if grid is None else _as_column(grid)
    if raw is not None and raw.size == 0:
        raise InputError("grid has no values: give at least one, or leave it out")
    asked = None if raw is None else model.encoding.codes[d](raw)
    values, counts, parts = _METHODS[method](model, rows, d, asked, n_points, coverage)
    (mean, std, lower, upper), on = parts, model.scale.forward
    slope = np.exp(-model.scale.log_derivative(on(mean)))
    parts = on(mean), std * slope, on(lower), on(upper)
    if raw is None:
        raw = model.encoding.decoded(d, values)
    seen = model.encoding.decoded(d, _some(rows.X[:, d]))
    return Effects(
        model.names[d], model.encoding.kinds[d], raw, *parts, coverage, method, counts, seen
    )


def _accumulated(
    model: FittedModel,
    rows: ReferenceRows,
    d: int,
    asked: Array | None,
    n_points: int,
    coverage: float,
) -> _Found:
    """Along the data."""
    few, kinds = rows.spread(local_effects.ROWS), model.encoding.kinds
    x, kind = few.X[:, d], kinds[d]
    if asked is not None:
        _refuse_elsewhere(x, asked, kind)
    if isinstance(kind, Categorical) or np.isnan(x).all():
        ordered = np.array([not isinstance(k, Categorical) for k in kinds])
        values, found = local_effects.between_categories(few, d, ordered, asked)
    else:
        period = kind.period if isinstance(kind, Periodic) else None
        values, found = local_effects.between_values(
            few, d, n_points, asked, period=period, all_values=isinstance(kind, Ordinal)
        )
    parts = local_effects.band_of(model.ensemble, few, found, coverage, model.threads)
    return values, found.near.sum(axis=1), parts


def _alone(
    model: FittedModel,
    rows: ReferenceRows,
    d: int,
    asked: Array | None,
    n_points: int,
    coverage: float,
) -> _Found:
    """All rows given the same value."""
    values = _spread_values(model.encoding, rows, d, n_points) if asked is None else asked
    parts = effects_of(model.ensemble, rows, d, values, coverage, model.threads)
    return values, np.full(len(values), len(rows.X)), parts


_METHODS: dict[str, Callable[..., _Found]] = {"accumulated": _accumulated, "alone": _alone}


def _refuse_elsewhere(x: Array, asked: Array, kind: Kind) -> None:
    """Refuse values (k,) where none of the rows x (n,) are."""
    if isinstance(kind, Periodic):
        bad = np.isnan(asked)
    elif isinstance(kind, Categorical | Ordinal):
        bad = ~(np.isin(asked, x) | np.isnan(asked) & np.isnan(x).any())
    else:
        bad = ~((asked >= np.nanmin(x)) & (asked <= np.nanmax(x)))
    if isinstance(kind, Ordinal):
        bad |= np.isnan(asked)
    if bad.any():
        raise InputError(
            f"{int(bad.sum())} of {len(bad)} values of grid are where no row of training is: leave "
            "them out, or give method='alone', which moves all rows there"
        )


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


def _spread_values(encoding: Encoding, rows: ReferenceRows, d: int, n_points: int) -> Array:
    """Values (k,) of a column: all categories, or numbers over the range of the rows.

    The distinct numbers if there are no more than ``n_points``, or else that many at equal
    distances.
    """
    kind, x = encoding.kinds[d], rows.X[:, d]
    seen = np.unique(x[~np.isnan(x)])
    labels = encoding.labels(d)
    if labels is not None:
        seen = np.arange(float(len(labels)))
    if isinstance(kind, Categorical | Ordinal):
        return np.append(seen, np.nan) if np.isnan(x).any() else seen
    if isinstance(kind, Periodic):
        return np.linspace(0.0, kind.period, n_points)
    if seen.size <= n_points:
        return seen if seen.size else np.array([np.nan])
    return np.linspace(seen[0], seen[-1], n_points)


def _some(x: Array) -> Array:
    """Evenly spread order statistics of what is not missing."""
    present = np.sort(x[~np.isnan(x)])
    return present[np.linspace(0, len(present) - 1, min(len(present), _MOST_ROWS)).astype(int)]


def _as_column(grid: Any) -> npt.NDArray[Any]:
    items = grid if isinstance(grid, np.ndarray) else list(grid)
    raw = np.asarray(items)
    if raw.ndim == 1 and raw.dtype.kind in "US":  # mixed lists would have become text
        raw = np.empty(len(items), dtype=object)
        raw[:] = items
    if raw.ndim != 1:
        raise InputError(f"grid has shape {raw.shape}: give values of one column, shape (k,)")
    return raw
