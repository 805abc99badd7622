"""The model that chooses itself, from end to end."""

from dataclasses import replace

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.linear_model import BayesianRidge

from tensorlace import TNKMRegressor
from tensorlace.errors import InputError, TimeBudgetWarning
from tensorlace.search import search as search_module
from tensorlace.search.parallel import Workers
from tensorlace.search.search import search
from tensorlace.search.settings import BudgetSettings, FewRowsSettings, SearchSettings
from tensorlace.sources import ArraySource, NpySource
from tests.helpers.models import with_ensemble
from tests.helpers.oracles import error
from tests.helpers.searching import auto, table, task_for


def test_more_columns_than_rows():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 100)), rng.standard_normal(30)
    model = auto().fit(X, y)
    assert 0.5 * y.std() < np.median(model.predict(X + 0.1, return_std=True)[1]) < 3.0 * y.std()
    assert "100 columns" in str(model.summary())


def test_a_search_that_the_clock_stops_at_once_has_a_model():
    X, y = table(60)
    at_once = SearchSettings(budget=BudgetSettings(overshoot=0.0, grace=0.0))
    with pytest.warns(TimeBudgetWarning, match="budget of 1 s"):
        found = search(task_for(3, settings=at_once), ArraySource(X, y))
    assert found.results == []
    np.testing.assert_allclose(found.ensemble.mean(X[:3]), y.mean(), atol=0.05)


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


def test_a_member_that_is_not_rotated_says_what_is_beyond_the_range():
    X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    rotated, straight = (
        TNKMRegressor(rank=1, n_basis=2, rotate=rotate, tol=1.0).fit(X, X[:, 0])
        for rotate in (True, False)
    )
    grid = 1.3 * np.array([[a, b] for a in np.linspace(-1, 1, 9) for b in np.linspace(-1, 1, 9)])
    beyond = np.any((grid < X.min(axis=0)) | (grid > X.max(axis=0)), axis=1)
    assert np.any(rotated.extrapolated(grid) != beyond)
    both = with_ensemble(rotated, machines=rotated.machines_ + straight.machines_)
    np.testing.assert_array_equal(both.extrapolated(grid), beyond)


def test_a_choice_checks_itself():
    X, y = table(400)
    model = auto().fit(X, y)
    assert not model.check_.contradicted
    assert model.check_.n_rows >= 350
    assert TNKMRegressor(rank=1, n_basis=3, tol=1.0).fit(X, y).check_ is None


def test_a_search_gives_the_same_bits_by_processes_and_threads(monkeypatch):
    made = []
    monkeypatch.setattr(
        search_module, "Workers", lambda *how: made.append(Workers(*how)) or made[-1]
    )
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (230, 3))
    y = np.sin(3 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(230)
    settings = SearchSettings(few=FewRowsSettings(processes_budget=0.5))
    task = task_for(3, n_members=4, threads=2, settings=settings)
    apart = search(task, ArraySource(X, y)).ensemble.dist(X)
    with parallel_config(backend="threading"):
        together = search(task, ArraySource(X, y)).ensemble.dist(X)
    np.testing.assert_array_equal(apart.means, together.means)
    np.testing.assert_array_equal(apart.std, together.std)
    assert made == [Workers(2, processes=True)] * 2
    search(replace(task, threads=1), ArraySource(X, y))
    assert made[-1] == Workers(1)


def test_rows_decide_on_the_strategy(monkeypatch):
    """The constants come from the task, for both strategies."""
    X, y = table(300)
    chosen = []
    for strategy in ("FewRows", "ManyRows"):
        monkeypatch.setattr(search_module, strategy, lambda *how, s=strategy: Told(s, chosen))
    for most in (300, 299):
        settings = replace(SearchSettings(), rows=replace(SearchSettings().rows, few=most))
        search(task_for(3, settings=settings), ArraySource(X, y))
    assert chosen == ["FewRows", "ManyRows"]


class Told:
    """A strategy that only says its name."""

    def __init__(self, name, chosen):
        self.name, self.chosen = name, chosen

    def search(self):
        self.chosen.append(self.name)
