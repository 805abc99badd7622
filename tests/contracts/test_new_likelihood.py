"""A likelihood of somebody else: one class and one line, and fit, predict and save follow."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import t as student

from tensorlace import InputError, TNKMRegressor, load, save
from tensorlace.columns.bases import Legendre
from tensorlace.export import to_onnx
from tensorlace.fitting.registry import LIKELIHOODS
from tensorlace.laplace.curvature import GGN, BlockDiagonal, Diag, Full, Last
from tensorlace.laplace.factorisation import Truncation
from tensorlace.likelihoods.likelihood import Likelihood
from tensorlace.machines.noise import scales
from tensorlace.networks.cpd import CPD
from tensorlace.predictive import Mixture
from tensorlace.rows.memory import MemoryRows
from tensorlace.solvers.gauss_newton import GaussNewton
from tensorlace.solvers.linearisation import linearise, loss, residual_curvature
from tensorlace.solvers.matrix_free import MatrixFree
from tests.helpers import likelihood_contract, member_contract
from tests.helpers.registered import registered

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@final
@dataclass(frozen=True)
class Student(Likelihood):
    """``y = f + σ t`` with Student's t of ν degrees of freedom: one outlier moves little."""

    degrees: float = 6.0
    scale: float = 0.2
    squared: ClassVar[bool] = False
    standardises: ClassVar[bool] = True

    def check(self, y):
        if np.any(np.abs(y) > 1e100):
            raise InputError("a target beyond 1e100: rescale y")

    def deviance(self, y, f):
        return (self.degrees + 1.0) * np.log1p(((y - f) / self.scale) ** 2 / self.degrees)

    def log_saturated(self, y):
        return np.full(np.shape(y), student.logpdf(0.0, self.degrees, scale=self.scale))

    def slope(self, y, f):
        r = y - f
        return (self.degrees + 1.0) * r / (self.degrees * self.scale**2 + r * r)

    def curvature(self, y, f):
        h = (self.degrees + 1.0) / ((self.degrees + 3.0) * self.scale**2)
        return np.full(np.shape(f), h)

    def predictive(self, mean, std, noise_std):
        shares, stds = scales(self.degrees)
        k = len(shares)
        noise = np.repeat(self.scale * stds[:, None], len(mean), axis=1)
        return Mixture(np.tile(mean, (k, 1)), np.tile(std, (k, 1)), noise, shares)

    def sample(self, f, noise_std, rng):
        return f + self.scale * rng.standard_t(self.degrees, np.shape(f))


@pytest.fixture(autouse=True)
def members():
    with registered(LIKELIHOODS, "heavy", Student()):
        yield


def smooth(X):
    return np.sin(3 * X[:, 0]) * X[:, 1] + X[:, 2] ** 2


def table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    return X, smooth(X) + 0.05 * rng.standard_t(6, n)


@pytest.mark.parametrize("check", likelihood_contract.CHECKS, ids=lambda check: check.__name__)
def test_contract(check):
    check(Student())


@pytest.mark.parametrize("check", member_contract.CHECKS, ids=lambda check: check.__name__)
def test_fit_stream_save_and_load(check, tmp_path):
    check({"likelihood": "heavy"}, tmp_path)


def problem(seed=0, N=60, weighted=False):
    """A network, its rows and precisions; the objective written out."""
    rng = np.random.default_rng(seed)
    bases = (Legendre(3), Legendre(2))
    u = rng.uniform(-1, 1, (2, N))
    network = CPD.initialise([b.constant() for b in bases], 2, rng)
    likelihood = Student()
    phi = [b.phi(x) for b, x in zip(bases, u, strict=True)]
    y = network.response(phi) + 0.5 * likelihood.sample(np.zeros(N), 1.0, rng)
    weight = rng.uniform(0.5, 2.0, N) if weighted else None
    gamma = tuple(np.full(V.shape, 0.7) for V in network.cores)
    rows = MemoryRows(u, y, weight, bases, block_rows=16, likelihood=likelihood)

    def objective(v):
        f = network.with_vector(v).response(phi)
        w = 1.0 if weight is None else weight
        return -np.sum(w * likelihood.log_density(y, f)) + 0.35 * np.sum(v * v)

    return network, rows, gamma, objective


def hessian(objective, v, step=1e-4):
    """By central differences."""
    P, H = len(v), np.empty((len(v), len(v)))
    E = np.eye(P) * step
    for i in range(P):
        for j in range(P):
            terms = [a * b * objective(v + a * E[i] + b * E[j]) for a in (1, -1) for b in (1, -1)]
            H[i, j] = sum(terms) / (4 * step * step)
    return H


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("solver", [GaussNewton(), MatrixFree()], ids=lambda s: type(s).__name__)
def test_solvers_reach_the_mode(solver, weighted):
    network, rows, gamma, objective = problem(weighted=weighted)
    with rows:
        state = solver.start(rows, network)
        for _ in range(300):
            state, info = solver.step(rows, state, 1.0, gamma)
            if info.gradient < 1e-9 or info.stalled:
                break
        found = loss(rows, state.network)
    v = state.network.vector
    best = minimize(objective, v, method="BFGS", options={"gtol": 1e-9})
    assert objective(v) - best.fun < 1e-9 * abs(best.fun)
    saturated = objective(v) - 0.5 * found - 0.35 * np.sum(v * v)
    again = objective(network.vector) - 0.35 * np.sum(network.vector**2)
    with problem(weighted=weighted)[1] as fresh:
        assert saturated == pytest.approx(again - 0.5 * loss(fresh, network), rel=1e-12)


