"""Fitted machines: their predictive distributions against closed forms and brute force."""

import mpmath
import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

from tensorlace.columns.bases import Chebyshev, Cosine, Fourier, Polynomial
from tensorlace.columns.columns import Column, Columns
from tensorlace.columns.warps import Identity, Standardise
from tensorlace.fitting.config import Config
from tensorlace.fitting.fit_network import infer
from tensorlace.fitting.run import Start
from tensorlace.laplace.curvature import GGN, BlockDiagonal, Full, Last
from tensorlace.laplace.factorisation import Truncation
from tensorlace.laplace.posterior import Root
from tensorlace.laplace.precision import Fixed
from tensorlace.laplace.prior_groups import one_group
from tensorlace.linalg.blas_threads import one_blas_thread
from tensorlace.machines import core_variance as variances
from tensorlace.machines import machine as machines
from tensorlace.machines.machine import KernelMachine
from tensorlace.networks import column_network
from tensorlace.networks import cpd as networks
from tensorlace.rows.memory import MemoryRows
from tensorlace.solvers.als import ALS
from tensorlace.solvers.gauss_newton import GaussNewton
from tests.helpers import oracles
from tests.helpers.oracles import error, problem

EVERY_CURVATURE = pytest.mark.parametrize("curvature", oracles.CURVATURES, ids=repr)
EXACT = pytest.mark.parametrize("curvature", [Full(), GGN(), BlockDiagonal(), Last(0)], ids=repr)
BETA, GAMMA = 6.0, 0.8
LOCATION, SCALE = 100.0, 7.0


class Trained:
    """A machine on raw y, the problem it solved in standard units, and new rows."""

    def __init__(self, bases, curvature, *, R=2, N=50, seed=0, weighted=False, solver=None):
        rng = np.random.default_rng(seed)
        p = problem(seed, bases=bases, R=R, N=N, weighted=weighted)
        y = LOCATION + SCALE * p.y
        target = Standardise.fit(y, p.weight)
        settings = Config(
            rank=R,
            solver=solver or GaussNewton(),
            curvature=curvature,
            truncation=Truncation(),
            noise=Fixed(BETA),
            prior=Fixed(GAMMA),
            groups=one_group,
            max_steps=500,
            tol=1e-14,
        )
        with MemoryRows(p.u, target(y), p.weight, bases, block_rows=16) as rows:
            fit = infer(rows, settings, Start(p.network))
        columns = [
            Column(Identity.fit(x), b, f"x{d}")
            for d, (x, b) in enumerate(zip(p.u, bases, strict=True))
        ]
        self.machine = KernelMachine(Columns(tuple(columns)), target, fit)
        gamma = tuple(np.full(V.shape, GAMMA) for V in fit.cores)
        self.problem = oracles.Problem(bases, p.u, target(y), p.weight, fit.cores, BETA, gamma)
        self.X = oracles.variables(bases, 12, rng).T
        self.phi = [b.phi(x) for b, x in zip(bases, self.X.T, strict=True)]

    def covariance(self, curvature):
        """Covariance of the Bayesian weights, and their positions.

        With two columns and one prior precision a rotation of the two terms changes neither fit
        nor penalty: one eigenvalue of the full Hessian is zero, and has to be dropped.
        """
        H, at = oracles.precision_matrix(self.problem, curvature)
        S, _, dropped = oracles.truncated(H, 1e-12 * np.linalg.norm(H, 2))
        assert dropped == self.machine.fit.posterior.n_dropped
        assert dropped == (curvature == Full() and len(self.problem.bases) == 2)
        return S, at


TWO = (Cosine(3), Chebyshev(4))
THREE = (Cosine(3), Chebyshev(4), Fourier(3))


