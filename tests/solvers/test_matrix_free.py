"""Gauss-Newton without its matrix: dense products, the same MAP, the same bits from anywhere."""

from itertools import pairwise

import cloudpickle
import numpy as np
import pytest

from tensorlace import TNKMRegressor
from tensorlace.columns.bases import Indicator
from tensorlace.fitting import config
from tensorlace.networks.cpd import jacobian
from tensorlace.rows.memory import MemoryRows
from tensorlace.solvers.gauss_newton import GaussNewton
from tensorlace.solvers.linearisation import residual_curvature
from tensorlace.solvers.matrix_free import MatrixFree
from tensorlace.solvers.products import block_grams, point, product
from tensorlace.solvers.trust_region import Metric, follow
from tensorlace.sources import BlockSource
from tests.helpers import oracles
from tests.helpers.oracles import error, objective, problem

CASES = pytest.mark.parametrize(
    ("seed", "D", "R", "N", "weighted", "gamma"),
    [
        (0, 1, 1, 30, False, 1.0),
        (5, 1, 3, 30, True, 1.0),
        (0, 2, 1, 60, False, 1.0),
        (1, 3, 2, 60, True, 1.0),
        (6, 3, 2, 80, False, None),
        (8, 4, 2, 60, True, None),
        (1, 3, 3, 15, True, 1.0),  # more weights than rows
        (6, 4, 2, 20, False, None),
    ],
)


def run(solver, p, steps=300, tol=1e-11, **options):
    """Follow a solver to the end: the problem there and every info."""
    infos = []
    with p.rows(**options) as rows:
        state = solver.start(rows, p.network)
        for _ in range(steps):
            state, info = solver.step(rows, state, p.beta, p.gamma)
            infos.append(info)
            if info.gradient <= tol or info.stalled:
                break
    return p.at(state.network.cores), infos


def dense(p):
    """``Aᵀ`` (P, N) of the library's own networks, held against complex steps elsewhere."""
    return jacobian(p.cores, p.phi)


@pytest.mark.parametrize("budget", [0, 1 << 20], ids=["recomputed", "kept"])
@CASES
def test_products_are_the_dense_ones(seed, D, R, N, weighted, gamma, budget):
    p = problem(seed, D=D, R=R, N=N, weighted=weighted, gamma=gamma)
    A, misfit = dense(p), p.y - oracles.response(p.cores, p.phi)
    x = np.random.default_rng(seed).standard_normal(p.v.size)
    with p.rows(memory_budget=budget) as rows:
        at = point(rows, p.network)
        assert (at.kept is None) == (budget == 0)
        assert error(at.slope, A @ (p.w * misfit)) < 1e-13
        assert error(at.target, A @ (p.w * p.y)) < 1e-14
        assert at.rss == pytest.approx(p.w @ misfit**2, rel=1e-13)
        gauss_newton = A @ (p.w * (A.T @ x))
        assert error(product(rows, at, x), gauss_newton) < 1e-13
        newton = gauss_newton + residual_curvature(rows, p.network) @ x
        assert error(product(rows, at, x, exact=True), newton) < 1e-13


@CASES
def test_the_hessian_product_is_that_of_the_objective(seed, D, R, N, weighted, gamma):
    p = problem(seed, D=D, R=R, N=N, weighted=weighted, gamma=gamma)
    x = np.random.default_rng(seed).standard_normal(p.v.size)
    with p.rows() as rows:
        times = p.beta * product(rows, point(rows, p.network), x, exact=True) + p.g * x
    assert error(times, oracles.hessian(p) @ x) < 1e-12


@CASES
def test_the_preconditioner_is_the_block_curvature(seed, D, R, N, weighted, gamma):
    p = problem(seed, D=D, R=R, N=N, weighted=weighted, gamma=gamma)
    with p.rows() as rows:
        grams = block_grams(rows, p.network)
    metric, H = Metric(grams, p.beta, p.g), np.zeros((p.v.size, p.v.size))
    A = dense(p)
    for d, G in enumerate(grams):
        at = oracles.positions(p.cores, (d,))
        block = (A[at] * p.w) @ A[at].T
        assert error(G, block) < 1e-13
        H[np.ix_(at, at)] = p.beta * block + np.diag(p.g[at])
    x = np.random.default_rng(seed).standard_normal(p.v.size)
    assert metric.norm(x) == pytest.approx(np.sqrt(x @ H @ x), rel=1e-13)
    assert error(metric.solve(H @ x), x) < 1e-15 * np.linalg.cond(H)


def random_system(seed, P=12, lowest=0.1):
    rng = np.random.default_rng(seed)
    U, _ = np.linalg.qr(rng.standard_normal((P, P)))
    H = (U * np.linspace(lowest, 30.0, P)) @ U.T
    metric = Metric((np.diag(rng.uniform(1.0, 9.0, P)),), 1.0, np.full(P, 0.5))
    return H, metric, rng.standard_normal(P)


