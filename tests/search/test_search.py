"""The model that chooses itself."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.linear_model import BayesianRidge

from tensorlace import TNKMRegressor, metrics
from tensorlace.columns.rotation import Rotation, Scatter
from tensorlace.errors import InputError, MisspecificationWarning, TimeBudgetWarning
from tensorlace.search import search
from tensorlace.search import weights as members
from tensorlace.search.candidate import Width
from tensorlace.search.cost_model import MOST_WEIGHTS, cost
from tensorlace.search.plan import enlarged, plan
from tensorlace.search.stacking import Unseen
from tensorlace.sources import Chunk, NpySource
from tests.helpers.oracles import error


def table(n=150, seed=0, D=3):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, D))
    return X, np.sin(3 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(n)


def auto(**settings):
    return TNKMRegressor(rank="auto", time_budget=1.0, random_state=0, **settings)


def test_plans_are_reproducible_and_fit_the_budget():
    for n in (20, 300, 5000):
        for work in (1.0, 10.0, 100.0):
            chosen = plan(n, Width(8), work)
            assert chosen == plan(n, Width(8), work)
            assert len(set(chosen)) == len(chosen) >= 3
            assert sum(cost(c, Width(8), n) for c in chosen[3:]) <= work


def test_more_budget_means_more_candidates():
    sizes = [len(plan(1000, Width(8), work)) for work in (1, 10, 100)]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]


def test_many_rows_are_offered_polynomials():
    smooth = set(plan(2000, Width(8), 100.0, smooth=True))
    new = smooth - set(plan(2000, Width(8), 100.0))
    assert sum(c.basis == "legendre" and c.rank > 2 for c in new) == 4


def test_wide_tables_are_offered_what_memory_allows():
    wide = Width(1500)
    chosen = plan(40, wide, 1e6)
    assert len(chosen) >= 2
    assert all(wide.weights(c) <= MOST_WEIGHTS for c in chosen)
    assert len(plan(40, Width(20_000), 1.0)) == 1  # the first, with too many weights or not


def test_more_columns_than_rows():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 100)), rng.standard_normal(30)
    model = auto().fit(X, y)
    assert 0.5 * y.std() < np.median(model.predict(X + 0.1, return_std=True)[1]) < 3.0 * y.std()
    assert "100 columns" in str(model.summary())


def test_a_search_that_the_clock_stops_at_once_has_a_model(monkeypatch):
    monkeypatch.setattr(search, "_past", lambda deadline: True)
    X, y = table(60)
    with pytest.warns(TimeBudgetWarning, match="budget of 1 s"):
        model = auto(n_jobs=1).fit(X, y)
    assert model.search_results_ is None
    np.testing.assert_allclose(model.predict(X[:3]), y.mean(), atol=0.05)


def test_levels_of_categories_cost():
    c = plan(1000, Width(8), 10.0)[-1]
    assert Width(2, 30).weights(c) == (c.rank + c.additive) * (2 * c.n_basis + 30)
    assert cost(c, Width(2, 300), 1000) > cost(c, Width(2, 3), 1000)


def test_enlarged_models_are_larger_and_keep_their_style():
    best = plan(1000, Width(8), 10.0)[2:5]
    for larger in enlarged(best):
        assert larger not in best
        like = [c for c in best if replace(larger, rank=c.rank, n_basis=c.n_basis) == c]
        assert any(larger.rank * larger.n_basis > c.rank * c.n_basis for c in like)


def test_a_choice_is_a_mixture_that_predicts():
    X, y = table()
    model = auto().fit(X, y)
    results = model.search_results_
    assert len(model.machines_) == len(model.weights_) == np.sum(results["weight"] > 0)
    assert model.weights_.sum() == pytest.approx(1)
    held, target = table(500, seed=1)
    mean, std = model.predict(held, return_std=True)
    assert np.sqrt(np.mean((mean - target) ** 2)) < 0.2
    assert error(model.predict(held), mean) < 1e-14
    assert 0.9 < np.mean(np.abs(target - mean) < 1.96 * std) <= 1.0


def test_the_same_again():
    X, y = table(80)
    a, b = auto(n_jobs=1, n_members=3), auto(n_jobs=1, n_members=3)
    np.testing.assert_array_equal(a.fit(X, y).predict(X), b.fit(X, y).predict(X))


def test_hold_out_on_more_rows():
    X, y = table(900)
    model = auto(n_members=4).fit(X, y)
    assert np.all(np.isfinite(model.search_results_["held_out_log_score"]))
    assert len(model.machines_) <= 4


def test_many_rows_are_covered_as_they_should_be():
    """Final members have seen more rows than those that the noise was chosen with."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (8000, 3))
    y = np.sin(9 * X[:, 0]) * np.cos(5 * X[:, 1]) + 0.02 * rng.standard_t(5, 8000)
    dist = auto(n_jobs=1).fit(X[:4000], y[:4000]).predict_dist(X[4000:])
    assert metrics.calibration_error(y[4000:], dist) < 0.04


