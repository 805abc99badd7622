"""The response as a linear function of weights: against predictive distributions, row by row."""

from dataclasses import replace

import numpy as np
import pytest

from tensorlace import TNKMRegressor
from tensorlace.kinds import Categorical
from tests.helpers.oracles import error

CASES = {
    "plain": {},
    "additive": {"additive": True},
    "rotated": {"rotate": True},
    "one core": {"curvature": "last"},
    "train": {"network": "tt"},
    "categories": {"columns": {1: Categorical()}},
}


def table(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, 3))
    X[:, 1] = rng.integers(0, 3, n)
    return X, np.sin(2.0 * X[:, 0]) + X[:, 0] * X[:, 1] + 0.2 * rng.standard_normal(n)


@pytest.fixture(scope="module", params=CASES)
def machine(request):
    model = TNKMRegressor(rank=2, n_basis=4, max_sweeps=40, tol=1.0, random_state=0)
    return model.set_params(**CASES[request.param]).fit(*table(150, 0)).machines_[0]


@pytest.fixture
def asked():
    """Rows like those of training, beyond their ranges, and with a category that none has."""
    X, _ = table(90, 1)
    X[:20, 0] *= 3.0
    X[10:30, 1] = 7.0
    return X


def tight(machine):
    """Support that most rows are beyond, in their means or their widths."""
    return replace(machine, support=replace(machine.support, low=-0.3, high=0.4, largest=0.05))


@pytest.mark.parametrize("held", ["bare", "supported", "tight"])
def test_each_row_has_its_predictive_moments(machine, asked, held):
    machine = {"bare": machine.without_support(), "tight": tight(machine)}.get(held, machine)
    response = machine.linear_response(asked)
    expected = machine.linearized(asked)
    assert error(machine.target.inverse(response.mean), expected.mean) < 1e-12
    std = machine.target.scale * np.sqrt(machine.variance(response))
    assert error(std, expected.epistemic_std) < 1e-10


def test_sums_are_those_of_joint_draws(machine, asked):
    machine, rng = tight(machine), np.random.default_rng(2)
    weights = rng.standard_normal((len(asked), 4))
    first, second = machine.linear_response(asked[:40]), machine.linear_response(asked[40:])
    whole = first.combined(weights[:40]) + second.combined(weights[40:])
    assert error(whole.mean, weights.T @ machine.linear_response(asked).mean) < 1e-12
    draws = weights.T @ machine.functions(asked, 20_000, rng, linearized=True)
    np.testing.assert_allclose(np.sqrt(machine.variance(whole)), draws.std(axis=1), rtol=0.03)
    less = whole - second.combined(weights[40:])
    assert error(less.gradient, first.gradient @ weights[:40]) < 1e-10
    both = first.joined([first, second])
    assert error(machine.variance(both.combined(weights)), machine.variance(whole)) < 1e-10
