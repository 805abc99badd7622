"""A fixed rank on a handful of rows: intervals hold, and from 50 rows nothing changes."""

import numpy as np
import pytest

from tensorlace import TNKMRegressor
from tensorlace.laplace.precision import Evidence


def draw(seed, n):
    """Sine, line or wave in one to three columns, with noise of 0.1."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n + 50, 1 + seed // 3 % 3))
    other = np.cos(3.0 * X[:, -1]) if X.shape[1] > 1 else 1.0
    f = [np.sin(3.0 * X[:, 0]), X.sum(axis=1), np.sin(6.0 * X[:, 0]) * other][seed % 3]
    return X, f + 0.1 * rng.standard_normal(n + 50)


def model(**settings):
    return TNKMRegressor(**{"rank": 2, "random_state": 0, "n_jobs": 1, **settings})


def said(fitted, X):
    d = fitted.predict_dist(X)
    return np.stack([d.mean, d.std])


@pytest.mark.parametrize("n", [3, 6, 12])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_intervals_hold(n):
    held, worst = [], []
    for seed in range(36):
        X, y = draw(seed, n)
        fitted = model().fit(X[:n], y[:n])
        low, high = fitted.predict_interval(X[n:], 0.95)
        mean, std = said(fitted, X[n:])
        held.append(np.mean((low <= y[n:]) & (y[n:] <= high)))
        worst.append(np.max(np.abs(y[n:] - mean) / std))
    assert 0.9 < np.mean(held) < 0.985
    assert max(worst) < 30.0


@pytest.fixture
def without(monkeypatch):
    """Fits as if rows were never too few."""

    def fit(X, y, **settings):
        with monkeypatch.context() as patch:
            patch.setattr(Evidence, "doubting", lambda self: self)
            return model(**settings).fit(X, y)

    return fit


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_from_fifty_rows_no_bit_changes(without):
    X, y = draw(4, 50)
    for n, same in ((50, True), (49, False)):
        a, b = (fit(X[:n], y[:n]) for fit in (model().fit, without))
        assert np.array_equal(said(a, X), said(b, X)) == same
        assert a.noise_.trivial == same


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_just_below_fifty_rows_hardly_anything_does(without):
    X, y = draw(4, 50)
    a, b = (fit(X[:49], y[:49]) for fit in (model().fit, without))
    np.testing.assert_allclose(said(a, X), said(b, X), rtol=0.01, atol=1e-3)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_paper_and_known_noise_stay_what_they_are(without):
    X, y = draw(4, 50)
    X, y, new = X[:12], y[:12], X[12:]
    for settings in (
        {"noise_precision": "vi"},
        {"noise_precision": 50.0, "prior_precision": 2.0},
    ):
        a, b = (
            fit(**settings)
            for fit in (lambda **s: model(**s).fit(X, y), lambda **s: without(X, y, **s))
        )
        assert a.noise_.trivial
        np.testing.assert_array_equal(said(a, new), said(b, new))
    paper = TNKMRegressor.paper(rank=2, n_basis=3, random_state=0).fit(X, y)
    assert paper.noise_.trivial


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_normal_noise_on_request():
    X, y = draw(1, 6)
    normal, student = (model(noise=n).fit(X[:6], y[:6]).noise_ for n in ("gaussian", "auto"))
    assert normal.kind == "gaussian"
    assert student.kind == "student"
    assert normal.shrink == student.shrink > 1.0


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_repetitions_count_as_rows():
    X, y = draw(1, 10)
    X, y, new = X[:10], y[:10], X[10:]
    weighted = model().fit(X, y, sample_weight=np.full(10, 3))
    repeated = model().fit(np.repeat(X, 3, axis=0), np.repeat(y, 3))
    np.testing.assert_allclose(said(weighted, new), said(repeated, new), rtol=1e-6, atol=1e-6)
    assert weighted.noise_.shrink == repeated.noise_.shrink
