"""TNKMRegressor is a plain scikit-learn regressor, and its parts fit together."""

import os
import pickle
import re
import subprocess
import sys
from importlib import import_module

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks

from tensorlace import CurvatureWarning, Mixture, Normal, TNKMRegressor
from tensorlace.fitting import config
from tensorlace.fitting import fit_network as inference
from tensorlace.machines import machine as machines
from tensorlace.networks import column_network
from tensorlace.networks import cpd as networks

FITTING = import_module("tensorlace.fitting.fit_machines")  # its function has the same name
NOISE = 0.1
KNOWN = {"noise_precision": 1.0 / NOISE**2, "prior_precision": 0.1, "tol": 1e-8}


def problem(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, size=(n, 2))
    return X, np.sin(X[:, 0]) * (1.0 + X[:, 1]) + NOISE * rng.standard_normal(n)


X, Y = problem()
NEW, NEW_Y = problem(60, seed=1)


def model(**settings):
    return TNKMRegressor(**{"rank": 2, "n_basis": 5, "random_state": 0, **settings})


@pytest.fixture(scope="module")
def fitted():
    return model().fit(X, Y)


@pytest.fixture(scope="module")
def members():
    return model(n_members=3).fit(X, Y)


# the contract ------------------------------------------------------------------------------------

WEIGHTS = "check_sample_weight_equivalence_on_dense_data"
not_converged = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def statuses(estimator):
    """Names of the checks by status."""
    found = {}
    for result in estimator_checks.check_estimator(estimator, on_fail=None, on_skip=None):
        assert not result["expected_to_fail"]
        found.setdefault(result["status"], []).append(result["check_name"])
    assert len(found["passed"]) > 50
    if not os.environ.get("SCIPY_ARRAY_API"):  # SciPy reads it once, when it is imported
        assert found.pop("skipped") == ["check_array_api_input"]
    return found


@not_converged
def test_every_check_of_scikit_learn_passes():
    assert set(statuses(TNKMRegressor(rank=4))) == {"passed"}


CHECKS = {
    *("check_dtype_object", "check_estimators_dtypes", "check_estimators_pickle"),
    *("check_fit2d_1feature", "check_fit2d_1sample"),
    *("check_fit_idempotent", "check_fit_score_takes_y", "check_methods_sample_order_invariance"),
    *("check_methods_subset_invariance", "check_n_features_in", "check_regressors_train"),
}
"""Those of scikit-learn's checks in which many fits could go wrong where one does not."""


@not_converged
@pytest.mark.filterwarnings("ignore::tensorlace.MisspecificationWarning")
def test_checks_of_scikit_learn_pass_for_the_choice(monkeypatch):
    choice = TNKMRegressor(time_budget=0.02, noise="gaussian")
    done = set()
    for estimator, check in estimator_checks.estimator_checks_generator(choice):
        name = getattr(check, "func", check).__name__
        if name in CHECKS:
            check(estimator)
            done.add(name)
    assert done == CHECKS
    # many fits, of which some hardly determine their weights: 1e-4 instead of 1e-7
    exact = estimator_checks.assert_allclose_dense_sparse
    monkeypatch.setattr(
        estimator_checks,
        "assert_allclose_dense_sparse",
        lambda a, b, err_msg: exact(a, b, rtol=1e-4, atol=1e-5, err_msg=err_msg),
    )
    getattr(estimator_checks, WEIGHTS)("TNKMRegressor", choice)


@not_converged
def test_every_check_passes_for_the_paper_but_the_last_digits_of_weights(monkeypatch):
    paper = TNKMRegressor.paper(5, 4, 1e-3)
    found = statuses(paper)
    failed = found.pop("failed", [])
    assert set(found) == {"passed"}
    assert set(failed) <= {WEIGHTS}
    # γ = 1e-5 amplifies rounding: the check holds to 1e-5 instead of 1e-7 (3.4e-7 was measured)
    exact = estimator_checks.assert_allclose_dense_sparse
    monkeypatch.setattr(
        estimator_checks,
        "assert_allclose_dense_sparse",
        lambda a, b, err_msg: exact(a, b, rtol=1e-5, atol=1e-7, err_msg=err_msg),
    )
    getattr(estimator_checks, WEIGHTS)("TNKMRegressor", paper)