def test_slope_and_hessians_of_the_working_problem():
    """Gauss-Newton has the expected curvature of each row; its residual part is exact."""
    network, rows, _, objective = problem()
    v = network.vector
    with rows:
        linear = linearise(rows, network)
        E = residual_curvature(rows, network)
    gradient = np.array(
        [(objective(v + e) - objective(v - e)) / 2e-6 for e in np.eye(len(v)) * 1e-6]
    )
    np.testing.assert_allclose(linear.slope, 0.7 * v - gradient, atol=1e-6)
    likelihood = Student()
    phi = [b.phi(x) for b, x in zip(rows.bases, problem_variables(), strict=True)]
    A, f = network.jacobian(phi), network.response(phi)
    y = np.concatenate([block.y for block in rows.blocks])
    step = 1e-5
    second = likelihood.slope(y, f + step) - likelihood.slope(y, f - step)
    exact = (A * (-second / (2 * step))) @ A.T + E + 0.7 * np.eye(len(v))
    np.testing.assert_allclose(hessian(objective, v), exact, atol=2e-4 * np.abs(exact).max())
    np.testing.assert_allclose(
        linear.dense_gram(), (A * likelihood.curvature(y, f)) @ A.T, rtol=1e-10, atol=1e-9
    )


def problem_variables(seed=0, N=60):
    """The variables of `problem`."""
    return np.random.default_rng(seed).uniform(-1, 1, (2, N))


@pytest.mark.parametrize(
    "curvature", [GGN(), Full(), BlockDiagonal(), Diag(), Last(0)], ids=lambda c: type(c).__name__
)
def test_curvatures_see_the_weights_of_rows(curvature):
    network, rows, _, _ = problem()
    with rows:
        stat = curvature.evaluate(rows, network, None)
        assert stat.rss == pytest.approx(loss(rows, network), rel=1e-13)
        least = rows.at(network)
        same = curvature.evaluate(least, network, None)
    P = sum(network.cores[d].size for d in curvature.bayesian_cores(2))
    gamma = np.full(P, 0.7)
    a, b = (s.posterior(1.0, gamma, Truncation()) for s in (stat, same))
    np.testing.assert_array_equal(a.variances(), b.variances())


def test_outliers_move_it_less_than_squares():
    X, y = table()
    y[:5] += 30.0
    new = np.random.default_rng(9).uniform(-1, 1, (500, 3))
    errors = []
    for likelihood in ("gaussian", "heavy"):
        params = {"rank": 3, "noise": "gaussian", "random_state": 0}
        model = TNKMRegressor(likelihood=likelihood, **params).fit(X, y)
        errors.append(np.sqrt(np.mean((model.predict(new) - smooth(new)) ** 2)))
    assert errors[1] < 0.5 * errors[0]


def test_evidence_prefers_the_scale_that_made_the_targets():
    X, y = table(400)
    target = y.std()
    found = {}
    for scale in (0.02, 0.05 / target, 0.5):
        with registered(LIKELIHOODS, "scaled", Student(scale=scale)):
            model = TNKMRegressor(rank=3, likelihood="scaled", random_state=0).fit(X, y)
            found[scale] = model.log_evidence_
    assert max(found, key=found.get) == 0.05 / target


@pytest.mark.filterwarnings("ignore::tensorlace.errors.CurvatureWarning")
@pytest.mark.parametrize("curvature", ["ggn", "last", "block", "diag", "full"])
@pytest.mark.parametrize("network", ["cpd", "tt"])
def test_saved_and_loaded(network, curvature, tmp_path):
    X, y = table(120)
    params = {"rank": 2, "likelihood": "heavy", "network": network, "curvature": curvature}
    model = TNKMRegressor(**params, random_state=0).fit(X, y)
    save(model, tmp_path / "model.tlace")
    again = load(tmp_path / "model.tlace")
    for a, b in zip(model.predict(X, True), again.predict(X, True), strict=True):
        np.testing.assert_array_equal(a, b)
    assert again.machines_[0].fit.likelihood == Student()
    np.testing.assert_array_equal(model.sample_y(X[:4], 3), again.sample_y(X[:4], 3))


def test_intervals_hold():
    X, y = table(900)
    with registered(LIKELIHOODS, "known", Student(scale=0.05 / y[:600].std())):
        params = {"rank": 6, "n_basis": 10, "warp": "minmax", "basis": "legendre"}
        model = TNKMRegressor(**params, likelihood="known", random_state=0)
        model.fit(X[:600], y[:600])
    lower, upper = model.predict_interval(X[600:], coverage=0.9)
    assert 0.82 <= np.mean((lower <= y[600:]) & (y[600:] <= upper)) <= 0.97


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"rank": "auto"}, "needs a number for rank"),
        ({"rank": 2, "solver": "als"}, "least squares"),
        ({"rank": 2, "likelihood": "unheard"}, "unheard"),
    ],
)
def test_what_cannot_be_is_said(params, message):
    X, y = table(60)
    with pytest.raises((InputError, ValueError), match=message):
        TNKMRegressor(**{"likelihood": "heavy", **params}).fit(X, y)


def test_targets_that_cannot_be_and_forms_that_there_are_not():
    X, y = table(60)
    with pytest.raises(InputError, match="1e100"):
        TNKMRegressor(rank=1, likelihood="heavy").fit(X, np.where(np.arange(60) == 3, 1e101, y))
    model = TNKMRegressor(rank=1, likelihood="heavy", random_state=0).fit(X, y)
    with pytest.raises(InputError, match="Student are not normal"):
        to_onnx(model)
