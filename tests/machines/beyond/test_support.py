"""Predictions beyond what training rows support."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from tensorlace import TNKMRegressor, load, save
from tensorlace.machines.beyond.support import Support, largest_left_out, range_roots, wiener
from tensorlace.machines.portable_machine import portable_moments
from tests.helpers.portable import by_numpy, by_onnx, graph_of_columns

FUNCTIONS = {
    "sine": lambda x: np.sin(2 * np.pi * x),
    "exponential": np.exp,
    "square": lambda x: x * x,
    "reciprocal": lambda x: 1 / (1 + x),
    "kink": lambda x: np.abs(x - 0.5),
    "root": np.sqrt,
    "line": lambda x: 2 * x,
    "cosine": lambda x: np.cos(3 * x),
    "logarithm": lambda x: np.log(0.1 + x),
}


def table(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    return X, X[:, 0] * np.sin(2 * X[:, 1]) + 0.1 * rng.standard_normal(n)


@pytest.fixture(scope="module")
def model():
    X, y = table()
    return TNKMRegressor(rank=3, additive=True, random_state=0).fit(X, y)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_beyond_the_range_are_within_five_standard_deviations(name):
    """A column on [0, 1], asked at 1.1, 1.5, 2 and 3."""
    f, rng = FUNCTIONS[name], np.random.default_rng(1)
    x, far = rng.uniform(0, 1, 200), np.array([1.1, 1.5, 2.0, 3.0])
    y = f(x)
    y = y + 0.02 * y.std() * rng.standard_normal(200)
    cautious, plain = (
        TNKMRegressor(rank=4, random_state=0, extrapolation=how).fit(x[:, None], y)
        for how in ("cautious", "plain")
    )
    dist = cautious.predict_dist(far[:, None])
    assert np.all(np.abs(f(far) - dist.mean) < 5.0 * dist.std)
    assert np.all(np.diff(dist.std) > 0.0)
    inside = rng.uniform(0, 1, (50, 1))
    np.testing.assert_allclose(*(m.predict(inside) for m in (cautious, plain)), rtol=1e-12)
    stds = [m.predict_dist(inside).std for m in (cautious, plain)]
    np.testing.assert_allclose(*stds, rtol=0.02)


def test_mean_and_variance_are_held():
    support = Support.around(-2.0, 1.0, 0.5)
    assert support == Support(-3.5, 2.5, 0.5)
    rng = np.random.default_rng(0)
    mean, variance = 3.0 * rng.standard_normal(200), rng.uniform(0.0, 2.0, 200)
    held, wider = support.held(mean, variance)
    for m, v, h, w in zip(mean, variance, held, wider, strict=True):
        assert h == min(max(m, -3.5), 2.5)
        own = v if v <= 0.25 else v * v / 0.25
        assert w == pytest.approx(own + (m - h) ** 2, rel=1e-14)


def test_a_row_left_out_of_a_line():
    """Closed form: the epistemic variance of a row after a fit without it, largest over rows."""
    rng = np.random.default_rng(3)
    A = rng.standard_normal((30, 4))
    beta, prior = 4.0, 0.3
    inside = np.linalg.inv(beta * A.T @ A + prior * np.eye(4))
    e = np.sqrt(np.einsum("ni,ij,nj->n", A, inside, A))
    out = []
    for k in range(30):
        B = np.delete(A, k, axis=0)
        out.append(A[k] @ np.linalg.inv(beta * B.T @ B + prior * np.eye(4)) @ A[k])
    assert largest_left_out(e, beta**-0.5) == pytest.approx(np.sqrt(max(out)), rel=1e-12)


def test_growth_beyond_a_range_is_that_of_the_response_over_it(model):
    """By brute force: the response on a grid of the column, other columns as in the row."""
    (machine,) = model.machines_
    row = np.array([[0.3, -0.2, 0.5]])
    columns, network = machine.columns, machine.fit.network
    column = columns.columns[1]
    low, high = column.warp.frame.low, column.warp.frame.high
    phi = [np.repeat(p, 65, axis=1) for p in columns.features(columns.variables(row))]
    phi[1] = column.phi(column.values_over(65))
    spread = np.var(network.response(phi))
    z = network.column_environments(list(columns.features(columns.variables(row))))[1]
    root = range_roots(network, columns)[1]
    C = root @ root.T
    assert np.sum((C @ z) * z) == pytest.approx(spread, rel=1e-10)
    # half a range above: a slope and an integrated Wiener process
    far = row.copy()
    far[0, 1] = high + 0.5 * (high - low)
    bare = replace(machine, support=None).linearized(far).epistemic_std / machine.target.scale
    found = machine.linearized(far).epistemic_std / machine.target.scale
    widened = bare**2 * max((bare[0] / machine.support.largest) ** 2, 1.0)
    z = network.column_environments(list(columns.features(columns.variables(far))))[1]
    expected = widened + 2.0 * np.sum((C @ z) * z)
    assert found**2 == pytest.approx(expected, rel=1e-10)
    assert wiener(np.array([1.0])) ** 2 == pytest.approx(2.0)


def test_the_mean_stays_near_the_targets(model):
    _, y = table()
    far = 50.0 * np.random.default_rng(0).standard_normal((200, 3))
    polynomials = TNKMRegressor(rank=2, basis="legendre", warp="standardise", random_state=0)
    polynomials.fit(*table())
    margin = 0.5 * np.ptp(y)
    for m in (model, polynomials):
        mean = m.predict(far)
        assert mean.min() >= y.min() - margin - 1e-12
        assert mean.max() <= y.max() + margin + 1e-12
        np.testing.assert_allclose(mean, m.predict_dist(far).mean, rtol=1e-14, atol=1e-15)


def test_draws_follow_the_distribution(model):
    far = np.array([[0.0, 0.0, 0.0], [1.4, 0.2, 0.0], [1.5, -1.5, 0.3]])
    dist = model.predict_dist(far)
    draws = model.sample_y(far, 40_000, random_state=1)
    np.testing.assert_allclose(draws.mean(axis=1), dist.mean, atol=0.02 * dist.std.max())
    np.testing.assert_allclose(draws.std(axis=1), dist.std, rtol=0.02)


def one_moment(machine, which, g, *x):
    return portable_moments(g, machine, x)[which]


def test_the_graph_says_the_same(model):
    rng = np.random.default_rng(5)
    X = 2.5 * rng.standard_normal((300, 3))
    (machine,) = model.machines_
    dist, scale = machine.linearized(X), machine.target.scale
    expected = (dist.mean - machine.target.location) / scale, (dist.epistemic_std / scale) ** 2
    for which, wanted in enumerate(expected):
        graph = graph_of_columns(partial(one_moment, machine, which), 3)
        for found in (by_numpy(graph, X.T), by_onnx(graph, X.T)):
            np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-13)


def test_a_saved_model_says_the_same(model, tmp_path):
    save(model, tmp_path / "m.tlace")
    again = load(tmp_path / "m.tlace")
    assert again.machines_[0].support == model.machines_[0].support
    X = 2.5 * np.random.default_rng(5).standard_normal((50, 3))
    np.testing.assert_array_equal(model.predict_dist(X).std, again.predict_dist(X).std)
