"""Effects along the data, against loops over rows, joint draws and additive functions."""

import warnings
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from tensorlace import Ordinal, Periodic, TNKMRegressor
from tensorlace.explain.local_effects import band_of, between_categories, between_values
from tensorlace.machines.noise import Noise
from tensorlace.sources.reference_rows import ReferenceRows
from tests.helpers.models import with_ensemble

RNG = np.random.default_rng(17)
N = 150
Z = RNG.uniform(-1.0, 1.0, (N, 3))
X = np.column_stack([Z[:, 0], Z[:, 0] + 0.3 * Z[:, 1], Z[:, 2]])
Y = 20.0 + 5.0 * np.sin(2.0 * X[:, 0]) * X[:, 1] + X[:, 2] + 0.3 * RNG.standard_normal(N)
SHOPS = np.array(["east", "north", "south", "west"])


def frame():
    """The shop says much about the size, and most of the towns belong to one shop."""
    size = RNG.uniform(0.0, 4.0, N)
    shop = np.clip(size + 0.5 * RNG.standard_normal(N), 0, 3).astype(int)
    table = pd.DataFrame(
        {
            "size": size,
            "shop": SHOPS[shop],
            "hour": RNG.uniform(0, 24, N),
            "town": RNG.choice(["a", "b"], N),
            "grade": RNG.choice(["low", "middle", "high"], N),
        }
    )
    y = size * (1 + shop) + np.sin(table["hour"] / 24 * 2 * np.pi) + 0.2 * RNG.standard_normal(N)
    table.loc[::15, "shop"] = None
    table.loc[::11, "size"] = np.nan
    return table, np.asarray(y)


TABLE, TABLE_Y = frame()
KINDS = {"hour": Periodic(24), "grade": Ordinal(["low", "middle", "high"])}


def fitted(table, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"rank": 2, "n_basis": 4, "random_state": 0, "max_sweeps": 60, **options}
        return TNKMRegressor(**options).fit(table, y)


MODELS = {
    "plain": {},
    "members": {"n_members": 3},
    "additive": {"additive": True},
    "rotated": {"rotate": True},
    "train": {"network": "tt"},
    "last": {"curvature": "last"},
    "block": {"curvature": "block"},
}


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return fitted(X, Y, **MODELS[request.param])


@pytest.fixture(scope="module")
def shops():
    return fitted(TABLE, TABLE_Y, columns=KINDS, additive=True)


def curve_by_loops(f, rows, d, edges, period=None):
    """Accumulated local effects of a function of points, one row and one step at a time.

    Functions may give (n,) values or (n, m) draws.
    """
    x = rows[:, d] if period is None else np.mod(rows[:, d], period)
    there = ~np.isnan(x)
    level = [np.zeros_like(f(rows[:1])[0])]
    for low, high in pairwise(edges):
        near = [n for n in np.flatnonzero(there) if low <= x[n] <= high]
        if len(near) < 20:
            away = np.abs(x - (low + high) / 2)
            if period is not None:
                away = np.minimum(away, period - away)
            near = np.argsort(np.where(there, away, np.inf), kind="stable")[:20].tolist()
        changes = []
        for n in near:
            ends = np.stack([rows[n], rows[n]])
            ends[:, d] = low, high
            value = f(ends)
            changes.append(value[1] - value[0])
        level.append(level[-1] + np.mean(changes, axis=0))
    level = np.stack(level)
    if period is not None:
        level = level - np.multiply.outer(edges / period, level[-1])
    flat = level.reshape(len(edges), -1)
    middle = np.mean([[np.interp(v, edges, c) for c in flat.T] for v in x[there]], axis=0)
    return level - middle.reshape(level.shape[1:]) + f(rows[there]).mean(axis=0)


