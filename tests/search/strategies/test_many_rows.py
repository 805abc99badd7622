"""Few large models: when fits go on, and widths of final members."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from tensorlace import MisspecificationWarning, TNKMRegressor, metrics
from tensorlace.estimators.messages import FAR, FAR_SHARE
from tensorlace.search import search
from tensorlace.search.strategies.many_rows import ManyRows
from tests.helpers.searching import auto


@pytest.fixture
def searched(monkeypatch):
    """Fit 3,000 rows with a given noise; the strategy, the model, and warnings of early ends."""

    def fit(noise):
        made = []

        def spy(*how):
            made.append(ManyRows(*how))
            return made[-1]

        monkeypatch.setattr(search, "ManyRows", spy)
        rng = np.random.default_rng(0)
        X = rng.uniform(-1, 1, (3000, 3))
        y = np.exp(X[:, 0] * X[:, 1]) * (1 + X[:, 2]) + noise * rng.standard_normal(3000)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConvergenceWarning)
            model = TNKMRegressor(time_budget=4.0, random_state=0, target_scale="identity")
            model.fit(X, y)
        (strategy,) = made
        return strategy.runner.tried, model, caught

    return fit


def test_fits_go_on_where_there_is_no_noise(searched):
    tried, model, caught = searched(0.0)
    longer = [t.score for t in tried if t.prolongations]
    assert max(longer) == max(t.score for t in tried)
    assert len({t.seed for t in tried}) == len(
        tried
    )  # a longer fit is listed in place of its start
    assert model.search_results_["held_out_log_score"].max() == max(longer)
    # there is always more to find; a budget that ends before that is told of, and only then
    rows = model.model_.reference_rows
    far = [m.fit.convergence.decrement > FAR for m in model.machines_]
    unfinished = float(model.model_.ensemble.shares(rows.X)[far].sum(axis=0) @ rows.weight)
    assert [w.category for w in caught] == [ConvergenceWarning] * (unfinished > FAR_SHARE)


def test_fits_end_where_there_is_noise(searched):
    tried, model, caught = searched(1.0)
    assert max(t.prolongations for t in tried) == 0
    assert not caught
    assert model.noise_.shrink == pytest.approx(1.0, abs=0.05)


def test_many_rows_are_covered_as_they_should_be():
    """Final members have seen more rows than those that the noise was chosen with."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (8000, 3))
    y = np.sin(9 * X[:, 0]) * np.cos(5 * X[:, 1]) + 0.02 * rng.standard_t(5, 8000)
    dist = auto(n_jobs=1).fit(X[:4000], y[:4000]).predict_dist(X[4000:])
    assert metrics.calibration_error(y[4000:], dist) < 0.04


def test_two_rows_over_and_over():
    """One of them is held out, again and again: nothing can be chosen by it."""
    X, y = np.tile([[0.0], [1.0]], (1000, 1)), np.tile([3.0, 5.0], 1000)
    with pytest.warns(MisspecificationWarning, match="of 1000 rows"):
        model = auto(n_jobs=1).fit(X, y)
    np.testing.assert_allclose(model.predict([[0.0], [1.0]]), [3.0, 5.0], atol=1.0)
