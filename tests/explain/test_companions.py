"""Columns that follow others, against ranks by SciPy and the conditional normal distribution."""

import numpy as np
import pytest
from scipy.stats import norm, rankdata

from tensorlace.explain.companions import Companions, Scores
from tensorlace.sources.reference_rows import ReferenceRows

RNG = np.random.default_rng(3)
N = 3000


def even(X):
    return ReferenceRows(X, np.full(len(X), 1.0 / len(X)))


def path(found, source, target, order):
    return found.paths(source, target, np.tile(order, (len(source), 1)))


def normal(rho, n=N):
    z = RNG.standard_normal((n, 3))
    return np.column_stack([z[:, 0], rho * z[:, 0] + np.sqrt(1 - rho**2) * z[:, 1], z[:, 2]])


def test_scores_are_normal_quantiles_of_middle_ranks():
    x = RNG.integers(0, 9, 50).astype(float)
    scores = Scores.of(x, np.full(50, 0.02))
    np.testing.assert_allclose(
        scores(x), norm.ppf((rankdata(x) - 0.5) / 50), rtol=1e-12, atol=1e-12
    )


def test_weights_count_as_repetitions():
    x, times = RNG.standard_normal(40), RNG.integers(1, 4, 40)
    once, often = (
        Scores.of(x, times / times.sum()),
        Scores.of(x.repeat(times), np.ones(times.sum())),
    )
    np.testing.assert_allclose(once.scores, often.scores, rtol=1e-12, atol=1e-12)


def test_columns_that_are_independent_do_not_move():
    X = normal(0.0)
    found = Companions.of(even(X), [True] * 3)
    assert len(set(found.group)) == 3
    (here, there) = path(found, X[:100], X[100:200], (1, 0, 2))
    assert np.array_equal(here, np.column_stack([X[:100, 0], X[100:200, 1], X[:100, 2]]))
    assert np.array_equal(there, np.column_stack([X[100:200, :2], X[:100, 2]]))


@pytest.mark.parametrize("rho", [0.8, -0.5])
def test_rows_between_two_keep_the_joint_distribution(rho):
    """Moved alone, the correlation of the two would be 0."""
    X = normal(rho)
    found = Companions.of(even(X), [True] * 3)
    assert found.group[0] == found.group[1] != found.group[2]
    source, target = X[: N // 2], X[N // 2 :]
    for order, place in (((0, 1, 2), 0), ((2, 1, 0), 1)):
        here = list(path(found, source, target, order))[place]
        lead = order[place]
        assert np.array_equal(here[:, lead], target[:, lead])
        assert np.corrcoef(here[:, 0], here[:, 1])[0, 1] == pytest.approx(rho, abs=0.05)
        np.testing.assert_allclose(here.std(axis=0), 1.0, atol=0.06)
        assert all(np.isin(here[:, d], X[:, d]).all() for d in range(3))


def test_the_way_follows_the_regression():
    """On normal scores, against the conditional normal distribution, up to the grid of values."""
    X = normal(0.7)
    found = Companions.of(even(X), [True] * 3)
    here = next(path(found, X[:200], X[200:400], (0, 1, 2)))
    expected = X[:200, 1] + 0.7 * (X[200:400, 0] - X[:200, 0])
    inner = np.abs(expected) < 2.0
    np.testing.assert_allclose(here[inner, 1], expected[inner], atol=0.2)


def test_values_are_those_with_the_nearest_scores():
    """By a search over all values of the column, for the first step of each path."""
    rho = np.array([[1.0, 0.7, -0.6], [0.7, 1.0, -0.4], [-0.6, -0.4, 1.0]])
    X = RNG.standard_normal((300, 3)) @ np.linalg.cholesky(rho).T
    X[:, 1] = np.round(X[:, 1])
    gap = np.full(300, np.nan)
    X = np.column_stack([X[:, 0], gap, X[:, 1], X[:, 2]])
    found = Companions.of(even(X), [True] * 4)
    a, b, C = X[:40], X[40:80], found.covariance
    here = next(found.paths(a, b, np.tile([0, 1, 2, 3], (40, 1))))
    for d in (2, 3):
        scale = found.scores[d]
        by = C[d, 0] / (1.001 * C[0, 0]) * (found.scores[0](b[:, 0]) - found.scores[0](a[:, 0]))
        wanted = scale(a[:, d]) + by
        nearest = np.argmin(np.abs(scale.scores - wanted[:, None]), axis=1)
        assert np.array_equal(here[:, d], scale.values[nearest])
    assert np.isnan(here[:, 1]).all()


def test_categories_are_put_in_order_by_other_columns():
    x = RNG.uniform(size=N)
    codes = np.array([2.0, 0.0, 3.0, 1.0])[(4 * x).astype(int)]  # in this order along x
    X = np.column_stack([x, codes, RNG.integers(0, 4, N)])
    found = Companions.of(even(X), [True, False, False])
    order = found.scores[1].values[np.argsort(found.scores[1].scores)].tolist()
    assert order in ([2.0, 0.0, 3.0, 1.0], [1.0, 3.0, 0.0, 2.0])
    assert found.group[0] == found.group[1] != found.group[2]
    here = next(path(found, X[:500], X[500:1000], (0, 1, 2)))
    fits = np.array([2.0, 0.0, 3.0, 1.0])[(4 * here[:, 0]).astype(int)] == here[:, 1]
    assert fits.mean() > 0.6  # a quarter if they did not follow


def test_missing_values_stay_until_it_is_their_turn():
    X = normal(0.9, 400)
    X[::4, 1] = np.nan
    X[:, 2] = np.nan
    found = Companions.of(even(X), [True] * 3)
    first, second = path(found, X[:200], X[200:], (0, 1, 2))
    assert np.array_equal(np.isnan(first[:, 1]), np.isnan(X[:200, 1]))
    assert np.array_equal(second[:, 1], X[200:, 1], equal_nan=True)


def test_faint_correlations_are_chance():
    X = np.random.default_rng(0).standard_normal((100, 8))  # |r| up to 0.3
    assert len(set(Companions.of(even(X), [True] * 8).group)) == 8
    codes = np.random.default_rng(1).integers(0, 20, (100, 1)).astype(float)
    found = Companions.of(even(np.hstack([X, codes])), [True] * 8 + [False])
    assert len(set(found.group)) == 9