def agrees(found, model, rows, by_loops):
    """Mean by a loop, band by joint draws of one machine or of several."""
    target = model.machines_[0].target

    def of(m):
        return lambda points: model.machines_[m].functions(
            points, 1500, np.random.default_rng(m), linearized=True
        )

    np.testing.assert_allclose(found.mean, by_loops(model.predict_encoded), rtol=1e-10)
    draws = np.concatenate([by_loops(of(m)) for m in range(len(model.machines_))], axis=1)
    draws = target.location + target.scale * draws
    weights = np.repeat(model.weights_, 1500)
    middle = draws @ weights / weights.sum()
    std = np.sqrt((draws - middle[:, None]) ** 2 @ weights / weights.sum())
    np.testing.assert_allclose(found.std, std, rtol=0.08)
    if len(model.machines_) == 1:
        low, high = np.quantile(draws, [0.05, 0.95], axis=1)
        assert np.all(np.abs(found.lower - low) < 0.25 * std)
        assert np.all(np.abs(found.upper - high) < 0.25 * std)


@pytest.fixture(autouse=True)
def encoded(monkeypatch):
    """Predictions of rows that are numbers already."""
    monkeypatch.setattr(
        TNKMRegressor,
        "predict_encoded",
        lambda self, points: self.fitted_model().ensemble.mean(points),
        raising=False,
    )


@pytest.mark.parametrize("d", [0, 2])
def test_curves_are_accumulated_differences(model, d):
    found = model.partial_effects(d, n_points=9)
    assert len(found) == 9
    assert np.all(np.isin(found.grid, X[:, d]))
    agrees(found, model, X, lambda f: curve_by_loops(f, X, d, found.grid))
    inside = (X[:, d, None] >= found.grid[:-1]) & (X[:, d, None] <= found.grid[1:])
    beside = [inside[:, max(k - 1, 0) : k + 1].any(axis=1).sum() for k in range(9)]
    assert found.counts.tolist() == beside
    assert np.array_equal(found.rows, np.sort(X[:, d]))


def test_curves_are_held_as_predictions_are(model):
    """Where most rows are beyond what training rows have shown."""
    tight = [
        replace(m, support=replace(m.support, low=-0.5, high=0.6, largest=0.4 * m.support.largest))
        for m in model.machines_
    ]
    held = with_ensemble(model, machines=tuple(tight))
    found, bare = held.partial_effects(0, n_points=5), model.partial_effects(0, n_points=5)
    agrees(found, held, X, lambda f: curve_by_loops(f, X, 0, found.grid))
    assert np.max(np.abs(found.mean - bare.mean)) > 0.1 * Y.std()
    assert np.max(found.std / bare.std) > 1.3


@pytest.mark.parametrize(("column", "period"), [("size", None), ("hour", 24.0)])
def test_curves_with_gaps_and_round_a_circle(shops, column, period):
    d, rows = list(TABLE.columns).index(column), shops.fitted_model().reference_rows.X
    found = shops.partial_effects(column, n_points=6)
    agrees(found, shops, rows, lambda f: curve_by_loops(f, rows, d, found.grid, period))
    if period is not None:
        assert (found.grid[0], found.grid[-1]) == (0.0, period)
        assert found.mean[0] == pytest.approx(found.mean[-1], rel=1e-12)
        assert found.std[0] == pytest.approx(found.std[-1], rel=1e-9)


def test_ordinal_categories_are_steps_of_a_curve(shops):
    d, rows = 4, shops.fitted_model().reference_rows.X
    found = shops.partial_effects("grade")
    assert found.grid.tolist() == ["low", "middle", "high"]
    edges = np.arange(3.0)
    agrees(found, shops, rows, lambda f: curve_by_loops(f, rows, d, edges))
    given = shops.partial_effects("grade", grid=["high", "low"])
    np.testing.assert_allclose(given.mean, found.mean[[2, 0]], rtol=1e-12)