@not_converged
@pytest.mark.parametrize(
    "name", ["check_param_validation", "check_dataframe_column_names_consistency"]
)
@pytest.mark.parametrize(
    "estimator",
    [TNKMRegressor(time_budget=0.02), TNKMRegressor.paper(4, 4, 1e-3)],
    ids=["choice", "paper"],
)
def test_checks_that_scikit_learn_keeps_for_itself(name, estimator):
    getattr(estimator_checks, name)("TNKMRegressor", estimator)


def test_paper():
    paper = TNKMRegressor.paper(16, 8, 1e-3, random_state=3)
    settings = {
        "rank": 16,
        "n_basis": 8,
        "basis": "unit_polynomial",
        "warp": "standardise",
        "solver": "als",
        "curvature": "last",
        "core": -1,
        "predictive": "linearized",
        "threshold": 1e-3,
        "relative_threshold": False,
        "noise_precision": "vi",
        "prior_precision": 1e-5,
        "prior_groups": "all",
        "random_state": 3,
    }
    assert {key: paper.get_params()[key] for key in settings} == settings
    assert TNKMRegressor.paper(2, 3, core=0).get_params()["core"] == 0


def test_clone():
    settings = {"n_basis": [3, 4], "basis": ["cosine", "bspline"], "threshold": 0.5}
    original = model(**settings)
    copy = clone(original)
    assert copy.get_params() == original.get_params()
    assert all(copy.get_params()[key] == value for key, value in settings.items())
    fitted = model(rank=1).fit(X, Y)
    with pytest.raises(NotFittedError):
        clone(fitted).predict(X)
    assert np.array_equal(clone(fitted).fit(X, Y).predict(NEW), fitted.predict(NEW))


@pytest.mark.parametrize(
    "method",
    [
        *("predict", "predict_dist", "predict_interval", "predict_quantiles"),
        *("sample_y", "extrapolated"),
    ],
)
def test_not_fitted(method):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(TNKMRegressor(), method)(X)


def test_grid_search():
    search = GridSearchCV(model(), {"n_basis": [1, 5], "rank": [1, 2]}, cv=3).fit(X, Y)
    assert search.best_params_["n_basis"] == 5
    assert search.score(NEW, NEW_Y) > 0.97


def test_cross_validation():
    scores = cross_val_score(model(), X, Y, cv=4)
    assert scores.shape == (4,)
    assert scores.min() > 0.95


def test_score_is_r_squared(fitted):
    assert fitted.score(NEW, NEW_Y) == r2_score(NEW_Y, fitted.predict(NEW))
    weight = np.linspace(0.0, 1.0, len(NEW_Y))
    expected = r2_score(NEW_Y, fitted.predict(NEW), sample_weight=weight)
    assert fitted.score(NEW, NEW_Y, weight) == expected


def test_pipeline_gives_standard_deviations():
    pipeline = make_pipeline(StandardScaler(), model())
    mean, std = pipeline.fit(X, Y).predict(NEW, return_std=True)
    scaler = StandardScaler().fit(X)
    alone = model().fit(scaler.transform(X), Y)
    alone_mean, alone_std = alone.predict(scaler.transform(NEW), return_std=True)
    assert np.array_equal(mean, alone_mean)
    assert np.array_equal(std, alone_std)
    pipeline.fit(X, Y, tnkmregressor__sample_weight=np.arange(len(Y)) % 3)
    assert not np.array_equal(pipeline.predict(NEW), mean)


@pytest.mark.parametrize("settings", [{}, {"n_members": 2}, {"predictive": "sampled"}])
def test_pickling_keeps_every_bit(settings):
    before = model(**settings).fit(X, Y)
    after = pickle.loads(pickle.dumps(before))
    assert np.array_equal(after.predict(NEW), before.predict(NEW))
    assert np.array_equal(after.predict_dist(NEW).std, before.predict_dist(NEW).std)
    assert np.array_equal(after.sample_y(NEW, 3), before.sample_y(NEW, 3))
    assert after.log_evidence_ == before.log_evidence_


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames(fitted, frame):
    table, new = (frame({"age": Z[:, 0], "dose": Z[:, 1]}) for Z in (X, NEW))
    target = table["age"] * 0 + Y  # a Series
    named = model().fit(table, target)
    assert list(named.feature_names_in_) == ["age", "dose"]
    assert [c.name for c in named.machines_[0].columns.columns] == ["age", "dose"]
    assert named.n_features_in_ == 2
    assert np.array_equal(named.predict(new), fitted.predict(NEW))
    assert isinstance(named.predict(new), np.ndarray)
    with pytest.raises(ValueError, match="feature names should match"):
        named.predict(new[["dose", "age"]])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        named.predict(NEW)