@EVERY_CURVATURE
@pytest.mark.parametrize("bases", [TWO[:1], TWO, THREE], ids=["D1", "D2", "D3"])
@pytest.mark.parametrize(("N", "weighted"), [(50, False), (50, True), (9, False)])
def test_lla_is_the_dense_linearised_model(curvature, bases, N, weighted):
    t = Trained(bases, curvature, N=N, weighted=weighted)
    S, at = t.covariance(t.machine.fit.curvature)
    G = oracles.jacobian(t.problem.cores, t.phi)[:, at]
    epistemic = np.einsum("np,pq,nq->n", G, S, G)
    scale, location = t.machine.target.scale, t.machine.target.location
    found = t.machine.linearized(t.X)
    mean = location + scale * oracles.response(t.problem.cores, t.phi)
    assert error(found.mean, mean) < 1e-14
    assert error(found.epistemic_std**2, scale**2 * epistemic) < 1e-11
    assert error(found.aleatoric_std, np.full(12, scale / np.sqrt(BETA))) < 1e-15
    assert error(found.std**2, scale**2 * (epistemic + 1 / BETA)) < 1e-12
    assert error(t.machine.mean(t.X), mean) < 1e-14


@EXACT
@pytest.mark.parametrize("solver", [ALS(), GaussNewton()], ids=["ALS", "GaussNewton"])
@pytest.mark.parametrize("R", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_one_column_is_bayesian_linear_regression(curvature, solver, R, weighted):
    """Mean and variance to 50 digits: R terms are one with a prior R times as wide."""
    t = Trained((Polynomial(5),), curvature, R=R, weighted=weighted, solver=solver)
    with mpmath.workdps(50):
        design = [[mpmath.mpf(x) ** i for i in range(5)] for x in t.problem.u[0]]
        new = [[mpmath.mpf(x) ** i for i in range(5)] for x in t.X[:, 0]]
    mean, variance = oracles.bayesian_regression(
        design, t.problem.y, t.problem.w, BETA, np.full(5, GAMMA / R), new
    )
    found = t.machine.linearized(t.X)
    scale, location = t.machine.target.scale, t.machine.target.location
    assert error(found.mean, location + scale * mean) < 1e-13
    assert error(found.epistemic_std, scale * np.sqrt(variance)) < 1e-12


@pytest.mark.parametrize("core", [0, 1, 2, -1])
@pytest.mark.parametrize("solver", [ALS(), GaussNewton()], ids=["ALS", "GaussNewton"])
@pytest.mark.parametrize(("R", "N", "weighted"), [(1, 50, False), (3, 50, True), (4, 9, False)])
def test_last_is_regression_on_the_frozen_cores(core, solver, R, N, weighted):
    t = Trained(THREE, Last(core), R=R, N=N, weighted=weighted, solver=solver)
    p = t.problem
    at = oracles.positions(p.cores, (range(3)[core],))
    A, G = (oracles.jacobian(p.cores, phi)[:, at] for phi in (p.phi, t.phi))
    mean, variance = oracles.bayesian_regression(A, p.y, p.w, BETA, np.full(len(at), GAMMA), G)
    found = t.machine.linearized(t.X)
    scale, location = t.machine.target.scale, t.machine.target.location
    assert error(found.mean, location + scale * mean) < 1e-13
    assert error(found.epistemic_std, scale * np.sqrt(variance)) < 1e-12


def quadratic_moments(t, S, at):
    """Mean and variance of f under v ~ N(v*, S) for two columns, in closed form.

    ``f = Σ_r a_r b_r = zᵀ Q z`` with Gaussian ``z = (a, b)``, the 2R factor values at a row.
    """
    cores = t.problem.cores
    R, P = len(cores[0]), t.problem.v.size
    full = np.zeros((P, P))
    full[np.ix_(at, at)] = S
    Q = 0.5 * np.kron([[0, 1], [1, 0]], np.eye(R))
    means, variances = [], []
    for x, y in zip(*[phi.T for phi in t.phi], strict=True):
        M = np.block(
            [
                [np.kron(np.eye(R), x), np.zeros((R, R * len(y)))],
                [np.zeros((R, R * len(x))), np.kron(np.eye(R), y)],
            ]
        )
        m, QC = M @ t.problem.v, Q @ M @ full @ M.T
        means.append(np.trace(QC) + m @ Q @ m)
        variances.append(2 * np.trace(QC @ QC) + 4 * m @ QC @ Q @ m)
    return np.array(means), np.array(variances)


@EVERY_CURVATURE
@pytest.mark.parametrize("seed", range(3))
def test_la_has_the_moments_of_the_network(curvature, seed):
    """Draws of the cores through the multilinear network, not through its linearisation."""
    t = Trained(TWO, curvature, N=25, seed=seed)
    S, at = t.covariance(t.machine.fit.curvature)
    mean, variance = quadratic_moments(t, S, at)
    n, scale = 4000, t.machine.target.scale
    found = t.machine.sampled(t.X, n, np.random.default_rng(seed))
    assert found.means.shape == (n, 12)
    f = (found.means - t.machine.target.location) / scale
    assert np.all(np.abs(f.mean(axis=0) - mean) < 4 * np.sqrt(variance / n))
    deviation = (f - mean) ** 2
    assert np.all(np.abs(deviation.mean(axis=0) - variance) < 4 * deviation.std(axis=0) / n**0.5)
    assert error(found.aleatoric_std, np.full(12, scale / np.sqrt(BETA))) < 1e-13
    assert error(found.epistemic_std, scale * f.std(axis=0)) < 1e-12


def test_la_and_lla_differ_where_cores_are_correlated():
    """What the test above can tell apart: the network's mean is not the MAP's."""
    t = Trained(TWO, GGN(), N=25)
    mean, _ = quadratic_moments(t, *t.covariance(GGN()))
    assert np.max(np.abs(mean - oracles.response(t.problem.cores, t.phi))) > 0.01


@EVERY_CURVATURE
def test_joint_draws_of_functions(curvature):
    t = Trained(THREE, curvature)
    S, at = t.covariance(t.machine.fit.curvature)
    G = oracles.jacobian(t.problem.cores, t.phi)[:, at]
    draws = t.machine.functions(t.X, 20_000, np.random.default_rng(1), linearized=True)
    assert draws.shape == (12, 20_000)
    centred = draws - oracles.response(t.problem.cores, t.phi)[:, None]
    assert np.max(np.abs(oracles.covariance_z(centred, G @ S @ G.T))) < 4.5


@EVERY_CURVATURE
def test_draws_move_whole_networks(curvature):
    """Each draw is one network: the same at a row whichever rows are asked for together."""
    t = Trained(THREE, curvature)
    for linearized in (False, True):
        a = t.machine.functions(t.X, 5, np.random.default_rng(3), linearized=linearized)
        b = t.machine.functions(t.X[4:6], 5, np.random.default_rng(3), linearized=linearized)
        assert error(a[4:6], b) < 1e-14
    deviation = t.machine.fit.posterior.sample(np.random.default_rng(3), 5)
    at = oracles.positions(t.problem.cores, t.machine.fit.bayesian_cores)
    shapes = [V.shape for V in t.problem.cores]
    expected = []
    for step in deviation.T:
        v = t.problem.v.copy()
        v[at] += step
        expected.append(oracles.response(oracles.unvec(v, shapes), t.phi))
    found = t.machine.functions(t.X, 5, np.random.default_rng(3), linearized=False)
    assert error(found, np.stack(expected, axis=1)) < 1e-13


def test_the_mean_builds_no_jacobian(monkeypatch):
    t = Trained(THREE, GGN())
    expected = t.machine.mean(t.X)

    def refuse(*_):
        raise AssertionError("a Jacobian was asked for")

    for module, name in [
        (column_network, "design"),
        (networks, "design"),
        (networks, "environments"),
    ]:
        monkeypatch.setattr(module, name, refuse)
    np.testing.assert_array_equal(t.machine.mean(t.X), expected)
    with pytest.raises(AssertionError, match="Jacobian"):
        t.machine.linearized(t.X)


def test_batches_do_not_show(monkeypatch):
    t = Trained(THREE, GGN())
    X = np.tile(t.X, (20, 1))
    whole = t.machine.linearized(X)
    monkeypatch.setattr(machines, "_BATCH_NUMBERS", 1)  # 64 rows at a time
    parts = t.machine.linearized(X)
    assert error(parts.mean, whole.mean) < 1e-15
    assert error(parts.std, whole.std) < 1e-14
    assert error(t.machine.mean(X), whole.mean) < 1e-15


WIDE = (Cosine(8), Chebyshev(9), Fourier(7))


@pytest.mark.parametrize("curvature", [Last(0), Last(1), Last(2), BlockDiagonal()], ids=repr)
def test_variance_of_a_core_without_its_jacobian(curvature):
    """The way by pairs of rank terms and products of basis functions, against the dense one."""
    t = Trained(WIDE, curvature, R=5, N=300)
    assert all(part.B is not None for part in t.machine._core_variances)
    S, at = t.covariance(t.machine.fit.curvature)
    G = oracles.jacobian(t.problem.cores, t.phi)[:, at]
    epistemic = np.einsum("np,pq,nq->n", G, S, G)
    found = t.machine.linearized(t.X)
    assert error(found.epistemic_std**2, t.machine.target.scale**2 * epistemic) < 1e-11
    assert error(found.mean, t.machine.mean(t.X)) < 1e-15


def test_variance_that_cancels_becomes_a_sum_of_squares(monkeypatch):
    """At the rows of a fit with a faint prior the variance is tiny beside the covariance."""
    rng, basis, R, n = np.random.default_rng(0), Cosine(8), 6, 30
    Z, u = rng.standard_normal((R, n)), rng.uniform(0, 1, n)
    phi = basis.phi(u)
    G = networks.design(Z, phi)
    with mpmath.workdps(60):
        A = mpmath.matrix(G.tolist())
        H = A * A.T + mpmath.mpf("1e-9") * mpmath.eye(R * 8)
        solved = H**-1 * A
        exact = [float(sum(A[p, k] * solved[p, k] for p in range(R * 8))) for k in range(n)]
        L = mpmath.cholesky(H)
        W = np.array((L**-1).T.tolist(), dtype=float)
    part = variances.CoreVariance.of(Root(W, 0.0), basis)
    assert part.B is not None
    np.testing.assert_allclose(part(Z, phi, u), exact, rtol=1e-9)
    monkeypatch.setattr(variances, "_LOST_DIGITS", np.inf)  # never look
    part = variances.CoreVariance.of(Root(W, 0.0), basis)
    assert np.max(np.abs(part(Z, phi, u) / exact - 1.0)) > 1e-8


@pytest.mark.parametrize("curvature", [Last(-1), BlockDiagonal(), GGN()], ids=repr)
def test_threads_change_no_bit(curvature, monkeypatch):
    t = Trained(WIDE, curvature, R=5, N=300)
    monkeypatch.setattr(machines, "_BATCH_NUMBERS", 1)
    X = np.tile(t.X, (40, 1)) * np.linspace(0.5, 1.0, 480)[:, None]
    one, four = (t.machine.linearized(X, threads) for threads in (1, 4))
    np.testing.assert_array_equal(one.mean, four.mean)
    np.testing.assert_array_equal(one.std, four.std)
    np.testing.assert_array_equal(t.machine.mean(X, 1), t.machine.mean(X, 4))
    for linearized in (False, True):
        a, b = (
            t.machine.functions(X, 3, np.random.default_rng(0), linearized, threads)
            for threads in (1, 4)
        )
        np.testing.assert_array_equal(a, b)


def test_blas_gets_its_threads_back():
    """Also if two predictions overlap and the one that began first ends first."""

    def limits():
        return [library.num_threads for library in ThreadpoolController().lib_controllers]

    before, hold = limits(), one_blas_thread
    hold.__enter__()
    hold.__enter__()
    hold.__exit__()
    assert set(ThreadpoolController().select(user_api="blas").info()[0].items()) >= {
        ("num_threads", 1)
    }
    hold.__exit__()
    assert limits() == before