def categories_by_loops(f, rows, d, ordered):
    """Least squares over single comparisons, each weighing the same."""
    level = np.unique(rows[:, d])
    own = np.searchsorted(level, rows[:, d])

    def away(a, b):
        total = 0.0
        for e in range(rows.shape[1]):
            if e == d:
                continue
            p, q = rows[a, e], rows[b, e]
            if np.isnan(p) or np.isnan(q):
                total += float(np.isnan(p) != np.isnan(q))
            elif ordered[e]:
                seen = np.unique(rows[:, e])
                rank = np.searchsorted(seen, [p, q])
                total += abs(rank[0] - rank[1]) / (np.sum(~np.isnan(seen)) - 1)
            else:
                total += float(p != q)
        return total

    incidence, changes = [], []
    for k in range(len(level)):
        mine = np.flatnonzero(own == k)
        others = np.flatnonzero(own != k)
        far = [min(away(n, m) for m in mine) for n in others]
        for n in others[np.argsort(far, kind="stable")[: max(len(mine) // 2, 20)]]:
            ends = np.stack([rows[n], rows[n]])
            ends[1, d] = level[k]
            value = f(ends)
            changes.append(value[1] - value[0])
            line = np.zeros(len(level))
            line[k], line[own[n]] = 1.0, -1.0
            incidence.append(line)
    effects = np.linalg.lstsq(np.array(incidence), np.stack(changes), rcond=None)[0]
    return effects - effects[own].mean(axis=0) + f(rows).mean(axis=0)


def test_categories_are_compared_where_rows_are_alike(shops):
    rows = shops.fitted_model().reference_rows.X
    ordered = [True, False, True, False, True]
    found = shops.partial_effects("shop")
    assert found.grid.tolist() == [*SHOPS, None]
    assert found.counts.tolist() == [(TABLE["shop"] == s).sum() for s in SHOPS] + [10]
    agrees(found, shops, rows, lambda f: categories_by_loops(f, rows, 1, ordered))
    given = shops.partial_effects("shop", grid=[None, "south"])
    np.testing.assert_allclose(given.mean, found.mean[[4, 2]], rtol=1e-12)


@pytest.mark.parametrize("column", ["size", "shop", "hour", "town", "grade"])
def test_additive_models_have_the_same_differences_either_way(column):
    model = fitted(TABLE, TABLE_Y, columns=KINDS, rank=0, additive=True)
    along = model.partial_effects(column)
    alone = model.partial_effects(column, grid=along.grid, method="alone")
    np.testing.assert_allclose(np.diff(along.mean), np.diff(alone.mean), rtol=1e-8, atol=1e-9)


def test_the_average_over_rows_is_the_average_prediction(model):
    found = model.partial_effects(1, n_points=30)
    at_rows = np.interp(X[:, 1], found.grid, found.mean)
    assert at_rows.mean() == pytest.approx(model.predict(X).mean(), rel=1e-11)


def test_values_between_those_of_the_curve_are_on_it(model):
    found = model.partial_effects(0, n_points=50)
    middle = 0.5 * (found.grid[1:] + found.grid[:-1])
    between = model.partial_effects(0, grid=middle)
    np.testing.assert_allclose(between.mean, 0.5 * (found.mean[1:] + found.mean[:-1]), rtol=1e-11)
    low = model.partial_effects(0, grid=[X[:, 0].min()])
    assert low.mean[0] == pytest.approx(found.mean[0], rel=1e-12)


def test_curves_end_before_single_rows_far_away():
    rng = np.random.default_rng(0)
    table = rng.standard_normal((400, 2))
    table[0, 0] = 1e6
    model = fitted(table, table[:, 1] + 0.1 * rng.standard_normal(400))
    found = model.partial_effects(0)
    assert found.grid[-1] == np.sort(table[:, 0])[-4]  # 1 % of the rows are beyond or there
    assert found.grid[0] == np.sort(table[:, 0])[3]


def test_columns_with_one_value_or_none():
    table = X.copy()
    table[:, 1], table[:, 2] = 7.0, np.nan
    model = fitted(table, Y)
    for d in (1, 2):
        found = model.partial_effects(d)
        assert len(found) == 1
        assert found.mean[0] == pytest.approx(model.predict(table).mean(), rel=1e-12)
        assert found.counts.tolist() == [N]


def test_where_columns_are_equal_curves_stay_where_predictions_are():
    """Moved alone, each of the two leaves the rows by its whole range."""
    rng = np.random.default_rng(1)
    size = rng.uniform(0.0, 4.0, 300)
    table = np.column_stack([size, size + 0.05 * rng.standard_normal(300)])
    y = size**3 + rng.standard_normal(300)
    model = fitted(table, y, rank=4, n_basis=8)
    room = 0.2 * np.ptp(y)
    for d in range(2):
        found = model.partial_effects(d)
        assert y.min() - room < found.mean.min() <= found.mean.max() < y.max() + room
    alone = model.partial_effects(0, method="alone")
    assert max(alone.std) > 3.0 * max(model.partial_effects(0).std)


def sharp_model():
    """Members that count differently from row to row, and not by their overall weights."""
    one, two, three = (
        fitted(X, Y, rank=3, n_basis=6, target_scale="identity"),
        fitted(X[:40], Y[:40], rank=1, n_basis=3, additive=True),
        fitted(X, Y, rank=1, n_basis=1, basis="legendre", warp="standardise"),
    )
    target = one.machines_[0].target
    members = tuple(replace(m.machines_[0], target=target) for m in (one, two, three))
    return with_ensemble(
        one,
        machines=members,
        weights=np.array([0.2, 0.2, 0.6]),
        sharp=True,
        noise=Noise(factor=0.7, degrees=5.0, shrink=0.9),
    )


def test_means_are_those_of_what_is_predicted():
    sharp = sharp_model()
    for d in (0, 1):
        found = sharp.partial_effects(d, n_points=8)
        expected = curve_by_loops(sharp.predict, X, d, found.grid)
        np.testing.assert_allclose(found.mean, expected, rtol=1e-10)
        assert np.all((found.lower < found.mean) & (found.mean < found.upper))
        plain = with_ensemble(sharp, sharp=False).partial_effects(d, n_points=8)
        assert np.max(np.abs(plain.mean - found.mean)) > 0.1


def test_members_without_a_share_do_not_widen_the_band():
    sharp = sharp_model()
    bad = sharp.machines_[2]
    without = with_ensemble(sharp, machines=sharp.machines_[:2], weights=np.array([0.2, 0.2]))
    never = with_ensemble(
        sharp, machines=(*without.machines_, bad), weights=np.array([0.2, 0.2, 1e-300])
    )
    a, b = without.partial_effects(0), never.partial_effects(0)
    np.testing.assert_allclose(b.mean, a.mean, rtol=1e-12)
    np.testing.assert_allclose(b.lower, a.lower, rtol=1e-9)
    np.testing.assert_allclose(b.std, a.std, rtol=1e-9)


@pytest.mark.parametrize("d", [0, 1])
def test_weights_count_as_repetitions(shops, d):
    """Of many rows, so that none is moved beyond the values beside it."""
    rng = np.random.default_rng(0)
    rows = shops.fitted_model().reference_rows.X.repeat(6, axis=0)
    times = rng.integers(1, 4, len(rows))
    ensemble = shops.fitted_model().ensemble
    ordered = np.array([True, False, True, False, True])
    found = []
    for table, weight in (
        (rows, times / times.sum()),
        (rows.repeat(times, axis=0), np.full(times.sum(), 1.0 / times.sum())),
    ):
        part = ReferenceRows(table, weight)
        if d == 1:
            found.append(band_of(ensemble, part, between_categories(part, d, ordered)[1], 0.9))
        else:
            asked = np.array([0.5, 2.0, 3.5])
            found.append(band_of(ensemble, part, between_values(part, d, 12, asked)[1], 0.9))
    close = {0: {"rtol": 1e-10}, 1: {"rtol": 0.03}}[d]  # of others, a number of rows is moved
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, **close)