def test_other_containers(fitted):
    assert np.array_equal(model().fit(X.tolist(), Y.tolist()).predict(NEW), fitted.predict(NEW))
    assert np.array_equal(fitted.predict(np.asfortranarray(NEW)), fitted.predict(NEW))
    single, y = X.astype(np.float32), Y.astype(np.float32)
    assert np.array_equal(
        model().fit(single, y).predict(NEW),
        model().fit(single.astype(float), y.astype(float)).predict(NEW),
    )
    whole = np.round(10 * Y).astype(int)
    assert np.array_equal(
        model().fit(X, whole).predict(NEW), model().fit(X, whole.astype(float)).predict(NEW)
    )


def test_arguments_are_left_alone():
    before = X.copy(), Y.copy(), np.arange(len(Y)) % 2.0
    arguments = tuple(a.copy() for a in before)
    model().fit(*arguments).predict(arguments[0], return_std=True)
    for a, b in zip(arguments, before, strict=True):
        assert np.array_equal(a, b)


def test_fitting_again_forgets():
    twice = model().fit(problem(80, seed=5)[0][:, [0, 1, 0]], problem(80, seed=5)[1]).fit(X, Y)
    assert twice.n_features_in_ == 2
    assert np.array_equal(twice.predict(NEW), model().fit(X, Y).predict(NEW))


EXTRAS = ["pandas", "polars", "pyarrow", "matplotlib", "jax", "torch", "dask"]


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()


def test_importing_brings_no_extras():
    # scikit-learn itself imports pandas where it is installed: count what we add
    new = run(
        "import sys, sklearn.base; before = set(sys.modules); "
        "from tensorlace import TNKMRegressor; print(*(set(sys.modules) - before))"
    )
    assert "tensorlace.estimators" in new
    assert not {*EXTRAS} & {*new}


def test_the_core_starts_without_scikit_learn():
    new = run("import sys; from tensorlace.fitting import fit_machines; print(*sys.modules)")
    slow = {"sklearn", "joblib", "scipy.stats", "scipy.special", "scipy.interpolate", "pandas"}
    assert "scipy.linalg" in new
    assert not slow & {*new}


def test_every_public_name_is_there():
    import tensorlace

    for name in tensorlace.__all__:
        assert name in dir(tensorlace)
        getattr(tensorlace, name)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        tensorlace.Nothing  # noqa: B018


def test_extras_are_not_needed():
    predicted = run(
        f"""
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {EXTRAS}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
import numpy as np
from tensorlace import TNKMRegressor
x = np.arange(9.0)[:, None]
model = TNKMRegressor(rank=1, n_basis=3, basis="chebyshev").fit(x, 2 * x[:, 0])
mean, std = model.predict(x, return_std=True)
print(*mean, *({{*sys.modules}} & {{*{EXTRAS}}}))
"""
    )
    assert np.allclose(np.array(predicted, dtype=float), 2 * np.arange(9.0), atol=0.1)


# randomness and threads --------------------------------------------------------------------------


def test_random_state(fitted):
    again = model().fit(X, Y)
    assert np.array_equal(again.predict(NEW), fitted.predict(NEW))
    other = model(random_state=1).fit(X, Y)
    assert not np.array_equal(other.predict(NEW), fitted.predict(NEW))
    one, two = (model(random_state=np.random.RandomState(7)).fit(X, Y) for _ in range(2))
    assert np.array_equal(one.predict(NEW), two.predict(NEW))


