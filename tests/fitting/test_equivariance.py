"""Units, shifts, the order of rows and of rank terms, and repetition change nothing else."""

import numpy as np
import pytest

from tensorlace import TNKMRegressor
from tensorlace.columns.bases import Chebyshev, Cosine
from tensorlace.fitting.config import Config
from tensorlace.fitting.fit_network import infer
from tensorlace.fitting.run import Start
from tensorlace.laplace.curvature import GGN
from tensorlace.laplace.factorisation import Truncation
from tensorlace.laplace.precision import Fixed
from tensorlace.laplace.prior_groups import one_group
from tensorlace.networks.cpd import CPD, initialise, predict
from tensorlace.rows.memory import MemoryRows
from tensorlace.solvers.gauss_newton import GaussNewton

N, D = 80, 3
EPS = np.finfo(float).eps


def problem(seed=0):
    """Dyadic numbers below 2^4 with six bits behind the point: shifts and scalings are exact."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-512, 512, size=(N + 30, D)) / 64.0
    y = np.sin(X[:N, 0] / 4.0) * X[:N, 1] + 0.3 * X[:N, 2] + 0.1 * rng.standard_normal(N)
    return X[:N], np.round(64.0 * y) / 64.0, X[N:]


def fit(X, y, weight=None, **settings):
    return TNKMRegressor(**{"rank": 4, "random_state": 0, **settings}).fit(
        X, y, sample_weight=weight
    )


def same_inside(a, b):
    """Cores, precisions, evidence and history are the same to the bit."""
    for one, other in zip(a.machines_, b.machines_, strict=True):
        f, g = one.fit, other.fit
        assert all(np.array_equal(V, W) for V, W in zip(f.cores, g.cores, strict=True))
        assert all(np.array_equal(V, W) for V, W in zip(f.gamma, g.gamma, strict=True))
        assert (f.beta, f.log_evidence, f.history) == (g.beta, g.log_evidence, g.history)
    return True


CONFIGURATIONS = {
    "default": {},
    "als": {"solver": "als", "tol": 1e-3},
    "last": {"curvature": "last", "basis": "chebyshev", "warp": "quantile"},
    "standardise": {"basis": "unit_polynomial", "warp": "standardise", "noise_precision": "vi"},
    "members": {"n_members": 2, "basis": "bspline", "warp": "minmax", "rank": 2},
}
each_configuration = pytest.mark.parametrize("name", CONFIGURATIONS)
SCALES = [2.0, 2.0**20, 2.0**-30, 2.0**900, 2.0**-900]


@pytest.fixture(scope="module")
def fitted():
    X, y, _ = problem()
    return {name: fit(X, y, **settings) for name, settings in CONFIGURATIONS.items()}


@each_configuration
@pytest.mark.parametrize("a", SCALES)
def test_units_of_the_target(fitted, name, a):
    X, y, new = problem()
    model, scaled = fitted[name], fit(X, a * y, **CONFIGURATIONS[name])
    assert same_inside(model, scaled)
    mean, std = model.predict(new, return_std=True)
    scaled_mean, scaled_std = scaled.predict(new, return_std=True)
    assert np.array_equal(scaled_mean, a * mean)
    assert np.array_equal(scaled_std, a * std)
    assert np.array_equal(scaled.predict(new), a * model.predict(new))
    if 1e-140 < a < 1e140:
        assert scaled.noise_precision_ == model.noise_precision_ / a**2


@each_configuration
@pytest.mark.parametrize(("a", "b"), [(1.0, -77.0), (4.0, 1024.0), (2.0**-10, 5.0)])
def test_shift_of_the_target(fitted, name, a, b):
    X, y, new = problem()
    assert np.array_equal((a * y + b) - b, a * y)  # exact, or the test would say nothing
    model, shifted = fitted[name], fit(X, a * y + b, **CONFIGURATIONS[name])
    assert same_inside(model, shifted)
    dist, moved = model.predict_dist(new), shifted.predict_dist(new)
    assert np.array_equal(moved.epistemic_stds, a * dist.epistemic_stds)
    assert np.array_equal(moved.aleatoric_stds, a * dist.aleatoric_stds)
    few_ulp = 4 * EPS * np.maximum(abs(b), np.abs(a * dist.means).max(axis=0))
    if name == "members":  # the spread of the members' means is part of the std
        assert np.all(np.abs(moved.std - a * dist.std) <= few_ulp)
    else:
        assert np.array_equal(moved.std, a * dist.std)
    assert np.all(np.abs(moved.mean - (a * dist.mean + b)) <= few_ulp)
    assert np.all(np.abs(shifted.predict(new) - (a * dist.mean + b)) <= few_ulp)


@each_configuration
@pytest.mark.parametrize(
    ("a", "b"), [*((a, 0.0) for a in SCALES), (1.0, -77.0), (4.0, 1024.0), (2.0**-10, 5.0)]
)
def test_units_and_shift_of_the_columns(fitted, name, a, b):
    X, y, new = problem()
    assert np.array_equal((a * X + b) - b, a * X)
    model, moved = fitted[name], fit(a * X + b, y, **CONFIGURATIONS[name])
    assert same_inside(model, moved)
    mean, std = model.predict(new, return_std=True)
    moved_mean, moved_std = moved.predict(a * new + b, return_std=True)
    assert np.array_equal(moved_mean, mean)
    assert np.array_equal(moved_std, std)
    assert np.array_equal(model.extrapolated(new), moved.extrapolated(a * new + b))


def test_columns_may_have_different_units(fitted):
    X, y, new = problem()
    a, b = np.array([2.0**700, 2.0**-700, 8.0]), np.array([0.0, 0.0, -16.0])
    moved = fit(a * X + b, y)
    assert same_inside(fitted["default"], moved)
    assert np.array_equal(moved.predict(a * new + b), fitted["default"].predict(new))


def test_a_fixed_noise_precision_is_in_units_of_y():
    X, y, new = problem()
    model = fit(X, y, noise_precision=4.0)
    scaled = fit(X, 8.0 * y, noise_precision=4.0 / 64.0)
    assert same_inside(model, scaled)
    assert np.array_equal(scaled.predict_dist(new).std, 8.0 * model.predict_dist(new).std)
    assert model.noise_precision_ == pytest.approx(4.0, rel=1e-15)
    assert scaled.noise_precision_ == model.noise_precision_ / 64.0


@each_configuration
@pytest.mark.parametrize("a", [1e300, 1e-300])
@pytest.mark.parametrize("what", ["target", "columns"])
def test_huge_and_tiny_numbers(fitted, name, a, what):
    """Not a power of two, so inputs round; the predictions are those of the rescaled problem."""
    X, y, new = problem()
    a *= 0.1  # values up to 8
    unit = a if what == "target" else 1.0
    if what == "columns":
        X, new = a * X, a * new
    model = fit(X, unit * y, **CONFIGURATIONS[name])
    expected, got = fitted[name].predict_dist(problem()[2]), model.predict_dist(new)
    size = np.std(y)
    assert np.std(expected.mean) > 0.1 * size
    for one, other in [
        (got.mean, expected.mean),
        (got.std, expected.std),
        (got.epistemic_std, expected.epistemic_std),
        (got.quantile(0.9), expected.quantile(0.9)),
        (model.predict(new), expected.mean),
        (model.sample_y(new, 3), fitted[name].sample_y(problem()[2], 3)),
    ]:
        assert np.max(np.abs(one / unit - other)) < 1e-10 * size
    # what cannot be written as a float is a limit, not an error
    limit = {"columns": fitted[name].noise_precision_, "target": 0.0 if a > 1 else np.inf}[what]
    assert model.noise_precision_ == pytest.approx(limit, rel=1e-10)


KNOWN = {"noise_precision": 4.0, "prior_precision": 1.0, "tol": 1e-12}


@pytest.mark.parametrize(
    "settings",
    [
        KNOWN,
        {**KNOWN, "curvature": "last"},
        {**KNOWN, "curvature": "block", "basis": "unit_polynomial", "warp": "standardise"},
        {**KNOWN, "curvature": "diag", "basis": "chebyshev", "warp": "quantile"},
        {**KNOWN, "solver": "als", "rank": 1, "max_sweeps": 1000},
    ],
    ids=["ggn", "last", "block", "diag", "als"],
)
def test_order_of_the_rows(settings):
    X, y, new = problem()
    order = np.random.default_rng(1).permutation(N)
    a, b = fit(X, y, **settings), fit(X[order], y[order], **settings)
    for one, other in zip(a.machines_[0].fit.cores, b.machines_[0].fit.cores, strict=True):
        assert not np.array_equal(one, other)  # sums were made in another order
    a, b = a.predict(new, return_std=True), b.predict(new, return_std=True)
    assert np.max(np.abs(a[0] - b[0])) < 1e-12 * np.std(y)
    assert np.max(np.abs(a[1] / b[1] - 1.0)) < 2e-12


def test_order_of_the_rank_terms():
    rng = np.random.default_rng(2)
    bases = [Cosine(5), Chebyshev(4), Cosine(3)]
    u = np.stack([rng.uniform(*basis.interval, size=N) for basis in bases])
    y = rng.standard_normal(N)
    settings = Config(
        rank=3,
        solver=GaussNewton(),
        curvature=GGN(),
        truncation=Truncation(),
        noise=Fixed(4.0),
        prior=Fixed(1.0),
        groups=one_group,
        max_steps=500,
        tol=1e-12,
    )
    rows = MemoryRows(u, y, None, bases, block_rows=64)
    start = initialise([basis.constant() for basis in bases], 3, rng)
    order = [2, 0, 1]
    a = infer(rows, settings, Start(CPD(start)))
    b = infer(rows, settings, Start(CPD(tuple(V[order] for V in start))))
    assert a.gradient < 1e-12
    assert b.gradient < 1e-12
    phi = [basis.phi(x) for basis, x in zip(bases, u, strict=True)]
    assert np.std(predict(a.cores, phi)) > 0.1
    assert np.max(np.abs(predict(a.cores, phi) - predict(b.cores, phi))) < 1e-12
    for V, W in zip(a.cores, b.cores, strict=True):
        assert np.max(np.abs(V[order] - W)) < 1e-12
    assert a.log_evidence == pytest.approx(b.log_evidence, rel=1e-12)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        KNOWN,
        {"curvature": "last", "core": 0},
        {"basis": "unit_polynomial", "warp": "standardise", "prior_groups": "column_order"},
        {
            "basis": "bspline",
            "warp": "quantile",
            "solver": "als",
            "rank": 2,
            "noise_precision": "vi",
        },
        {
            "basis": ["fourier", "indicator", "legendre"],
            "curvature": "diag",
            "noise": "gaussian",
        },
    ],
    ids=["default", "known", "last", "standardise", "als", "mixed bases"],
)
def test_integer_weights_are_repetitions(settings):
    X, y, new = problem()
    if "indicator" in settings.get("basis", ()):
        X[:, 1], new[:, 1] = np.round(X[:, 1] / 4.0), np.round(new[:, 1] / 4.0)
    weight = np.random.default_rng(3).integers(0, 4, size=N)
    assert weight.min() == 0
    repeated = np.repeat(np.arange(N), weight)
    a, b = fit(X, y, weight, **settings), fit(X[repeated], y[repeated], **settings)
    for one, other in zip(
        a.predict(new, return_std=True), b.predict(new, return_std=True), strict=True
    ):
        assert np.max(np.abs(one - other)) < 1e-10 * np.std(y)
    assert a.log_evidence_ == pytest.approx(b.log_evidence_, rel=1e-10)
    assert a.noise_precision_ == pytest.approx(b.noise_precision_, rel=1e-10)
    assert np.max(np.abs(a.predict(new) - fit(X, y, **settings).predict(new))) > 1e-3
