"""The CPD network against dense tensors and complex steps."""

import numpy as np
import pytest

from tensorlace.networks.cpd import (
    balance,
    environments,
    factors,
    initialise,
    jacobian,
    predict,
)
from tensorlace.networks.network import design, from_vector, to_vector
from tests.helpers import oracles
from tests.helpers.oracles import error, problem

SHAPES = pytest.mark.parametrize(("D", "R"), [(1, 1), (1, 3), (2, 2), (3, 1), (3, 4), (4, 2)])
SEEDS = pytest.mark.parametrize("seed", range(5))


def penalties(cores, gamma):
    return np.array([np.sum(g * V * V, axis=1) for V, g in zip(cores, gamma, strict=True)])


@SHAPES
@SEEDS
def test_predict_is_the_dense_tensor_product(D, R, seed):
    p = problem(seed, D=D, R=R)
    assert error(predict(p.cores, p.phi), oracles.response(p.cores, p.phi)) < 1e-14


@SHAPES
@SEEDS
def test_the_response_is_linear_in_each_core(D, R, seed):
    p = problem(seed, D=D, R=R)
    f = oracles.response(p.cores, p.phi)
    Z = environments(factors(p.cores, p.phi))
    for d, V in enumerate(p.cores):
        assert error(design(Z[d], p.phi[d]).T @ to_vector([V]), f) < 1e-14


@SHAPES
@SEEDS
def test_jacobian_is_the_complex_step(D, R, seed):
    p = problem(seed, D=D, R=R)
    A = oracles.jacobian(p.cores, p.phi)
    assert error(jacobian(p.cores, p.phi).T, A) < 1e-14
    for d in range(D):
        at = oracles.positions(p.cores, (d,))
        assert error(jacobian(p.cores, p.phi, (d,)).T, A[:, at]) < 1e-14


@pytest.mark.parametrize("zeros", [(0,), (1,), (0, 2), (0, 1, 2)])
def test_zero_factors_need_no_division(zeros):
    p = problem(3, D=3, R=2)
    cores = [V.copy() for V in p.cores]
    for d in zeros:
        cores[d][1] = 0.0
    expected = oracles.environments(cores, p.phi)
    for actual, Z in zip(environments(factors(tuple(cores), p.phi)), expected, strict=True):
        assert error(actual, Z) < 1e-15
    assert error(jacobian(tuple(cores), p.phi).T, oracles.jacobian(cores, p.phi)) < 1e-14


def test_a_tiny_factor_keeps_its_neighbours_digits():
    F = [np.array([[1e-12, 0.0, 1e-300]]), np.array([[3.0, 5.0, 7.0]]), np.array([[2.0, 2.0, 2.0]])]
    expected = [[[6.0, 10.0, 14.0]], [[2e-12, 0.0, 2e-300]], [[3e-12, 0.0, 7e-300]]]
    np.testing.assert_allclose(environments(F), expected, rtol=4e-16, atol=0)


def test_arguments_are_left_alone():
    p = problem(0, D=4, weighted=True)
    before, phi = [V.copy() for V in p.cores], p.phi
    kept = [x.copy() for x in phi]
    predict(p.cores, phi), jacobian(p.cores, phi), balance(p.cores, p.gamma)
    assert all(map(np.array_equal, p.cores, before))
    assert all(map(np.array_equal, phi, kept))


@SHAPES
@SEEDS
@pytest.mark.parametrize("gamma", [1.0, None, 0.0])
def test_balance_equalises_and_keeps_the_response(D, R, seed, gamma):
    p = problem(seed, D=D, R=R, gamma=gamma)
    rng = np.random.default_rng(seed)
    cores = tuple(V * 10 ** rng.uniform(-4, 4, (R, 1)) for V in p.cores)
    balanced = balance(cores, p.gamma)
    # each rank-one term keeps its own response, so nothing cancels in the comparison
    for r in range(R):
        term = [V[r : r + 1] for V in cores]
        assert error(predict([V[r : r + 1] for V in balanced], p.phi), predict(term, p.phi)) < 1e-13
    weights = p.gamma if gamma != 0.0 else [np.ones_like(V) for V in cores]
    after = penalties(balanced, weights)
    assert error(after, np.broadcast_to(after[0], after.shape)) < 1e-13
    assert after.sum() <= penalties(cores, weights).sum() * (1 + 1e-15)


def test_balance_leaves_dead_terms_alone():
    p = problem(2, D=3, R=3)
    cores = [V.copy() for V in p.cores]
    cores[1][0] = 0.0
    balanced = balance(tuple(cores), p.gamma)
    for V, W in zip(cores, balanced, strict=True):
        np.testing.assert_array_equal(V[0], W[0])
        assert not np.array_equal(V[1:], W[1:])


def test_balance_again_changes_nothing():
    p = problem(5, D=4, R=3, gamma=None)
    once = balance(p.cores, p.gamma)
    for V, W in zip(once, balance(once, p.gamma), strict=True):
        assert error(W, V) < 1e-15


@pytest.mark.parametrize("scale", [1e-60, 1e60])
def test_balance_takes_any_scale(scale):
    p = problem(1, D=3, R=2)
    cores = (p.cores[0] * scale, p.cores[1], p.cores[2] / scale)
    balanced = balance(cores, p.gamma)
    assert error(predict(balanced, p.phi), predict(p.cores, p.phi)) < 1e-13
    after = penalties(balanced, p.gamma)
    assert error(after, np.broadcast_to(after[0], after.shape)) < 1e-13


def test_initialise_depends_on_its_generator_only():
    constants = [b.constant() for b in oracles.MIX[:4]]
    first = initialise(constants, 3, np.random.default_rng(7))
    np.random.default_rng(8).standard_normal(5)
    again = initialise(constants, 3, np.random.default_rng(7))
    other = initialise(constants, 3, np.random.default_rng(8))
    assert all(map(np.array_equal, first, again))
    assert not any(map(np.array_equal, first, other))
    assert [V.shape for V in first] == [(3, b.n) for b in oracles.MIX[:4]]


@pytest.mark.parametrize("rank", [1, 2, 16])
@pytest.mark.parametrize("D", [1, 3, 9])
def test_initialise_starts_near_the_constant_function(rank, D):
    constants = [oracles.MIX[d].constant() for d in range(D)]
    bare = initialise(constants, rank, np.random.default_rng(0), noise=0.0)
    for V, c in zip(bare, constants, strict=True):
        np.testing.assert_allclose(np.abs(V), rank ** (-1 / D) * np.tile(np.abs(c), (rank, 1)))
    many = initialise([np.ones(50)] * 4, 200, np.random.default_rng(0), noise=0.3)
    wiggle = np.concatenate([np.abs(V).ravel() * 200 ** (1 / 4) for V in many]) - 1.0
    assert abs(wiggle.std() * np.sqrt(50) / 0.3 - 1.0) < 4 / np.sqrt(2 * wiggle.size)
    signs = np.concatenate([np.sign(V.mean(axis=1)) for V in many])
    assert abs(signs.mean()) < 4 / np.sqrt(signs.size)


@SHAPES
def test_vector_round_trip(D, R):
    p = problem(0, D=D, R=R)
    v = to_vector(p.cores)
    np.testing.assert_array_equal(v, oracles.vec(p.cores))
    for V, W in zip(from_vector(v, p.cores), p.cores, strict=True):
        np.testing.assert_array_equal(V, W)