@pytest.mark.parametrize("solver", ["als", "gauss_newton"])
def test_threads_change_no_bit(solver):
    Z, y = problem(9_000)  # three leaves of four blocks of 1024 rows
    settings = {"solver": solver, "max_sweeps": 12, "tol": 1.0, "n_members": 2}
    one, two = (model(n_jobs=n, **settings).fit(Z, y) for n in (1, 2))
    for a, b in zip(one.machines_, two.machines_, strict=True):
        assert a.fit.history == b.fit.history
        assert all(np.array_equal(V, W) for V, W in zip(a.fit.cores, b.fit.cores, strict=True))
    for a, b in zip(
        one.predict(NEW, return_std=True), two.predict(NEW, return_std=True), strict=True
    ):
        assert np.array_equal(a, b)


def test_members(members, fitted):
    dist = members.predict_dist(NEW)
    assert isinstance(dist, Mixture)
    assert isinstance(fitted.predict_dist(NEW), Normal)
    assert len(members.machines_) == 3
    assert dist.means.shape == (3, len(NEW))
    assert np.array_equal(dist.weights, np.full(3, 1 / 3))
    parts = [machine.linearized(NEW) for machine in members.machines_]
    assert np.array_equal(dist.means, [part.mean for part in parts])
    assert np.allclose(dist.mean, np.mean(dist.means, axis=0), rtol=1e-14)
    assert np.ptp(dist.means, axis=0).max() > 0  # the restarts differ
    # law of total variance
    variance = np.mean([p.std**2 for p in parts], axis=0) + np.var(dist.means, axis=0)
    assert np.allclose(dist.std**2, variance, rtol=1e-12)
    mean = np.mean([m.fit.log_evidence for m in members.machines_])
    assert members.log_evidence_ == pytest.approx(mean, rel=1e-14)
    assert np.allclose(members.predict(NEW), dist.mean, rtol=1e-13, atol=1e-13)


# predictions -------------------------------------------------------------------------------------


def test_predictions_know_how_sure_they_are(fitted):
    mean, std = fitted.predict(NEW, return_std=True)
    assert np.allclose(mean, fitted.predict(NEW), rtol=1e-13, atol=1e-13)
    dist = fitted.predict_dist(NEW)
    assert np.array_equal(mean, dist.mean)
    assert np.array_equal(std, dist.std)
    assert np.allclose(std, np.hypot(dist.epistemic_std, dist.aleatoric_std), rtol=1e-15)
    assert np.allclose(dist.aleatoric_std, fitted.noise_precision_**-0.5, rtol=1e-14)
    assert np.sqrt(1 / fitted.noise_precision_) == pytest.approx(NOISE, rel=0.2)
    z = (NEW_Y - mean) / std
    assert 0.8 < np.std(z) < 1.2
    assert np.isfinite(fitted.log_evidence_)
    assert fitted.n_iter_ == len(fitted.machines_[0].fit.history)
    assert fitted.n_dropped_ == 0


@pytest.mark.parametrize("kind", ["fitted", "members"])
def test_intervals_and_quantiles_come_from_one_distribution(kind, request):
    machine = request.getfixturevalue(kind)
    dist = machine.predict_dist(NEW)
    levels = [0.025, 0.05, 0.5, 0.95, 0.975]
    quantiles = machine.predict_quantiles(NEW, levels)
    assert quantiles.shape == (len(NEW), 5)
    assert np.all(np.diff(quantiles, axis=1) > 0)
    assert np.array_equal(quantiles, dist.quantile(levels))
    for column, level in zip(quantiles.T, levels, strict=True):
        assert np.allclose(dist.cdf(column), level, rtol=1e-10)
    lower, upper = machine.predict_interval(NEW)
    assert np.allclose([lower, upper], quantiles[:, [1, 3]].T, rtol=1e-12)
    lower, upper = machine.predict_interval(NEW, coverage=0.95)
    assert np.allclose([lower, upper], quantiles[:, [0, 4]].T, rtol=1e-12)
    assert 0.88 <= np.mean((lower < NEW_Y) & (upper > NEW_Y)) <= 1.0
    assert machine.predict_quantiles(NEW, 0.5).shape == (len(NEW),)
    assert machine.predict_quantiles(NEW).shape == (len(NEW), 3)


