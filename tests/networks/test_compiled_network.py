"""A whole network in C against NumPy: all kinds of columns, missing values, uneven blocks."""

import pickle
import shutil

import numpy as np
import pytest

from tensorlace import TNKMRegressor
from tensorlace.fitting.registry import ENGINES
from tensorlace.kinds import Categorical, Periodic
from tensorlace.networks.native.network import CompiledNetwork
from tests.helpers.oracles import error

pytestmark = [
    pytest.mark.skipif(
        not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="needs a C compiler"
    ),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
COMPILED = ENGINES["compiled"]
CASES = {
    "mixed": {},
    "quantile": {"warp": "quantile"},
    "minmax": {"warp": "minmax", "n_basis": 9},
    "one term": {"rank": 1},
    "seven terms": {"rank": 7, "n_basis": [1, 3, 12, 5]},
    "additive": {"additive": True},
    "rotated": {"rotate": True},
    "other bases": {"basis": ["cosine", "chebyshev", "bspline", "cosine"]},
    "kinds": {"columns": {1: Categorical(), 2: Periodic(1.5)}},
    "all weights": {"curvature": "ggn"},
    "blocks": {"curvature": "block"},
}


def table(n, seed=0, *, missing=False):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4)) * [1.0, 1e-3, 1.0, 1e5] + [0.0, 0.0, 40.0, 0.0]
    X[:, 1] = np.round(2e3 * X[:, 1]) / 2e3  # ties
    y = np.sin(X[:, 0]) + X[:, 0] * X[:, 3] / 1e5 + 0.1 * rng.standard_normal(n)
    if missing:
        X[rng.uniform(size=X.shape) < 0.1] = np.nan
    return X, y


def fitted(*, missing=False, **changed):
    model = TNKMRegressor(rank=4, n_basis=5, solver="als", curvature="last", max_sweeps=4)
    model.set_params(**{"random_state": 0, "n_jobs": 1, **changed})
    return model.fit(*table(400, missing=missing))


def in_c(machine):
    """The machine's network as compiled code has it."""
    return COMPILED.table_response(machine.columns, *machine.fit.network.products())


def both(model, X):
    """Predictions by NumPy and by C."""
    return (model.set_params(engine=e).predict(X, return_std=True) for e in ("numpy", "compiled"))


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_predictions_are_those_of_numpy(case, missing):
    model = fitted(missing=missing, **CASES[case])
    X, _ = table(333, seed=1, missing=missing)
    X[:5] *= 3  # beyond the range
    (mean, std), (quick, quick_std) = both(model, X)
    assert error(quick, mean) < 1e-12
    assert error(quick_std, std) < 1e-12
    mean = model.set_params(engine="numpy").predict(X)
    assert error(model.set_params(engine="compiled").predict(X), mean) < 1e-12


def test_the_compiled_way_is_taken():
    """What agrees because it fell back would prove nothing."""
    X, _ = table(100, seed=1)
    for case in ("mixed", "quantile", "minmax", "one term", "seven terms", "additive", "rotated"):
        machine = fitted(**CASES[case]).machines_[0]
        network = in_c(machine)
        f, Z, u = network.environment(X, 1)
        np.testing.assert_array_equal(network.response(X), f)
        assert Z.shape == (len(machine.fit.cores[0]), 100)
        assert error(u, machine.columns.variables(X)[1]) < 1e-15
    machine = fitted(**CASES["kinds"]).machines_[0]
    network = in_c(machine)
    assert network.environment(X, 1) is None
    assert network.response(X).shape == (100,)


def test_only_the_compiled_engine_takes_it(monkeypatch):
    model, (X, _) = fitted(), table(10, seed=1)
    calls = []
    monkeypatch.setattr(CompiledNetwork, "response", lambda self, X: calls.append(len(X)))
    expected = model.predict(X)
    assert not calls
    np.testing.assert_array_equal(model.set_params(engine="compiled").predict(X), expected)
    assert calls == [10]  # and what it cannot do is done by NumPy


