"""Relevance against closed forms, and against all pairs of rows and all orders of columns."""

from dataclasses import replace
from itertools import combinations, permutations
from math import comb

import numpy as np
import pytest

from tensorlace import TNKMRegressor
from tensorlace.explain.companions import Companions
from tensorlace.explain.relevance import relevance_of, shapley_effects
from tensorlace.sources.reference_rows import ReferenceRows

RNG = np.random.default_rng(11)
N = 4000


def even(X):
    return ReferenceRows(X, np.full(len(X), 1.0 / len(X)))


def effects(f, rows, *, alone=False, seed=0, **options):
    faint = 2.0 if alone else 0.1
    companions = Companions.of(rows, [True] * rows.X.shape[1], faint)
    return shapley_effects(f, rows, companions, np.random.default_rng(seed), **options)


def test_parts_of_a_sum_are_their_variances():
    X = RNG.uniform(-1.0, 1.0, (N, 5))
    parts = np.column_stack([2.0 * X[:, 0], np.sin(3.0 * X[:, 1]), X[:, 2] ** 2, 0.1 * X[:, 3]])

    def f(x):
        return 2.0 * x[:, 0] + np.sin(3.0 * x[:, 1]) + x[:, 2] ** 2 + 0.1 * x[:, 3]

    found, total = effects(f, even(X)), f(X).var()
    assert found.sum() == pytest.approx(total, rel=1e-12)
    np.testing.assert_allclose(found[:4], parts.var(axis=0), atol=0.02 * total)
    assert found[4] == 0.0


def test_interactions_are_split():
    X = RNG.uniform(-1.0, 1.0, (N, 3))
    found = effects(lambda x: x[:, 0] * x[:, 1], even(X))
    np.testing.assert_allclose(found / found.sum(), [0.5, 0.5, 0.0], atol=0.02)
    three = effects(lambda x: x[:, 0] * x[:, 1] * x[:, 2], even(X))
    np.testing.assert_allclose(three / three.sum(), 1 / 3, atol=0.03)


@pytest.mark.parametrize("D", [2, 3, 4])
def test_all_pairs_and_all_orders(D):
    X, weight = RNG.standard_normal((9, D)), RNG.uniform(0.5, 2.0, 9)
    weight /= weight.sum()

    def f(x):
        return np.exp(0.5 * x[:, 0]) * x[:, 1] + np.abs(x).sum(axis=1)

    y = f(X)
    expected = np.zeros(D)
    for order in permutations(range(D)):
        for a in range(9):
            for b in range(9):
                here, last = X[a].copy(), y[a]
                for d in order:
                    here[d] = X[b, d]
                    now = np.clip(f(here[None])[0], y.min(), y.max())
                    expected[d] += 0.5 * weight[a] * weight[b] * (y[b] - y[a]) * (now - last)
                    last = now
    expected /= len(list(permutations(range(D))))
    variance = weight @ (y - weight @ y) ** 2
    assert expected.sum() == pytest.approx(variance, rel=1e-12)
    positive = np.maximum(expected, 0.0)
    found = effects(f, ReferenceRows(X, weight), alone=True, evaluations=1 << 18)
    assert found.sum() == pytest.approx(variance, rel=1e-12)
    expected = positive * variance / positive.sum()
    np.testing.assert_allclose(found, expected, atol=0.02 * variance)


def explained(cov, a, u):
    """Variance of ``a @ x`` that normal columns u explain."""
    u = list(u)
    c = cov[u] @ a
    return float(c @ np.linalg.solve(cov[np.ix_(u, u)], c)) if u else 0.0