def test_what_the_user_gives_is_kept():
    X, y = table(60)
    results = auto(warp="quantile", n_basis=4, rotate=False).fit(X, y).search_results_
    assert set(results["warp"]) == {"quantile"}
    assert set(results["n_basis"]) == {4}
    assert not results["rotate"].any()


def test_refused():
    X, y = table(30)
    with pytest.raises(InputError, match="per column needs a rank"):
        auto(n_basis=[3, 3, 3]).fit(X, y)


def test_checkpoint_needs_a_rank(tmp_path):
    X, y = table(60)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    source = NpySource(tmp_path / "X.npy", tmp_path / "y.npy")
    with pytest.raises(InputError, match="keeps no checkpoint"):
        auto().fit_rows(source, checkpoint=tmp_path / "fit")
    on_disk, in_memory = auto(n_members=2, n_jobs=1), auto(n_members=2, n_jobs=1)
    on_disk.fit_rows(source)
    np.testing.assert_array_equal(on_disk.predict(X), in_memory.fit(X, y).predict(X))


@pytest.mark.parametrize("n", [5, 10, 20])
def test_few_rows(n):
    X, y = table(n)
    mean, std = auto().fit(X, y).predict(X, return_std=True)
    assert np.all(np.isfinite(mean))
    assert np.all((std > 0) & (std < 10 * np.std(y)))
    # bands hold most of what comes later, and are no wider than a few times what there is to see
    new, target = table(400, seed=1)
    dist = auto().fit(X, y).predict_dist(new)
    lower, upper = dist.interval(0.9)
    assert np.mean((lower <= target) & (target <= upper)) > 0.6
    assert np.median(upper - lower) < 8 * np.std(target)


def test_noise_alone():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(1200, 4)), rng.standard_normal(1200)
    model = auto().fit(X[:200], y[:200])
    dist = model.predict_dist(X[200:])
    trivial = 0.5 * np.log(2 * np.pi * y[:200].var()) + 0.5 * np.mean(
        (y[200:] - y[:200].mean()) ** 2 / y[:200].var()
    )
    assert -dist.logpdf(y[200:]).mean() < trivial + 0.02
    assert np.max(model.relevance_) < 0.05


def test_linear_data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1400, 5))
    y = X @ rng.standard_normal(5) + 0.5 * rng.standard_normal(1400)
    dist = auto().fit(X[:300], y[:300]).predict_dist(X[300:])
    mean, std = BayesianRidge().fit(X[:300], y[:300]).predict(X[300:], return_std=True)
    theirs = np.mean(0.5 * ((y[300:] - mean) / std) ** 2 + np.log(std) + 0.5 * np.log(2 * np.pi))
    assert -dist.logpdf(y[300:]).mean() < theirs + 0.02


def chunk(X, weight=None, first_row=0):
    return Chunk(X, np.zeros(len(X)), weight, first_row)


def test_rotation_whitens():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 4)) @ rng.standard_normal((4, 4)) * [1, 10, 1e3, 1e-3] + 5
    weight = rng.integers(0, 3, 500).astype(float)
    which = np.array([0, 2, 3])
    scatter = Scatter(which, X[0, which], X[:, which].std(axis=0))
    pieces = [chunk(X[:200], weight[:200]), chunk(X[200:], weight[200:])]
    rotation = Rotation.of(scatter, Scatter.add(*map(scatter, pieces)), 4)
    T = rotation(X)
    assert T.shape == (500, 4)
    np.testing.assert_array_equal(T[:, 3], X[:, 1])
    repeated = T[:, :3].repeat(weight.astype(int), axis=0)
    assert np.max(np.abs(repeated.mean(axis=0))) < 1e-9
    assert error(np.cov(repeated.T, bias=True), np.eye(3)) < 1e-9


def test_rotation_drops_directions_without_variance():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 2))
    X = np.column_stack([X, X.sum(axis=1)])
    scatter = Scatter(np.arange(3), np.zeros(3), np.ones(3))
    assert Rotation.of(scatter, scatter(chunk(X)), 3).n_components == 2


def test_a_rotated_fit_predicts_with_fewer_columns():
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((400, 2))
    X = np.column_stack([Z, Z @ [1.0, 2.0], np.ones(400)])
    y = np.sin(Z[:, 0]) + 0.05 * rng.standard_normal(400)
    model = TNKMRegressor(rank=3, rotate=True, tol=1e-3, random_state=0).fit(X, y)
    columns = model.machines_[0].columns
    assert [c.name for c in columns.columns] == ["component 0", "component 1", "column 3"]
    assert np.sqrt(np.mean((model.predict(X) - np.sin(Z[:, 0])) ** 2)) < 0.1
    assert model.extrapolated(X + np.array([100.0, 0, 0, 0])).all()