@pytest.mark.parametrize(
    "settings", [{}, {"n_members": 3}, {"curvature": "last"}, {"predictive": "sampled"}]
)
def test_draws_agree_with_the_distribution(settings):
    machine = model(**settings).fit(X, Y)
    n = 20_000
    draws = machine.sample_y(NEW, n, random_state=2)
    assert draws.shape == (len(NEW), n)
    # the linearised predictive; a sampled network adds what its Monte Carlo error adds
    dist = machine.predict_dist(NEW)
    few = 4.5 if machine.predictive == "linearized" else 4.5 * np.sqrt(n / machine.n_draws)
    assert np.all(np.abs(draws.mean(axis=1) - dist.mean) < few * dist.std / np.sqrt(n))
    assert np.all(np.abs(draws.std(axis=1) / dist.std - 1) < few / np.sqrt(2 * n))
    assert np.array_equal(machine.sample_y(NEW, 3, 5), machine.sample_y(NEW, 3, 5))
    assert not np.array_equal(machine.sample_y(NEW, 3, 5), machine.sample_y(NEW, 3, 6))
    assert machine.sample_y(NEW).shape == (len(NEW), 1)


def test_draws_are_joint(fitted):
    """Covariance over rows: that of the linearised weights, and noise of each row its own."""
    rows = np.concatenate([NEW[:5], NEW[:1]])  # a row twice: same function, other noise
    n = 40_000
    draws = fitted.sample_y(rows, n, random_state=0)
    (machine,) = fitted.machines_
    u = machine.columns.variables(rows)
    phi = [c.basis.phi(x) for c, x in zip(machine.columns.columns, u, strict=True)]
    G = machine.fit.network.jacobian(phi)
    covariance = G.T @ machine.fit.posterior.solve(G) + np.eye(6) / machine.fit.beta
    covariance *= machine.target.scale**2
    variance = np.diagonal(covariance)
    error = np.sqrt((np.outer(variance, variance) + covariance**2) / n)
    assert np.all(np.abs(np.cov(draws) - covariance) < 4.5 * error)
    assert covariance[0, 5] > 10 * error[0, 5]
    assert covariance[0, 5] == pytest.approx(variance[0] - 1 / fitted.noise_precision_)


def test_sampled_predictive():
    """One Bayesian core enters linearly: its draws are those of the closed form."""
    settings = {"curvature": "last", **KNOWN}
    machine = model(predictive="sampled", n_draws=2000, **settings).fit(X, Y)
    dist, exact = machine.predict_dist(NEW), model(**settings).fit(X, Y).predict_dist(NEW)
    assert isinstance(dist, Mixture)
    assert dist.means.shape == (2000, len(NEW))
    assert np.array_equal(machine.predict(NEW), dist.mean)
    assert np.array_equal(machine.predict_dist(NEW).means, dist.means)
    few = 4.5 / np.sqrt(2000)
    assert np.all(np.abs(dist.mean - exact.mean) < few * exact.epistemic_std)
    assert np.all(np.abs(dist.epistemic_std / exact.epistemic_std - 1) < few / np.sqrt(2))
    assert np.allclose(dist.aleatoric_std, exact.aleatoric_std, rtol=1e-13)


def test_mean_builds_no_jacobian(fitted, members, monkeypatch):
    calls = []

    def counted(name, function):
        return lambda *args, **kwargs: calls.append(name) or function(*args, **kwargs)

    for module, name in [
        (networks.CPD, "jacobian"),
        (column_network, "design"),
        (networks, "environments"),
    ]:
        monkeypatch.setattr(module, name, counted(name, getattr(module, name)))
    for machine in (fitted, members):
        machine.predict(NEW)
        machine.score(NEW, NEW_Y)
        assert calls == []
        machine.predict(NEW, return_std=True)
        assert set(calls) == {"jacobian", "design", "environments"}
        calls.clear()


def test_batches_do_not_show(fitted, monkeypatch):
    """Rows are predicted a batch at a time; a row's prediction is its own."""
    expected = fitted.predict(X, return_std=True)
    monkeypatch.setattr(machines, "_BATCH_NUMBERS", 1)  # 64 rows per batch
    for a, b in zip(fitted.predict(X, return_std=True), expected, strict=True):
        assert np.allclose(a, b, rtol=1e-13, atol=1e-13)
    assert np.allclose(fitted.predict(X), expected[0], rtol=1e-13, atol=1e-13)