@pytest.mark.parametrize("seed", range(5))
def test_conjugate_gradients_solve_and_know_their_way(seed):
    H, metric, b = random_system(seed)
    path = follow(lambda p: H @ p, metric, b, radius=1e9, reduction=1e-12, most=40)
    x, gain, norm = path.end()
    assert path.inside
    assert error(x, np.linalg.solve(H, b)) < 1e-10
    assert gain == pytest.approx(0.5 * b @ x, rel=1e-10)
    assert norm == pytest.approx(metric.norm(x), rel=1e-10)
    for share in (0.9, 0.5, 0.1, 1e-3):
        x, gain, norm = path.within(share * metric.norm(path.end()[0]))
        assert norm == pytest.approx(share * path.end()[2], rel=1e-10)
        assert norm == pytest.approx(metric.norm(x), rel=1e-9)
        assert gain == pytest.approx(b @ x - 0.5 * x @ H @ x, rel=1e-9)


def test_a_short_radius_ends_the_way():
    H, metric, b = random_system(0)
    whole = follow(lambda p: H @ p, metric, b, radius=1e9, reduction=1e-12, most=40)
    radius = 0.3 * whole.end()[2]
    short = follow(lambda p: H @ p, metric, b, radius=radius, reduction=1e-12, most=40)
    assert not short.inside
    assert len(short.legs) < len(whole.legs)
    assert error(short.end()[0], whole.within(radius)[0]) < 1e-13


def test_negative_curvature_is_followed_to_the_radius():
    H, metric, b = random_system(1, lowest=-20.0)
    path = follow(lambda p: H @ p, metric, b, radius=2.0, reduction=1e-12, most=40)
    x, gain, norm = path.end()
    assert norm == pytest.approx(2.0, rel=1e-13)
    assert gain == pytest.approx(b @ x - 0.5 * x @ H @ x, rel=1e-12)
    assert gain > 0


@CASES
def test_reaches_the_map(seed, D, R, N, weighted, gamma):
    p = problem(seed, D=D, R=R, N=N, weighted=weighted, gamma=gamma)
    start = objective(p)
    p, infos = run(MatrixFree(), p)
    assert oracles.relative_gradient(p) < 1e-10
    assert infos[-1].objective == pytest.approx(objective(p), rel=1e-13)
    values = [start, *(info.objective for info in infos)]
    assert all(b <= a * (1 + 1e-13) for a, b in pairwise(values))


@pytest.mark.parametrize("seed", [0, 1, 4, 6, 10])
def test_same_objective_as_the_dense_solver(seed):
    p = problem(seed, D=2 + seed % 3, R=1 + seed % 3, N=60)
    a, _ = run(GaussNewton(), p)
    b, _ = run(MatrixFree(), p)
    assert objective(b) == pytest.approx(objective(a), rel=1e-12)


@pytest.mark.parametrize("tens", range(5))
def test_the_objective_never_rises(tens):
    for seed in range(10 * tens, 10 * tens + 10):
        p = problem(
            seed,
            D=1 + seed % 4,
            R=1 + seed % 3,
            N=12 + seed % 30,
            weighted=seed % 2 == 1,
            gamma=10.0 ** (-(seed % 8)) if seed % 3 else None,
            noise=0.3 if seed % 5 else 0.0,
        )
        values, solver = [objective(p)], MatrixFree()
        with p.rows() as rows:
            state = solver.start(rows, p.network)
            for _ in range(12):
                state, _ = solver.step(rows, state, p.beta, p.gamma)
                values.append(objective(p.at(state.network.cores)))
        assert all(b <= a * (1 + 1e-13) for a, b in pairwise(values)), seed


@CASES
def test_a_step_reports_what_it_met(seed, D, R, N, weighted, gamma):
    p = problem(seed, D=D, R=R, N=N, weighted=weighted, gamma=gamma)
    for steps in (0, 3):
        before = run(MatrixFree(), p, steps=steps, tol=0.0)[0] if steps else p
        after, infos = run(MatrixFree(), p, steps=steps + 1, tol=0.0)
        assert infos[-1].gradient == pytest.approx(oracles.relative_gradient(before), rel=1e-6)
        assert infos[-1].objective == pytest.approx(objective(after), rel=1e-13)
        misfit = p.y - oracles.response(after.cores, p.phi)
        assert infos[-1].rss == pytest.approx(p.w @ misfit**2, rel=1e-12)


@pytest.mark.parametrize("D", [1, 2, 3])
def test_a_flat_prior_is_legal(D):
    p = problem(2, D=D, R=1, N=80, gamma=0.0)
    p, infos = run(MatrixFree(), p, tol=1e-9)
    assert infos[-1].gradient <= 1e-9
    if D == 1:
        best, *_ = np.linalg.lstsq(oracles.jacobian(p.cores, p.phi), p.y, rcond=None)
        assert error(p.v, best) < 1e-10


def test_a_flat_prior_with_an_unseen_category_is_legal():
    """Rows say nothing about one weight, and neither does the prior."""
    p = problem(3, bases=(Indicator(3), oracles.MIX[0]), R=2, N=40, gamma=0.0)
    u = p.u.copy()
    u[0] = np.minimum(u[0], 1.0)
    p = oracles.Problem(p.bases, u, p.y, None, p.cores, p.beta, p.gamma)
    p, infos = run(MatrixFree(), p, tol=1e-9)
    assert infos[-1].gradient <= 1e-9


