"""Every compared system keeps one contract, and reaches on real data what it is known to reach."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import BayesianRidge
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from tensorlace import Normal, baselines, metrics
from tensorlace.errors import InputError
from tensorlace_lab import systems
from tensorlace_lab.measuring.data import standardised
from tensorlace_lab.measuring.scores import compared, scored
from tensorlace_lab.systems import PAPER, PEERS, SYSTEMS
from tensorlace_lab.systems.regressor import System
from tests.helpers.data import requires_data, uci

# of the libraries that the peers are from
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore:The argument 'eval_set' is deprecated"
)

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
NOISE = 0.1


def system(name, **more):
    """An instance; skips what needs a library that is not here."""
    try:
        return SYSTEMS[name](**more)
    except ModuleNotFoundError as error:
        pytest.skip(str(error))


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
    if name in PAPER:  # the function is found, and the noise is neither denied nor doubled
        assert metrics.rmse(y_new, mean) < 1.5 * 3.0 * NOISE
        assert 0.85 <= metrics.coverage(y_new, dist) <= 1.0
        assert 0.7 < np.median(std) / (3.0 * NOISE) < 1.6
    with pytest.raises(ValueError, match="features"):
        model.predict(X_new[:, :1])


def test_gaussian_process_is_scikit_learns():
    rng = np.random.default_rng(0)
    X, new = rng.uniform(4, 6, (60, 2)), np.full((3, 2), 5.5)
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(60)
    ours = system("scikit-learn GP", length_scale=3.0, noise=0.5, random_state=0).fit(X, y)
    scaler = StandardScaler().fit(X)
    kernel = ConstantKernel(1.0) * RBF([3.0, 3.0]) + WhiteKernel(0.5)
    theirs = GaussianProcessRegressor(kernel, normalize_y=True).fit(scaler.transform(X), y)
    found = theirs.predict(scaler.transform(new), return_std=True)
    np.testing.assert_allclose(ours.predict(new, return_std=True), found, rtol=1e-4)
    few = system("scikit-learn GP", hyper_rows=20, exact_rows=30, random_state=0).fit(X, y)
    assert few.model_.X_train_.shape == (30, 2)
    assert system("scikit-learn GP", hyper_rows=20).fit(X, y).model_.X_train_.shape == (60, 2)


def test_line_is_scikit_learns():
    X, y = sine(60, 0)
    found = BayesianRidge().fit(X, y).predict(X[:5] + 1.0, return_std=True)
    ours = system("BayesianRidge").fit(X, y).predict(X[:5] + 1.0, return_std=True)
    np.testing.assert_array_equal(ours, found)


def test_polynomial_process_knows_its_noise():
    x = np.linspace(-2, 2, 30)[:, None]
    y = x[:, 0] ** 3 + 0.5 * np.random.default_rng(0).standard_normal(30)
    known = system("polynomial GP", noise_std=0.5).fit(x, y).predict_dist(x)
    learnt = system("polynomial GP").fit(x, y).predict_dist(x)
    np.testing.assert_array_equal(known.aleatoric_std, 0.5)
    np.testing.assert_allclose(known.mean, learnt.mean, atol=0.15)
    np.testing.assert_allclose(known.std, learnt.std, rtol=0.4)


def test_boosted_quantiles_of_tables_as_they_are():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"x": rng.uniform(size=300), "kind": pd.Categorical(["a", "b", "c"] * 100)}
    )
    y = frame["kind"].cat.codes.to_numpy() + 0.1 * rng.standard_normal(300)
    frame.loc[:20, "x"] = np.nan
    how = {"levels": (0.1, 0.5, 0.9), "mean": True, "n_trees": "early stopping"}
    model = system("LightGBM quantiles", **how, random_state=0).fit(frame, y)
    found = model.quantiles(frame)
    assert found.shape == (300, 3)
    assert np.all(np.diff(found, axis=1) >= 0.0)
    assert np.corrcoef(model.point(frame), y)[0, 1] > 0.95
    np.testing.assert_allclose(model.predict(frame), found.mean(axis=1), rtol=1e-12)


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
@pytest.mark.parametrize("name", PAPER)
def test_figure_is_reached(name):
    data, worst = REACHED[name]
    X, X_test, y, y_test = train_test_split(*uci(data), test_size=0.1, random_state=1)
    model = system(name, random_state=1, **SHORT.get(name, {})).fit(X, y)
    assert metrics.nll(y_test, model.predict_dist(X_test)) - np.log(y.std()) < worst


def test_registry():
    table = ["GWI-DNN", "FVI", "BBB", "alpha=0.5", "Exact GP", "LA-BNN", "MF-BTN", "SP-BTN"]
    assert list(PAPER) == [*table, "T-KRR", "QTNM", "TN-GPR", "BTN-KM", "LA-TTKM"]
    assert (*PAPER, *PEERS) == tuple(SYSTEMS)
    assert set(dir(systems)) == {*systems.__all__}
    with pytest.raises(KeyError):
        SYSTEMS["GP"]
    with pytest.raises(AttributeError, match="Transformer"):
        _ = systems.Transformer


def test_a_system_of_ones_own_is_registered_in_one_line(monkeypatch):
    class Mean(System):
        """The mean of the training rows, and their deviation."""

        def __init__(self, random_state=None):
            self.random_state = random_state

        def fit(self, X, y):
            X, y = self._checked(X, y)
            self.moments_ = y.mean(), y.std()
            return self

        def predict_dist(self, X):
            mean, std = self.moments_
            return Normal(np.full(len(self._rows(X)), mean), 0.0, std)

    monkeypatch.setattr(SYSTEMS, "_others", {})
    SYSTEMS.register("mean", Mean)
    assert SYSTEMS["mean"] is Mean
    assert list(SYSTEMS)[-1] == "mean"
    assert len(SYSTEMS) == len(PAPER) + len(PEERS) + 1
    with pytest.raises(InputError, match="there is a system 'FVI' already"):
        SYSTEMS.register("FVI", Mean)
    X, y = sine(50, 0)
    split = standardised(X[:40], X[40:], y[:40], y[40:])
    found = scored(compared("mean"), split, 1)["metrics"]
    assert found["rmse"] == pytest.approx(np.sqrt(np.mean(split.y_test**2)))


def test_old_names_are_those_of_the_laboratory():
    from tensorlace.baselines import ExactGP

    assert ExactGP is systems.ExactGP
    assert baselines.SYSTEMS is SYSTEMS


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


@pytest.mark.parametrize(
    ("module", "name", "extra"),
    [("paper.fvi", "FVI", "neural"), ("peers.ngboost_normal", "NGBoost", "peers")],
)
def test_missing_extra_says_what_to_install(monkeypatch, module, name, extra):
    monkeypatch.setitem(sys.modules, f"tensorlace_lab.systems.{module}", None)
    with pytest.raises(ImportError, match=rf"{name} needs .*tensorlace-lab\[{extra}\]"):
        getattr(systems, name)
