"""The model that chooses itself, from end to end."""

import re
from dataclasses import replace
from time import monotonic

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.linear_model import BayesianRidge

from tensorlace import TNKMRegressor
from tensorlace.errors import InputError, TimeBudgetWarning
from tensorlace.fitting.outcome import Found
from tensorlace.machines.ensemble import Ensemble
from tensorlace.rows.stop import Request, Stop
from tensorlace.search import noise_selection as noise_module
from tensorlace.search import search as search_module
from tensorlace.search import trials as trials_module
from tensorlace.search.candidate import Width
from tensorlace.search.candidate_fit import fit_candidate
from tensorlace.search.cost_model import cost
from tensorlace.search.parallel import Workers
from tensorlace.search.search import search
from tensorlace.search.settings import (
    BudgetSettings,
    CostSettings,
    FewRowsSettings,
    SearchSettings,
)
from tensorlace.search.strategies import members as members_module
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


def test_the_default_plan_asks_no_machine(monkeypatch):
    monkeypatch.setattr(search_module, "machine_speed", None)
    X, y = table(60)
    settings = replace(SearchSettings(), budget=BudgetSettings(few_rows_start=0.5))
    assert search(task_for(3, budget=None, settings=settings), ArraySource(X, y)).results
    with pytest.raises(TypeError):
        search(task_for(3, budget=1.0), ArraySource(X, y))


def test_a_faster_machine_tries_more_in_the_same_time(monkeypatch):
    X, y = table(200)
    tried = []
    for speed in (0.5, 0.5, 2.0):
        monkeypatch.setattr(search_module, "machine_speed", lambda settings, s=speed: s)
        results = search(task_for(3, budget=1.0), ArraySource(X, y)).results
        tried.append([line["n_basis"] for line in results])
    assert tried[0] == tried[1]
    assert len(tried[2]) > 1.5 * len(tried[0])


@pytest.mark.parametrize("n", [150, 3000, 30_000])
@pytest.mark.parametrize("threads", [1, 2])
def test_what_is_planned_keeps_to_a_budget_that_was_given(n, threads, monkeypatch):
    """All fits of a search, by the steps that they may take, cost no more than the promise."""
    monkeypatch.setattr(search_module, "machine_speed", lambda settings: 1.0)
    planned = []

    def counted(config, candidate, rows, settings, **how):
        model = SearchSettings().measured
        planned.append(cost(candidate, Width(3), rows.n_rows, model, how["max_steps"]))
        return fit_candidate(config, candidate, rows, settings, **how)

    for module in (trials_module, members_module, noise_module):
        monkeypatch.setattr(module, "fit_candidate", counted)
    X, y = table(n)
    search(task_for(3, budget=2.0, threads=threads), ArraySource(X, y))
    assert 0.3 * 2.0 * threads < sum(planned) < 1.5 * 2.0 * threads


def test_a_budget_that_pays_for_nothing_says_what_would():
    X, y = table(200_000)
    settings = SearchSettings(
        budget=BudgetSettings(unnoticed=0.01), measured=CostSettings(rate=1e8)
    )
    with pytest.warns(TimeBudgetWarning, match=r"time_budget=0.1 s is too little for 200000 rows"):
        search(task_for(3, budget=0.1, settings=settings), ArraySource(X, y))


@pytest.mark.parametrize("n", [300, 4000])
def test_a_request_keeps_what_there_is(n):
    """It comes after some trials: no final fit begins, and trials stand in for members."""
    X, y = table(n)
    request, told = Request(), []

    def report(text):
        told.append(text)
        if len(told) == 12:
            request.make()

    task = task_for(3, budget=20.0, report=report, stop=Stop(request=request))
    found = search(task, ArraySource(X, y))
    assert re.fullmatch(
        r"an interrupt ended the search: \d+ candidates were tried, 0 of \d+ members fitted to "
        r"all rows",
        found.cut,
    )
    assert np.sum([line["weight"] for line in found.results]) == pytest.approx(1.0)
    new, target = table(500, seed=1)
    assert np.mean((found.ensemble.mean(new) - target) ** 2) < 0.5 * np.var(target)
    assert not any(text.startswith("member") for text in told)
    request.close()


def test_a_request_while_processes_fit_leaves_a_model(monkeypatch):
    """What they have fitted stays there, so that the best members are fitted after all."""
    X, y = table(300)
    request, told = Request(), []

    def report(text):
        told.append(text)
        if len(told) == 20:
            request.make()

    task = task_for(3, budget=40.0, threads=2, report=report, stop=Stop(request=request))
    found = search(task, ArraySource(X, y))
    assert "an interrupt ended the search" in found.cut
    assert any(text.startswith("member") for text in told)
    new, target = table(500, seed=1)
    assert np.mean((found.ensemble.mean(new) - target) ** 2) < 0.5 * np.var(target)
    request.close()


def test_a_limit_that_is_over_leaves_a_constant():
    X, y = table(300)
    found = search(task_for(3, stop=Stop(monotonic() - 1.0)), ArraySource(X, y))
    assert found.cut == (
        "time_limit ended the search: 0 candidates were tried, and the model is a constant"
    )
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
    machines = rotated.machines_ + straight.machines_
    both = with_ensemble(rotated, machines=machines, weights=np.array([0.5, 0.5]))
    np.testing.assert_array_equal(both.extrapolated(grid), beyond)


def test_a_choice_checks_itself():
    X, y = table(400)
    model = auto().fit(X, y)
    assert not model.check_.contradicted
    assert model.check_.n_rows >= 350
    assert TNKMRegressor(rank=1, n_basis=3, tol=1.0).fit(X, y).check_ is None


def test_repeated_rows_whole_weights_and_the_order_of_columns_change_nothing():
    rng = np.random.default_rng(2)
    X = np.column_stack([rng.uniform(size=70), rng.exponential(size=70), rng.normal(size=70) ** 3])
    y = np.sin(4 * X[:, 0]) + X[:, 0] * X[:, 1] + 0.1 * rng.standard_normal(70)
    weight = rng.integers(1, 4, 70)
    new = np.column_stack([rng.uniform(size=50), rng.exponential(size=50), rng.normal(size=50)])

    def said(X, y, weight=None, new=new):
        model = TNKMRegressor(time_budget=1, random_state=0, n_jobs=1).fit(X, y, weight)
        dist = model.predict_dist(new)
        return dist.mean, dist.std

    weighted = said(X, y, weight)
    again = np.repeat(np.arange(70), weight)
    np.testing.assert_array_equal(weighted, said(X[again], y[again]))
    plain, order = said(X, y), [2, 0, 1]
    reordered = said(X[:, order], y, new=new[:, order])
    np.testing.assert_allclose(reordered, plain, rtol=1e-6, atol=1e-6)


def test_a_search_gives_the_same_bits_by_processes_and_threads(monkeypatch):
    made = []
    monkeypatch.setattr(
        search_module, "Workers", lambda *how: made.append(Workers(*how)) or made[-1]
    )
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (230, 3))
    y = np.sin(3 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(230)
    # processes that cost nothing to start, so that a second is enough for some candidates
    settings = SearchSettings(few=FewRowsSettings(processes_budget=0.5))
    settings = replace(settings, measured=replace(settings.measured, process_overhead=0.0))
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

    judge = None

    def search(self):
        self.chosen.append(self.name)
        return Found(Ensemble((), np.zeros(0)))