def test_extrapolated(fitted):
    low, high = X.min(axis=0), X.max(axis=0)
    rows = np.array([low, high, (low + high) / 2, [low[0] - 1e-9, 0.0], [0.0, high[1] + 5.0]])
    assert fitted.extrapolated(rows).tolist() == [False, False, False, True, True]
    assert not fitted.extrapolated(X).any()
    polynomial = model(basis="chebyshev", warp="standardise", n_basis=4).fit(X, Y)
    far = np.column_stack([np.linspace(2.0, 8.0, 7), np.zeros(7)])
    assert np.all(np.diff(polynomial.predict_dist(far).std) > 0)  # less and less sure


# configurations ----------------------------------------------------------------------------------


@pytest.mark.parametrize("curvature", ["ggn", "last", "block", "diag", "full"])
def test_curvatures(curvature):
    three, new = (np.column_stack([Z, Z[:, 0] * Z[:, 1]]) for Z in (X, NEW))
    machine, ggn = (model(curvature=c, **KNOWN).fit(three, Y) for c in (curvature, "ggn"))
    dist, reference = machine.predict_dist(new), ggn.predict_dist(new)
    assert np.max(np.abs(dist.mean - reference.mean)) < 1e-6  # one MAP
    assert np.all(dist.epistemic_std > 0)
    assert np.max(dist.epistemic_std) < 5 * np.max(reference.epistemic_std)
    assert np.isfinite(machine.log_evidence_)
    assert machine.n_dropped_ == 0
    if curvature == "last":  # certain about the other cores
        assert np.all(dist.epistemic_std <= reference.epistemic_std * (1 + 1e-6))
    elif curvature != "ggn":
        assert np.max(np.abs(dist.epistemic_std / reference.epistemic_std - 1)) > 1e-3


def test_full_curvature_says_what_it_drops():
    # two columns, one prior precision: rotating the rank terms into each other changes nothing
    with pytest.warns(CurvatureWarning, match="has 1 directions without positive curvature"):
        machine = model(curvature="full", **KNOWN).fit(X, Y)
    assert machine.n_dropped_ == 1
    ggn = model(**KNOWN).fit(X, Y).predict_dist(NEW)
    assert np.allclose(machine.predict_dist(NEW).std, ggn.std, rtol=0.05)


def test_last_core():
    evidence = {c: model(curvature="last", core=c, **KNOWN).fit(X, Y).log_evidence_ for c in (0, 1)}
    chosen = model(curvature="last", **KNOWN).fit(X, Y)
    best = max(evidence, key=evidence.get)
    assert chosen.machines_[0].fit.bayesian_cores == (best,)
    assert chosen.log_evidence_ == evidence[best]
    assert model(curvature="last", core=-1, **KNOWN).fit(X, Y).log_evidence_ == evidence[1]


@pytest.mark.parametrize("basis", ["chebyshev", "legendre", "polynomial", "unit_polynomial"])
def test_polynomial_bases(basis):
    for warp in ("minmax", "standardise", "mixed", "quantile"):
        machine = model(basis=basis, warp=warp).fit(X, Y)
        assert machine.score(NEW, NEW_Y) > (0.95 if basis == "unit_polynomial" else 0.97), warp


@pytest.mark.parametrize("basis", ["cosine", "sine", "fourier", "bspline"])
def test_bases_on_an_interval(basis):
    for warp in ("minmax", "mixed", "quantile"):
        machine = model(basis=basis, warp=warp, n_basis=6).fit(X, Y)
        # a Fourier series is periodic and this function is not
        assert machine.score(NEW, NEW_Y) > (0.75 if basis == "fourier" else 0.97), warp


