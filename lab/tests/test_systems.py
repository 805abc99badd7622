"""Every compared system keeps one contract, and reaches on real data what it is known to reach."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import train_test_split

from tensorlace import metrics
from tensorlace_lab import systems as baselines
from tensorlace_lab.systems import SYSTEMS
from tests.helpers.data import requires_data, uci

# less training than the neural ones would get: enough for a sine
QUICK = {
    "GWI-DNN": {"epochs": 200, "min_steps": 200},
    "FVI": {"epochs": 300, "min_steps": 300, "learning_rate": 0.03},
    "alpha=0.5": {"rates": (0.01,), "min_steps": 1000},
    "LA-BNN": {"n_hidden": 20, "n_rounds": 3, "min_steps": 500},
    "MF-BTN": {"sizes": ((3, 6),)},
    "SP-BTN": {"sizes": ((3, 6),)},
    "BTN-KM": {"max_rank": 3},
}
NEURAL = ("GWI-DNN", "FVI", "BBB", "alpha=0.5", "LA-BNN", "SP-BTN")
NOISE = 0.1


def system(name, **more):
    if name in NEURAL:
        pytest.importorskip("jax")
        pytest.importorskip("optax")
    return SYSTEMS[name](**more)


def sine(n, seed):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(-3, 3, n), np.full(n, 7.0)])  # a constant column as well
    return X, 50.0 + 3.0 * (np.sin(X[:, 0]) + NOISE * rng.standard_normal(n))


@pytest.mark.parametrize("name", SYSTEMS)
def test_contract(name):
    X, y = sine(80, 0)
    X_new, y_new = sine(200, 1)
    model = system(name, random_state=3, **QUICK.get(name, {}))
    with pytest.raises(NotFittedError):
        model.predict(X)
    twin = clone(model)
    assert twin.get_params() == model.get_params()
    assert model.fit(X, y) is model
    mean, std = model.predict(X_new, return_std=True)
    dist = model.predict_dist(X_new)
    assert mean.shape == std.shape == (200,)
    assert np.isfinite(mean).all()
    assert np.all((std > 0) & np.isfinite(std))
    assert np.array_equal(model.predict(X_new), mean)
    assert np.array_equal(dist.std, std)  # predicting twice draws the same
    again = twin.fit(X, y).predict(X_new, return_std=True)
    np.testing.assert_array_equal(again, (mean, std))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X_new), mean)
    # bands: the function is found, and the noise is neither denied nor doubled
    assert metrics.rmse(y_new, mean) < 1.5 * 3.0 * NOISE
    assert 0.85 <= metrics.coverage(y_new, dist) <= 1.0
    assert 0.7 < np.median(std) / (3.0 * NOISE) < 1.6
    with pytest.raises(ValueError, match="features"):
        model.predict(X_new[:, :1])


# shorter training than by default, for the sake of time
SHORT = {
    "GWI-DNN": {"epochs": 400, "min_steps": 400},
    "FVI": {"epochs": 400, "min_steps": 400},
    "alpha=0.5": {"rates": (0.005,), "min_steps": 1000},
    "LA-BNN": {"n_rounds": 3},
}
# name: data, worst NLL in standardised units on one split. "Measured" is with the default training
# and "published" in the same units; the bound leaves 0.2 to 0.5 for another platform's rounding,
# and more where the training is shorter.
REACHED = {
    "GWI-DNN": ("yacht", -1.0),  # published -2.43 (chosen on test rows), measured -1.82
    "FVI": ("yacht", -1.4),  # published -2.13, measured -1.86
    "BBB": ("yacht", -1.6),  # published -1.61, measured -2.31
    "alpha=0.5": ("yacht", -1.0),  # published -1.93, measured -1.97
    "Exact GP": ("yacht", -2.4),  # published -2.62, measured -2.92
    "LA-BNN": ("boston", 0.36),  # 0.34 with a fixed prior, measured 0.22 (published: 2.10)
    "MF-BTN": ("yacht", -0.3),  # 0.31 at rank 4 with 4 functions; measured -0.60 at 8 and 8
    "SP-BTN": ("yacht", -0.3),  # measured -0.59 at 8 and 8, 0.31 at 4 and 4 (published: 0.58)
    "T-KRR": ("yacht", -1.5),  # measured -1.94
    "QTNM": ("yacht", -0.9),  # measured -1.26
    "TN-GPR": ("yacht", -1.7),  # measured -2.23
    "BTN-KM": ("yacht", -1.0),  # measured -1.35
    "LA-TTKM": ("yacht", -0.5),  # measured -0.85
}


@requires_data
@pytest.mark.parametrize("name", SYSTEMS)
def test_figure_is_reached(name):
    data, worst = REACHED[name]
    X, X_test, y, y_test = train_test_split(*uci(data), test_size=0.1, random_state=1)
    model = system(name, random_state=1, **SHORT.get(name, {})).fit(X, y)
    assert metrics.nll(y_test, model.predict_dist(X_test)) - np.log(y.std()) < worst


def test_registry_is_in_the_order_of_the_table():
    table = ["GWI-DNN", "FVI", "BBB", "alpha=0.5", "Exact GP", "LA-BNN", "MF-BTN", "SP-BTN"]
    assert list(SYSTEMS) == [*table, "T-KRR", "QTNM", "TN-GPR", "BTN-KM", "LA-TTKM"]
    assert len(SYSTEMS) == 13
    assert set(dir(baselines)) == {*baselines.__all__}
    with pytest.raises(KeyError):
        SYSTEMS["GP"]
    with pytest.raises(AttributeError, match="Transformer"):
        _ = baselines.Transformer


def test_jax_is_loaded_on_demand_and_its_precision_left_alone():
    pytest.importorskip("jax")
    code = """
import sys, tensorlace, tensorlace.baselines as b
b.ExactGP, b.TKRR, b.QTNM, b.TNGPR, b.BTNKM, b.MeanFieldBTN
assert "jax" not in sys.modules
b.LaplaceBNN
import jax
assert not jax.config.jax_enable_x64
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_missing_extra_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorlace.baselines.fvi", None)
    with pytest.raises(ImportError, match=r"FVI needs .*tensorlace\[baselines\]"):
        _ = baselines.FVI