def test_values_never_seen_are_left_to_numpy():
    model, (X, _) = fitted(), table(200, seed=1)
    X[::7, 2] = np.nan  # nothing was missing in training
    (mean, std), (quick, quick_std) = both(model, X)
    np.testing.assert_array_equal(quick, mean)
    np.testing.assert_array_equal(quick_std, std)


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 127, 200])
def test_no_bit_of_a_row_depends_on_its_neighbours(n):
    machine = fitted(additive=True).machines_[0]
    network = in_c(machine)
    X, _ = table(200, seed=1)
    f, Z, _ = network.environment(X, 2)
    part, part_Z, _ = network.environment(X[-n:], 2)
    np.testing.assert_array_equal(part, f[-n:])
    np.testing.assert_array_equal(part_Z, Z[:, -n:])
    np.testing.assert_array_equal(network.response(X[::-1][:, :])[::-1], f)


@pytest.mark.parametrize("n", [1, 63, 64, 65, 200])
def test_no_variance_depends_on_its_neighbours(n):
    machine = fitted(rank=7).machines_[0]
    network = in_c(machine)
    (part,), d = machine._core_variances, machine.fit.bayesian_cores[0]
    X, _ = table(200, seed=1)
    f, variance = network.variance(X, d, part.B, part.bound)
    np.testing.assert_array_equal(f, network.response(X))
    _, some = network.variance(X[-n:], d, part.B, part.bound)
    np.testing.assert_array_equal(some, variance[-n:])
    assert np.all(variance > 0)


def test_variances_that_cancelled_are_sums_of_squares(monkeypatch):
    """With a bound in the middle of all sizes half the rows are too small for it."""
    machine, (X, _) = fitted().machines_[0].without_support(), table(200, seed=1)
    network = in_c(machine)
    (part,), d = machine._core_variances, machine.fit.bayesian_cores[0]
    expected = machine.linearized(X).epistemic_std
    _, Z, _ = network.environment(X, d)
    share = (expected / machine.target.scale / np.abs(Z).sum(axis=0)) ** 2
    below, above = np.sort(share)[99:101]
    assert above > below * (1.0 + 1e-9)  # the bound is between two rows, and not one of them
    bound = float(np.sqrt(below * above))
    monkeypatch.setitem(part.__dict__, "bound", bound)
    lost = np.isnan(network.variance(X, d, part.B, part.bound)[1])
    np.testing.assert_array_equal(lost, share < bound)
    assert lost.sum() == 100
    assert error(machine.linearized(X, 1, COMPILED).epistemic_std, expected) < 1e-12


def test_threads_give_the_same_bits():
    model, (X, _) = fitted(engine="compiled"), table(9000, seed=1)
    one = model.predict(X, return_std=True)
    two = model.set_params(n_jobs=2).predict(X, return_std=True)
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)


def test_crowded_and_extreme_columns():
    """Knots that share a cell of the table, a constant column, units near the ends of floats."""
    rng = np.random.default_rng(0)
    crowd = np.append(1e-9 * rng.standard_normal(280), rng.standard_normal(20))
    X = np.column_stack([crowd, np.full(300, 3.0), 1e-307 * rng.uniform(size=300), crowd * 1e300])
    y = np.tanh(1e9 * crowd) + 0.1 * rng.standard_normal(300)
    model = TNKMRegressor(rank=3, n_basis=5, max_sweeps=4, curvature="last", random_state=0)
    (mean, std), (quick, quick_std) = both(model.fit(X, y), X)
    assert error(quick, mean) < 1e-12
    assert error(quick_std, std) < 1e-12


def test_pickles_do_not_carry_the_tables():
    model, (X, _) = fitted(engine="compiled"), table(10)
    before = len(pickle.dumps(model.machines_[0].columns))
    expected = model.predict(X)
    again = pickle.loads(pickle.dumps(model))
    assert len(pickle.dumps(model.machines_[0].columns)) == before
    np.testing.assert_array_equal(again.predict(X), expected)