def test_indicator_basis_is_a_table_of_means():
    rng = np.random.default_rng(0)
    Z = rng.integers(0, 3, size=(300, 2)) * 10.0
    effect = np.array([[1.0, 5.0, -2.0], [0.0, 3.0, 3.0], [2.0, 2.0, 8.0]])
    y = effect[(Z[:, 0] / 10).astype(int), (Z[:, 1] / 10).astype(int)]
    y = y + NOISE * rng.standard_normal(300)
    machine = model(basis="indicator", rank=3, n_basis=99).fit(Z, y)
    assert machine.machines_[0].columns.sizes == (3, 3)
    cells = np.array([[10.0 * i, 10.0 * j] for i in range(3) for j in range(3)])
    mean = machine.predict(cells)
    means = [y[np.all(cell == Z, axis=1)].mean() for cell in cells]
    assert np.max(np.abs(mean - means)) < 0.05
    # a value never seen adds nothing, and is reported
    assert machine.extrapolated([[0.0, 7.0], [0.0, 10.0]]).tolist() == [True, False]
    assert machine.predict([[0.0, 7.0]]) == pytest.approx(y.mean())


def test_one_setting_per_column():
    Z = np.column_stack([X, np.arange(len(Y)) % 3])
    machine = model(
        n_basis=(5, 4, 1),
        basis=["cosine", "chebyshev", "indicator"],
        warp=("mixed", "standardise", "minmax"),
    ).fit(Z, Y)
    (fitted,) = machine.machines_
    assert fitted.columns.sizes == (5, 4, 3)
    assert [c.basis.name for c in fitted.columns.columns] == ["cosine", "chebyshev", "indicator"]
    warps = [type(c.warp).__name__ for c in fitted.columns.columns]
    assert warps == ["Mixed", "Standardise", "Codes"]
    assert machine.score(Z, Y) > 0.98
    by_array = model(n_basis=np.array([5, 4])).fit(X, Y)
    assert by_array.machines_[0].columns.sizes == (5, 4)


@pytest.mark.parametrize(
    ("groups", "distinct"),
    [("all", 1), ("column", 2), ("order", 5), ("column_order", 10), ("rank", 2)],
)
def test_prior_groups(groups, distinct, monkeypatch):
    monkeypatch.setattr(FITTING, "prune", lambda machine: machine)  # all groups, those off included
    monkeypatch.setattr(inference, "drop_surplus_terms", lambda run: run)
    machine = model(prior_groups=groups, max_sweeps=1000).fit(X, Y)
    gamma = machine.machines_[0].fit.gamma
    sets = {
        "all": [np.concatenate([g.ravel() for g in gamma])],
        "column": [g.ravel() for g in gamma],
        "order": [np.concatenate([g[:, i] for g in gamma]) for i in range(5)],
        "column_order": [g[:, i] for g in gamma for i in range(5)],
        "rank": [np.concatenate([g[r] for g in gamma]) for r in range(2)],
    }[groups]
    assert len(sets) == distinct
    assert all(np.ptp(values) == 0 for values in sets)
    # the product of the columns' scales is all that shows, so columns alone share one precision
    free = 1 if groups == "column" else distinct
    assert len({values[0] for values in sets}) == free
    assert machine.score(NEW, NEW_Y) > 0.97
    assert np.isfinite(machine.log_evidence_)


@pytest.mark.parametrize("noise", ["evidence", "vi", 100.0])
@pytest.mark.parametrize("prior", ["evidence", "vi", 0.1])
def test_precisions(noise, prior):
    machine = model(noise_precision=noise, prior_precision=prior).fit(X, Y)
    assert machine.noise_precision_ == pytest.approx(100.0, rel=0.35)
    assert machine.score(NEW, NEW_Y) > 0.98
    if noise == 100.0:
        assert machine.noise_precision_ == pytest.approx(100.0, rel=1e-14)
    gamma = machine.machines_[0].fit.gamma[0]
    assert np.all(gamma == 0.1) if prior == 0.1 else np.all(gamma != 1.0)


def test_flat_prior_is_legal_and_has_no_evidence():
    Z, y = problem(60)
    machine = model(rank=1, prior_precision=0.0, basis="chebyshev").fit(Z[:, :1], y)
    A = np.polynomial.chebyshev.chebvander(machine.machines_[0].columns.variables(Z[:, :1])[0], 4)
    coefficients, (rss,), *_ = np.linalg.lstsq(A, y, rcond=None)
    assert np.allclose(machine.predict(Z[:, :1]), A @ coefficients, rtol=1e-10, atol=1e-10)
    # unbiased noise variance, and the classical prediction error
    assert 1 / machine.noise_precision_ == pytest.approx(rss / (60 - 5), rel=1e-6)
    leverage = np.einsum("ni,ij,nj->n", A, np.linalg.inv(A.T @ A), A)
    expected = np.sqrt((1 + leverage) / machine.noise_precision_)
    assert np.allclose(machine.predict_dist(Z[:, :1]).std, expected, rtol=1e-10)
    assert machine.log_evidence_ == -np.inf


