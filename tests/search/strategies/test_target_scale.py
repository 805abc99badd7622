"""The scale of the target that held-out rows speak for."""

import numpy as np
import pytest

from tensorlace import TNKMRegressor, metrics
from tensorlace.fitting.config import Config
from tensorlace.kinds import Numeric
from tensorlace.scales import IDENTITY
from tensorlace.scales.logit import Logit
from tensorlace.search.strategies.target_scale import with_scale
from tensorlace.search.task import Task
from tensorlace.sources import ArraySource

D = 3
RNG = np.random.default_rng(11)


def rows(n):
    X = RNG.uniform(-1, 1, (n, D))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2], RNG.standard_normal(n)


X, F, NOISE = rows(900)
WAGES = np.exp(2.0 + 0.8 * F + 0.4 * NOISE)
TARGETS = {
    "wages": WAGES,
    "heights": 20.0 + 3.0 * F + 0.7 * NOISE,
    "skewed by additive noise": 2.0 * np.exp(F) + 0.3 + RNG.exponential(0.3, 900),
    "wages, some of them 0": np.where(NOISE < -2, 0.0, WAGES),
    "gains and losses": WAGES - 3.0,
}


def found(y, **params):
    arguments = {**TNKMRegressor().get_params(), **params}
    task = Task(Config.of(arguments, D, (Numeric(),) * D), {}, 0, budget=params.get("time_budget"))
    return with_scale(task, ArraySource(X[: len(y)], y))


def test_log_odds_of_shares():
    shares = 1.0 / (1.0 + np.exp(2.0 - 1.5 * F - 0.5 * NOISE))
    assert found(shares)[1] == Logit()
    assert found(np.clip(0.5 + 0.1 * F + 0.05 * NOISE, 0.0, 1.0))[1] is IDENTITY


@pytest.mark.parametrize("n", [200, 900])
@pytest.mark.parametrize("name", TARGETS)
def test_the_logarithm_only_where_it_is_better(name, n):
    task, scale = found(TARGETS[name][:n])
    assert scale.name == ("log" if name == "wages" else "identity")
    assert task.budget is None


def test_a_budget_pays_for_it():
    task, scale = found(WAGES, time_budget=5.0)
    assert scale.name == "log"
    assert 4.5 <= task.budget < 5.0
    task, scale = found(WAGES, time_budget=0.05)
    assert scale is IDENTITY
    assert task.budget == 0.05


def test_few_rows_say_nothing():
    assert found(WAGES[:40])[1] is IDENTITY


@pytest.mark.filterwarnings("ignore::tensorlace.MisspecificationWarning")
def test_it_pays():
    params = {"time_budget": 4.0, "random_state": 0, "n_jobs": 1}
    train, test = slice(0, 500), slice(500, 900)
    auto = TNKMRegressor(**params).fit(X[train], WAGES[train])
    clipped = TNKMRegressor(**params, target_scale="clip").fit(X[train], WAGES[train])
    assert auto.model_.scale.name == "log"
    dists = [model.predict_dist(X[test]) for model in (auto, clipped)]
    crps = [metrics.crps(WAGES[test], dist) for dist in dists]
    nll = [metrics.nll(WAGES[test], dist) for dist in dists]
    assert crps[0] < crps[1]
    assert nll[0] < nll[1] - 0.1
    assert 0.9 < metrics.coverage(WAGES[test], dists[0]) < 0.99
    assert auto.check_.log_score == pytest.approx(-nll[0], abs=0.3)  # of y, not of its logarithm