def test_a_member_that_is_not_rotated_says_what_is_beyond_the_range():
    X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    rotated, straight = (
        TNKMRegressor(rank=1, n_basis=2, rotate=rotate, tol=1.0).fit(X, X[:, 0])
        for rotate in (True, False)
    )
    grid = 1.3 * np.array([[a, b] for a in np.linspace(-1, 1, 9) for b in np.linspace(-1, 1, 9)])
    beyond = np.any((grid < X.min(axis=0)) | (grid > X.max(axis=0)), axis=1)
    assert np.any(rotated.extrapolated(grid) != beyond)
    rotated.machines_ += straight.machines_
    np.testing.assert_array_equal(rotated.extrapolated(grid), beyond)


def test_a_choice_checks_itself():
    X, y = table(400)
    model = auto().fit(X, y)
    assert not model.check_.contradicted
    assert model.check_.n_rows >= 350
    assert TNKMRegressor(rank=1, n_basis=3, tol=1.0).fit(X, y).check_ is None


def test_two_rows_over_and_over():
    """One of them is held out, again and again: nothing can be chosen by it."""
    X, y = np.tile([[0.0], [1.0]], (1000, 1)), np.tile([3.0, 5.0], 1000)
    with pytest.warns(MisspecificationWarning, match="of 1000 rows"):
        model = auto(n_jobs=1).fit(X, y)
    np.testing.assert_allclose(model.predict([[0.0], [1.0]]), [3.0, 5.0], atol=1.0)


@pytest.mark.parametrize(("slope", "expected"), [(0.0, 1), (1.0, 2), (3.0, None)])
def test_a_plain_model_stands_alone_unless_the_mixture_is_clearly_better(slope, expected):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 2))
    f = slope * X[:, 0] + (3.0 * np.sin(4 * X[:, 1]) if expected is None else 0.0)
    model = auto(n_jobs=1).fit(X, f + 0.5 * rng.standard_normal(300))
    chosen = model.search_results_.query("weight > 0")
    if expected is None:
        assert chosen["n_basis"].max() > 2
    else:
        rank = 1 if expected == 1 else 0  # a line has no products
        assert chosen[["rank", "n_basis", "basis"]].values.tolist() == [
            [rank, expected, "legendre"]
        ]
        groups = {1: "one for all weights", 2: "column"}[expected]
        assert ("prior precisions", groups) in model.summary().facts
        assert model.noise_.kind == "gaussian"


def test_picks_are_trusted_as_far_as_they_help_elsewhere():
    """Forty models: all alike but for chance, or one right and all others wrong together."""
    rng = np.random.default_rng(0)
    n, y = 400, rng.standard_normal(400)
    X = rng.standard_normal((n, 2))
    trials = SimpleNamespace(
        sample=Chunk(X, y, None, 0), held=np.ones(n, dtype=bool), targets=(y, None)
    )
    stds = 0.0 * np.ones((40, n)), np.ones((40, n))
    alike = Unseen(y + 0.7 * rng.standard_normal((40, n)), *stds)
    folds = members._folds(trials)
    assert members._trust(trials, alike, 20, folds)[0] == 0.2
    means = y + np.sin(2 * X[:, 0]) + 0.3 * rng.standard_normal((40, n))
    means[7] = y + 0.3 * rng.standard_normal(n)
    assert members._trust(trials, Unseen(means, *stds), 20, folds)[0] == 0.8


@pytest.mark.parametrize(
    "fixed",
    [{"curvature": "last"}, {"n_basis": 1, "additive": False}, {"additive": False}],
    ids=str,
)
def test_no_straight_line_where_there_can_be_none(fixed):
    X, y = table(60)
    model = auto(n_jobs=1, **fixed).fit(X, y)
    assert (model.search_results_["rank"] > 0).all()


def test_a_straight_line_is_tried_where_rows_can_tell():
    for n, tried in ((39, False), (40, True)):
        X, y = table(n)
        model = auto(n_jobs=1).fit(X, y)
        assert (model.search_results_["rank"] == 0).any() == tried


@pytest.mark.parametrize("n", [6, 18])
def test_of_few_rows_nobody_is_too_sure(n):
    """A wave that some members hit exactly: the constant keeps its share all the same."""
    X = np.linspace(-1, 1, n)[:, None]
    model = auto(n_jobs=1).fit(X, np.sin(2 * X[:, 0]))
    constant = model.search_results_.query("n_basis == 1")
    assert constant["weight"].sum() >= 1 / (n + 1) - 1e-12
    far = model.predict_dist([[3.0], [-3.0]])
    assert np.all(far.logpdf(np.array([1.5, -1.5])) > -10)
    assert not model.model_.ensemble.sharp
    repeated = auto(n_jobs=1).fit(np.repeat(X, 4, axis=0), np.repeat(np.sin(2 * X[:, 0]), 4))
    assert repeated.model_.ensemble.sharp
