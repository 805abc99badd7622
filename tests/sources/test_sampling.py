"""Folds by what is in a row."""

import numpy as np

from tensorlace.sources.sampling import fold_numbers


def table(n=200, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)).round(1), rng.normal(size=n).round(1)


def test_folds_are_balanced_and_reproducible():
    X, y = table()
    folds = fold_numbers(X, y, 5)
    np.testing.assert_array_equal(folds, fold_numbers(X, y, 5))
    assert np.ptp(np.bincount(folds, minlength=5)) <= 1


def test_folds_know_neither_position_nor_units():
    X, y = table()
    folds = fold_numbers(X, y, 5)
    order = np.random.default_rng(1).permutation(len(y))
    np.testing.assert_array_equal(fold_numbers(X[order], y[order], 5), folds[order])
    np.testing.assert_array_equal(fold_numbers(3.0 * X + 7.0, 0.1 * y - 2.0, 5), folds)


def test_equal_rows_share_a_fold():
    X, y = table()
    times = np.random.default_rng(1).integers(1, 4, len(y))
    folds = fold_numbers(X.repeat(times, axis=0), y.repeat(times), 5)
    np.testing.assert_array_equal(folds, fold_numbers(X, y, 5).repeat(times))
    X[:3] = np.nan
    X[0], X[1] = X[1], X[0]
    y[:3] = 1.0
    assert len(set(fold_numbers(X, y, 5)[:3])) == 1