def test_a_dead_term_stays_harmless():
    p = problem(1, D=3, R=2)
    cores = [V.copy() for V in p.cores]
    for V in cores:
        V[1] = 0.0
    p, infos = run(MatrixFree(), p.at(cores), tol=1e-9)
    assert infos[-1].gradient <= 1e-9
    for V in p.cores:
        np.testing.assert_array_equal(V[1], 0.0)


def test_stalls_where_nothing_can_be_gained():
    p = problem(0, D=2, R=1)
    p = oracles.Problem(p.bases, p.u, 0.0 * p.y, None, p.cores, p.beta, p.gamma)
    _, infos = run(MatrixFree(), p.at(0.0 * V for V in p.cores), steps=1)
    assert infos[-1].stalled
    assert (infos[-1].objective, infos[-1].gradient) == (0.0, 0.0)


def test_threads_and_memory_do_not_change_a_bit():
    p = problem(4, D=3, R=3, N=900, weighted=True)
    states = [
        run(MatrixFree(), p, steps=12, tol=0.0, **options)[0].v
        for options in ({}, {"threads": 2}, {"memory_budget": 0})
    ]
    assert all(np.array_equal(states[0], v) for v in states[1:])


class Recorded(MemoryRows.__base__):
    """Rows whose kernels travel, as they do to a cluster."""

    keeps_blocks = False

    def __init__(self, rows):
        self._rows, self.passes = rows, 0
        for name in ("bases", "n_rows", "total_weight", "memory_budget", "engine", "likelihood"):
            if hasattr(rows, name):
                setattr(self, name, getattr(rows, name))

    def reduce(self, kernel, *, light=False):
        self.passes += 1
        return self._rows.reduce(cloudpickle.loads(cloudpickle.dumps(kernel)), light=light)

    def close(self):
        self._rows.close()


def test_kernels_travel():
    p = problem(4, D=3, R=3, N=900, weighted=True)
    here, _ = run(MatrixFree(), p, steps=12, tol=0.0)
    solver = MatrixFree()
    with Recorded(p.rows()) as rows:
        state = solver.start(rows, p.network)
        for _ in range(12):
            state, _ = solver.step(rows, state, p.beta, p.gamma)
    assert np.array_equal(oracles.vec(state.network.cores), here.v)


def test_a_step_leaves_its_state_alone():
    p, solver = problem(1, D=3, R=2, N=60), MatrixFree()
    with p.rows() as rows:
        state = solver.start(rows, p.network)
        for _ in range(6):
            before = oracles.vec(state.network.cores)
            first, info = solver.step(rows, state, p.beta, p.gamma)
            again, second = solver.step(rows, state, p.beta, p.gamma)
            assert info == second
            assert np.array_equal(first.network.vector, again.network.vector)
            assert np.array_equal(oracles.vec(state.network.cores), before)
            state = first


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("curvature", ["ggn", "last"])
def test_the_estimator_streams_to_the_bits_of_memory(curvature):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 3, (70_000, 3))
    y = np.sin(X[:, 0]) * X[:, 1] + 0.2 * rng.standard_normal(len(X))
    options = {
        "rank": 3,
        "n_basis": 4,
        "solver": "matrix_free",
        "curvature": curvature,
        "max_sweeps": 5,
        "random_state": 0,
    }
    memory = TNKMRegressor(**options).fit(X, y).machines_[0].fit
    blocks = BlockSource(lambda: iter([(X[:999], y[:999]), (X[999:], y[999:])]))
    streamed = TNKMRegressor(**options, memory_budget=0).fit_rows(blocks).machines_[0].fit
    assert all(map(np.array_equal, memory.cores, streamed.cores))
    assert memory.history == streamed.history
    assert memory.log_evidence == streamed.log_evidence


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_estimator_converges():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 3, (400, 2))
    y = np.sin(X[:, 0]) * X[:, 1] + 0.2 * rng.standard_normal(len(X))
    a = TNKMRegressor(rank=4, solver="matrix_free", random_state=0).fit(X, y)
    b = TNKMRegressor(rank=4, solver="gauss_newton", random_state=0).fit(X, y)
    assert a.machines_[0].fit.gradient <= 1e-6
    assert a.log_evidence_ == pytest.approx(b.log_evidence_, abs=1e-2)


@pytest.mark.parametrize(
    ("n_rows", "sizes", "expected"),
    [
        (500, [6] * 5, "gauss_newton"),
        (4_999, [6] * 5, "gauss_newton"),
        (4_999, [40] * 20, "als"),
        (5_000, [6] * 5, "matrix_free"),
        (10**6, [6] * 5, "matrix_free"),
        (10**8, [6] * 5, "als"),
    ],
)
def test_auto_is_chosen_by_size(n_rows, sizes, expected):
    chosen = config.Config.of(TNKMRegressor(rank=4).get_params(deep=False), len(sizes))
    assert chosen.for_table(sizes, n_rows, 1.0).solver == config.SOLVERS[expected]