def test_correlated_columns_share_as_in_the_closed_form():
    """Shapley effects of a linear function of normal columns (Owen & Prieur 2017)."""
    cov = np.array(
        [[1.0, 0.9, 0.3, 0.0], [0.9, 1.0, 0.4, 0.0], [0.3, 0.4, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]
    )
    a = np.array([3.0, -2.0, 1.0, 1.0])
    X = RNG.standard_normal((N, 4)) @ np.linalg.cholesky(cov).T
    expected = np.zeros(4)
    for d in range(4):
        others = [e for e in range(4) if e != d]
        for k in range(4):
            for u in combinations(others, k):
                gain = explained(cov, a, {*u, d}) - explained(cov, a, u)
                expected[d] += gain / comb(3, k) / 4
    found = effects(lambda x: x @ a, even(X))
    np.testing.assert_allclose(
        found / found.sum(), expected / expected.sum(), atol=0.035, err_msg=str(expected)
    )


def test_equal_columns_share_equally():
    x = RNG.standard_normal((N, 2))
    X = np.column_stack([x[:, 0], 1000.0 * x[:, 0], x[:, 1]])
    found = effects(lambda x: x[:, 0] + x[:, 2], even(X))
    np.testing.assert_allclose(found / found.sum(), [0.25, 0.25, 0.5], atol=0.02)


def test_the_order_of_columns_does_not_matter():
    X = RNG.standard_normal((N, 6)) @ (np.eye(6) + 0.4)
    a, order = np.array([1.0, 0.0, 2.0, -1.0, 0.5, 1.0]), np.array([3, 5, 0, 2, 4, 1])
    found = effects(lambda x: x @ a, even(X))
    other = effects(lambda x: x @ a[order], even(X[:, order]), seed=1)
    np.testing.assert_allclose(found[order] / found.sum(), other / other.sum(), atol=0.03)


def test_weights_count_as_repetitions():
    X, times = RNG.standard_normal((500, 3)), RNG.integers(1, 5, 500)

    def f(x):
        return x[:, 0] + x[:, 1] * x[:, 2]

    once = effects(f, ReferenceRows(X, times / times.sum()))
    often = effects(f, even(X.repeat(times, axis=0)))
    assert once.sum() == pytest.approx(often.sum(), rel=1e-12)
    np.testing.assert_allclose(once, often, atol=0.02 * once.sum())


def test_asked_no_more_often_than_said():
    asked = []

    def f(x):
        asked.append(len(x))
        return x @ np.arange(len(x.T))

    for D in (1, 2, 5, 300):
        asked.clear()
        found = effects(f, even(RNG.standard_normal((600, D))), evaluations=5000)
        assert sum(asked) <= 5600
        assert found.min() >= 0.0
        assert (found.sum() > 0.0) == (D > 1)  # of one column, the function is 0 everywhere


def fitted(X, y, **options):
    options = {"rank": 3, "n_basis": 6, "random_state": 0, "tol": 1e-2, **options}
    return TNKMRegressor(**options).fit(X, y)


def test_columns_that_say_the_same_do_not_exceed_the_whole():
    """Moved alone, a column of these two would account for many times the variance."""
    rng = np.random.default_rng(0)
    size = rng.uniform(0.0, 3.0, 300)
    X = np.column_stack([size, size + 0.01 * rng.standard_normal(300), rng.standard_normal(300)])
    y = size**2 + 0.3 * rng.standard_normal(300)
    model = fitted(X, y)
    share = model.relevance_
    explained = model.predict(X).var() / y.var()
    assert share.sum() == pytest.approx(min(explained, 1.0), rel=1e-9)
    assert share.min() >= 0.0
    assert share[2] < 0.05
    np.testing.assert_allclose(share[:2], 0.5, atol=0.06)


def test_predictions_that_vary_more_than_y_account_for_all_of_it():
    X = np.random.default_rng(0).uniform(-1, 1, (400, 2))
    model = fitted(X, X.sum(axis=1), rank=0, additive=True, basis="legendre", n_basis=2)
    model = replace(model.fitted_model(), rows=even(3.0 * X))
    share = relevance_of(model)
    assert share.sum() == pytest.approx(1.0, rel=1e-12)
    np.testing.assert_allclose(share, np.cov(X.T).sum(axis=0) / np.cov(X.T).sum(), atol=0.03)


def test_shares_of_old_files_that_exceed_the_whole_are_not_believed():
    X = np.random.default_rng(0).uniform(-1, 1, (60, 2))
    model = fitted(X, X[:, 0] + 0.1 * X[:, 1], rank=1).fitted_model()
    anew = relevance_of(model)
    old = model.with_relevance(np.array([3.0, 1.0]))
    assert np.array_equal(relevance_of(old), anew)
    assert relevance_of(replace(old, rows=None)).tolist() == [0.75, 0.25]
    known = model.with_relevance(anew)
    assert relevance_of(replace(known, rows=None)) is anew


TABLES = {
    "one row": RNG.standard_normal((1, 3)),
    "more columns than rows": RNG.standard_normal((8, 40)),
    "equal columns": np.repeat(RNG.standard_normal((50, 1)), 5, axis=1),
    "constant and missing": np.column_stack(
        [np.zeros(50), np.full(50, np.nan), np.where(np.arange(50) % 3, np.arange(50), np.nan)]
    ),
    "opposite": np.outer(RNG.standard_normal(50), [1.0, -1.0, 2.0]),
    "outlier": np.vstack([RNG.standard_normal((50, 3)), np.full(3, 1e12)]),
}


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("ordered", [True, False])
def test_any_table_has_parts_that_add_up(table, ordered):
    rows = even(TABLES[table])

    def f(x):
        return np.tanh(np.nan_to_num(x)) @ np.arange(1.0, len(x.T) + 1)

    companions = Companions.of(rows, [ordered] * rows.X.shape[1])
    found = shapley_effects(f, rows, companions, np.random.default_rng(0), evaluations=2000)
    assert np.all(found >= 0.0)
    assert found.sum() == pytest.approx(f(rows.X).var(), rel=1e-12)


def test_functions_of_any_size_and_rows_that_hardly_count():
    X = RNG.standard_normal((200, 2))
    found = [effects(lambda x, c=c: c * x[:, 0], even(X)) / c**2 for c in (1e-100, 1.0, 1e100)]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)
    np.testing.assert_allclose(found[2], found[1], rtol=1e-9)
    flat, weight = np.ones((50, 2)), np.ones(50)
    flat[0], weight[0] = 5.0, 1e-30
    rows = ReferenceRows(flat, weight / weight.sum())
    assert effects(lambda x: x[:, 0], rows).sum() == pytest.approx(16 * rows.weight[0], rel=1e-9)
