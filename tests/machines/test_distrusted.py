"""Lists of distrusted rows: which are listed, in which order, and how they are added up."""

import numpy as np
import pytest

from tensorlace import TNKMRegressor
from tensorlace.likelihoods.student import DISTRUSTED, row_weights
from tensorlace.machines.distrusted import (
    MOST_LISTED,
    NONE_DISTRUSTED,
    DistrustedRows,
    Judge,
    distrusted_of,
)


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, 2))
    y = X[:, 0] + 0.1 * rng.standard_normal(200)
    y[[3, 50, 120]] += (40.0, -20.0, 90.0)
    model = TNKMRegressor(rank=1, noise="student", n_members=2, random_state=0).fit(X, y)
    return model, X, y


def test_rows_weights_and_order(fitted):
    model, X, y = fitted
    found = distrusted_of(Judge(model.fitted_model().ensemble), X, y)
    tau = np.zeros(200)
    for machine in model.machines_:
        z = (y - machine.mean(X)) / (machine.target.scale * machine.noise_std)
        tau += 0.5 * row_weights(z * z, machine.fit.degrees)
    assert found.row.tolist() == [120, 3, 50] == model.distrusted_["row"].tolist()
    assert set(np.flatnonzero(tau < DISTRUSTED)) == {3, 50, 120}
    np.testing.assert_allclose(found.weight, tau[found.row], rtol=1e-12)
    np.testing.assert_array_equal(found.y, y[found.row])
    np.testing.assert_allclose(found.prediction, model.predict(X)[found.row], rtol=1e-12)


def test_parts_add_up(fitted):
    model, X, y = fitted
    ensemble = model.fitted_model().ensemble
    whole = distrusted_of(Judge(ensemble), X, y)
    parts = distrusted_of(Judge(ensemble), X[:60], y[:60]) + distrusted_of(
        Judge(ensemble), X[60:], y[60:], None, 60
    )
    for a, b in zip(whole.table().values(), parts.table().values(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    weight = np.ones(200)
    weight[3] = 0.0
    assert distrusted_of(Judge(ensemble), X, y, weight).row.tolist() == [120, 50]


def test_all_are_counted_and_some_listed():
    n = MOST_LISTED - 50
    weight = np.random.default_rng(0).uniform(size=2 * n)
    numbers = np.arange(n)
    a = DistrustedRows(n, numbers, np.zeros(n), np.zeros(n), weight[:n])
    b = DistrustedRows(n, numbers + n, np.ones(n), np.zeros(n), weight[n:])
    both = a + b
    assert both.n_rows == 2 * n
    assert len(both.row) == MOST_LISTED
    assert both.row.tolist() == np.argsort(weight)[:MOST_LISTED].tolist()
    assert (NONE_DISTRUSTED + a).n_rows == n
    few = both.listed(3)
    assert (few.n_rows, len(few.y)) == (2 * n, 3)
    assert few.numbered(np.arange(2 * n) * 10).row.tolist() == (10 * few.row).tolist()


def test_a_normal_fit_distrusts_nobody(fitted):
    _, X, y = fitted
    model = TNKMRegressor(rank=1, noise="gaussian", random_state=0).fit(X, y)
    assert distrusted_of(Judge(model.fitted_model().ensemble), X, y).n_rows == 0