def test_solvers_agree():
    settings = {**KNOWN, "rank": 1, "max_sweeps": 1000, "basis": "chebyshev"}
    als, newton, auto = (
        model(solver=solver, **settings).fit(X, Y) for solver in ("als", "gauss_newton", "auto")
    )
    assert np.max(np.abs(als.predict(NEW) - newton.predict(NEW))) < 1e-7
    assert np.allclose(als.predict_dist(NEW).std, newton.predict_dist(NEW).std, rtol=1e-7)
    assert als.log_evidence_ == pytest.approx(newton.log_evidence_, rel=1e-9)
    assert np.array_equal(newton.predict(NEW), auto.predict(NEW))  # auto: the problem is small
    last = [m.machines_[0].fit.history[-1] for m in (als, newton)]
    assert last[0] == pytest.approx(last[1], rel=1e-10)


def test_auto_takes_als_when_gauss_newton_is_dear(monkeypatch):
    monkeypatch.setattr(config, "DENSE_STEP_WORK", len(Y) * 10 * 10 - 1)
    settings = {**KNOWN, "rank": 1, "max_sweeps": 1000}
    auto, als = (model(solver=s, **settings).fit(X, Y) for s in ("auto", "als"))
    assert auto.machines_[0].fit.history == als.machines_[0].fit.history
    monkeypatch.setattr(config, "DENSE_STEP_WORK", len(Y) * 10 * 10)
    assert model(**settings).fit(X, Y).machines_[0].fit.history != als.machines_[0].fit.history


def test_threshold_takes_directions_away():
    all_of_them = model(curvature="last").fit(X, Y)
    lam = 1.0 / np.linalg.eigvalsh(all_of_them.machines_[0].fit.posterior.solve(np.eye(10)))
    cut = float(np.sort(lam)[4])
    fewer = model(curvature="last", **KNOWN, threshold=cut).fit(X, Y)
    assert fewer.n_dropped_ > 0
    wide, narrow = all_of_them.predict_dist(NEW), fewer.predict_dist(NEW)
    assert np.mean(narrow.epistemic_std) < np.mean(wide.epistemic_std)
    everything = model(curvature="last", threshold=2.0, relative_threshold=True).fit(X, Y)
    assert everything.n_dropped_ == 10
    assert np.all(everything.predict_dist(NEW).epistemic_std == 0)


def test_convergence_warning_names_the_remedy():
    message = r"in 3 steps: relative gradient .* > tol=1e-06\. Raise max_sweeps"
    with pytest.warns(ConvergenceWarning, match=message) as got:
        machine = model(max_sweeps=3).fit(X, Y)
    assert machine.n_iter_ == 3
    assert got[0].filename == __file__  # points at the caller of fit


@not_converged
@pytest.mark.parametrize("solver", ["als", "gauss_newton"])
def test_max_sweeps_is_a_limit(solver):
    for n in (1, 2, 10, 15):
        machine = model(solver=solver, max_sweeps=n, tol=0.0).fit(X, Y)
        assert machine.n_iter_ == n
        assert len(machine.machines_[0].fit.history) == n


def test_verbose_prints_to_stderr(capsys):
    model(verbose=0).fit(X, Y)
    assert capsys.readouterr() == ("", "")
    machine = model(verbose=2, n_members=2, n_jobs=1).fit(X, Y)
    out, err = capsys.readouterr()
    assert out == ""
    steps = [m.fit.n_steps for m in machine.machines_]
    lines = err.splitlines()
    assert len(lines) == sum(steps)
    x = r"[-+.e\d]+"
    form = (
        rf"\[tensorlace\] member [12]/2 step \d+/\d+  objective {x}  gradient {x}  noise std {x}  "
        rf"{x}( [kMG])? rows/s  at most {x}( s|:\d\d min|:\d\d h) left"
    )
    assert all(re.fullmatch(form, line) for line in lines)
