"""Whitened columns: the matrix, directions without variance, and fits that use them."""

import numpy as np

from tensorlace import TNKMRegressor
from tensorlace.columns.rotation import Rotation, Scatter
from tensorlace.sources import Chunk
from tests.helpers.oracles import error


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
