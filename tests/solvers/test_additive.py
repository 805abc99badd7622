"""The additive part beside the CPD, against dense formulas and other libraries."""

import warnings
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import BayesianRidge

from tensorlace import Categorical, InputError, SizeError, TNKMRegressor
from tensorlace.errors import CurvatureWarning
from tensorlace.fitting.memory_check import check_size
from tensorlace.laplace.curvature import GGN, BlockDiagonal, Diag, Full, Last
from tensorlace.laplace.prior_groups import per_column, per_column_and_order
from tensorlace.networks.additive import Additive
from tensorlace.networks.cpd import CPD
from tensorlace.networks.network import from_vector, to_vector
from tensorlace.networks.sum import Sum
from tensorlace.solvers.als import core_system, sweep
from tensorlace.solvers.gauss_newton import GaussNewton
from tensorlace.solvers.linearisation import linearise, residual_curvature
from tensorlace.solvers.matrix_free import MatrixFree
from tensorlace.solvers.products import block_grams, point, product
from tensorlace.solvers.solver import State
from tensorlace.sources import NpySource
from tests.helpers.oracles import error, problem


def additive_problem(seed, *, weighted=True, D=3, R=2, N=60):
    p = problem(seed, D=D, R=R or 1, N=N, weighted=weighted)
    if not R:
        p = replace(p, cores=tuple(V[:0] for V in p.cores), gamma=tuple(g[:0] for g in p.gamma))
    rng = np.random.default_rng(seed)
    size = sum(V.shape[1] for V in p.cores)
    cores = (*p.cores, 0.3 * rng.standard_normal((1, size)))
    gamma = (*p.gamma, np.full((1, size), 0.7))
    return replace(p, cores=cores, gamma=gamma)


def response(p, cores):
    """Sum over terms and columns, written out."""
    phi = p.phi
    f = sum(
        np.prod([cores[d][r] @ phi[d] for d in range(len(phi))], axis=0)
        for r in range(len(cores[0]))
    )
    return f + cores[-1][0] @ np.concatenate(phi)


def numeric_jacobian(p, step=1e-30):
    """By complex steps."""
    v = to_vector(p.cores)
    out = []
    for k in range(len(v)):
        moved = v.astype(complex)
        moved[k] += 1j * step
        out.append(response(p, from_vector(moved, p.cores)).imag / step)
    return np.array(out)


@pytest.mark.parametrize("R", [0, 2])
@pytest.mark.parametrize("seed", range(4))
def test_response_and_jacobian(seed, R):
    p = additive_problem(seed, R=R)
    assert error(p.network.response(p.phi), response(p, p.cores)) < 1e-14
    assert error(p.network.jacobian(p.phi), numeric_jacobian(p)) < 1e-14


@pytest.mark.parametrize("R", [0, 2])
@pytest.mark.parametrize("seed", range(4))
def test_sums_over_rows(seed, R):
    p = additive_problem(seed, R=R)
    A, w = numeric_jacobian(p), p.w
    residual = p.y - response(p, p.cores)
    G = (A * w) @ A.T
    ends = np.cumsum([0, *(V.size for V in p.cores)])
    blocks = [G[a:b, a:b] for a, b in pairwise(ends)]
    direction = np.random.default_rng(seed).standard_normal(len(A))
    with p.rows() as rows:
        linear, at = linearise(rows, p.network), point(rows, p.network)
        assert error(linear.dense_gram(), G) < 1e-13
        for sums in (linear, at):
            assert error(sums.slope, A @ (w * residual)) < 1e-12
            assert error(sums.target, A @ (w * p.y)) < 1e-13
            assert abs(sums.rss / np.sum(w * residual**2) - 1) < 1e-13
        assert error(product(rows, at, direction), G @ direction) < 1e-12
        E = residual_curvature(rows, p.network)
        exact = product(rows, at, direction, exact=True)
        assert error(exact, (G + E) @ direction) < 1e-12
        for d, (block, gram) in enumerate(zip(blocks, block_grams(rows, p.network), strict=True)):
            assert error(gram, block) < 1e-13
            system = core_system(rows, p.network, d)
            assert error(system.gram, block) < 1e-13
            slope = (A @ (w * residual))[ends[d] : ends[d + 1]]
            assert error(system.residual.ravel(), slope) < 1e-12
        diag = Diag().evaluate(rows, p.network, None)
        assert error(diag.squares, np.diagonal(G)) < 1e-13
        for curvature in (GGN(), Full(), BlockDiagonal(), Last(1), Last(3)):
            stat = curvature.evaluate(rows, p.network, None)
            assert abs(stat.rss / np.sum(w * residual**2) - 1) < 1e-13


def hessian(p, cores):
    """Of the objective, by complex steps of the analytic gradient."""
    g, v = to_vector(p.gamma), to_vector(cores)

    def gradient(x):
        c = from_vector(x, cores)
        A = np.concatenate(
            [
                *(
                    (
                        np.prod([c[k] @ p.phi[k] for k in range(len(p.phi)) if k != d], axis=0)[
                            :, None
                        ]
                        * p.phi[d]
                    ).reshape(-1, len(p.y))
                    for d in range(len(p.phi))
                ),
                *p.phi,
            ]
        )
        return -p.beta * A @ (p.w * (p.y - response(p, c))) + g * x

    out = []
    for k in range(len(v)):
        moved = v.astype(complex)
        moved[k] += 1e-30j
        out.append(gradient(moved).imag / 1e-30)
    return np.array(out)


def test_full_hessian():
    p = additive_problem(1)
    with p.rows() as rows:
        G, E = linearise(rows, p.network).dense_gram(), residual_curvature(rows, p.network)
    H = p.beta * (G + E) + np.diag(to_vector(p.gamma))
    assert error(H, hessian(p, p.cores)) < 1e-12


@pytest.mark.parametrize("budget", [0, 1 << 30])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("R", [0, 2])
def test_a_sweep_lowers_the_objective_and_knows_it(R, seed, budget):
    p = additive_problem(seed, R=R)
    network = p.network
    with p.rows(memory_budget=budget) as rows:
        before = np.inf
        for _ in range(5):
            network, info = sweep(rows, network, p.beta, p.gamma)
            cores = network.cores
            penalty = sum(np.sum(g * V * V) for g, V in zip(p.gamma, cores, strict=True))
            rss = np.sum(p.w * (p.y - response(p, cores)) ** 2)
            assert abs(info.objective / (0.5 * (p.beta * rss + penalty)) - 1) < 1e-11
            assert info.objective <= before * (1 + 1e-13)
            before = info.objective


@pytest.mark.parametrize("R", [0, 2])
def test_solvers_meet(R):
    p = additive_problem(2, N=300, R=R)
    ends = []
    for solver in (GaussNewton(), MatrixFree()):
        with p.rows() as rows:
            state: State = solver.start(rows, p.network)
            for _ in range(200):
                state, info = solver.step(rows, state, p.beta, p.gamma)
                if info.gradient < 1e-10 or info.stalled:
                    break
        ends.append(info.objective)
    assert abs(ends[0] / ends[1] - 1) < 1e-9


def test_balancing_leaves_it_alone():
    p = additive_problem(0)
    balanced = p.network.balanced(p.gamma).cores
    np.testing.assert_array_equal(balanced[-1], p.cores[-1])
    assert error(response(p, balanced), response(p, p.cores)) < 1e-13


def test_groups_of_its_own():
    network = Sum((CPD((np.ones((2, 3)), np.ones((2, 2)))), Additive.zero((3, 2))))
    groups = per_column(network)
    assert groups.index.tolist() == [0] * 6 + [1] * 4 + [2] * 3 + [3] * 2
    assert groups.column.tolist() == [0, 1, -1, -1]
    gamma = np.array([1.0, 100.0, 7.0, 9.0])
    pinned = groups.pinned(gamma)
    assert pinned[2:].tolist() == [7.0, 9.0]
    assert pinned[0] == pytest.approx(pinned[1])
    assert len(per_column_and_order(network).count) == 10


def linear_table(n=400, D=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D))
    return X, X @ rng.standard_normal(D) + 0.5 * rng.standard_normal(n)


@pytest.mark.parametrize("solver", ["gauss_newton", "als", "matrix_free"])
def test_linear_data(solver):
    X, y = linear_table(2400)
    model = TNKMRegressor(
        rank=1, n_basis=2, basis="legendre", warp="standardise", additive=True, solver=solver
    ).set_params(tol=1e-3, random_state=0)
    ours = model.fit(X[:400], y[:400]).predict_dist(X[400:])
    mean, std = BayesianRidge().fit(X[:400], y[:400]).predict(X[400:], return_std=True)
    assert -ours.logpdf(y[400:]).mean() < -norm.logpdf(y[400:], mean, std).mean() + 0.02


def test_streams_have_the_same_bits(tmp_path):
    X, y = linear_table(9000)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    source = NpySource(tmp_path / "X.npy", tmp_path / "y.npy")
    fits = []
    for threads, budget in ((1, 1 << 30), (2, 0)):
        model = TNKMRegressor(
            rank=2, additive=True, solver="als", max_sweeps=8, tol=1, random_state=0, n_jobs=threads
        ).set_params(memory_budget=budget)
        fits.append(model.fit_rows(source).machines_[0].fit.cores)
    for a, b in zip(*fits, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("curvature", ["ggn", "block", "diag", "last", "full"])
def test_predictions_of_every_curvature(curvature):
    X, y = linear_table(200, 3)
    model = TNKMRegressor(
        rank=2, n_basis=4, additive=True, curvature=curvature, tol=1e-2, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvatureWarning)  # the full Hessian may be indefinite
        mean, std = model.fit(X, y).predict(X, return_std=True)
    machine = model.machines_[0]
    phi = [
        c.phi(u) for c, u in zip(machine.columns.columns, machine.columns.variables(X), strict=True)
    ]
    f = machine.target.inverse(machine.fit.network.response(phi))
    assert error(mean, f) < 1e-13
    G = machine.fit.network.jacobian(phi, machine.fit.bayesian_cores)
    variance = machine.fit.posterior.quad(G) + 1 / machine.fit.beta
    assert error(std, np.sqrt(variance) * machine.target.scale) < 1e-12


@pytest.mark.parametrize("solver", ["gauss_newton", "als", "matrix_free"])
@pytest.mark.parametrize("curvature", ["ggn", "block", "full"])
@pytest.mark.parametrize("groups", ["all", "rank", "order", "column", "column_order"])
def test_without_products_it_is_linear_regression(solver, curvature, groups):
    """With the precisions that it learned, the posterior of a linear model in closed form."""
    X, y = linear_table(150, 3)
    model = TNKMRegressor(
        rank=0, n_basis=4, additive=True, solver=solver, curvature=curvature, prior_groups=groups
    ).set_params(tol=1e-3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        mean, std = model.fit(X, y).predict(X, return_std=True)
    (machine,) = model.machines_
    fit, target = machine.fit, machine.target
    pairs = zip(machine.columns.columns, machine.columns.variables(X), strict=True)
    phi = np.concatenate([c.phi(u) for c, u in pairs])
    covariance = np.linalg.inv(fit.beta * phi @ phi.T + np.diag(fit.gamma[-1][0]))
    weights = fit.beta * covariance @ phi @ target(y)
    f = target.inverse(weights @ phi)
    variance = np.sum(phi * (covariance @ phi), axis=0) + 1 / fit.beta
    # functions that were pruned may have had an effect of a ten-thousandth of the noise
    tolerance = 1e-8 if groups == "all" else 2e-4
    assert np.max(np.abs(mean - f) / std) < tolerance
    assert error(std, np.sqrt(variance) * target.scale) < tolerance


def test_a_line_without_products_is_bayesian_ridge_regression():
    X, y = linear_table(2300)
    model = TNKMRegressor(rank=0, n_basis=2, basis="legendre", warp="standardise", additive=True)
    ours = model.fit(X[:300], y[:300]).predict_dist(X[300:])
    mean, std = BayesianRidge().fit(X[:300], y[:300]).predict(X[300:], return_std=True)
    theirs = -norm.logpdf(y[300:], mean, std).mean()
    assert abs(-ours.logpdf(y[300:]).mean() - theirs) < 1e-3


def test_no_products_and_nothing_else_is_an_error():
    X, y = linear_table(50, 2)
    with pytest.raises(InputError, match="leaves no model: give additive=True"):
        TNKMRegressor(rank=0).fit(X, y)
    with pytest.raises(InputError, match='give "ggn"'):
        TNKMRegressor(rank=0, additive=True, curvature="last").fit(X, y)


def test_a_value_never_seen_is_unsure_without_products():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(3, size=90), rng.standard_normal(90)])
    y = X[:, 0] + X[:, 1] + 0.1 * rng.standard_normal(90)
    kinds = {0: Categorical()}
    model = TNKMRegressor(rank=0, additive=True, columns=kinds, random_state=0).fit(X, y)
    _, std = model.predict([[1.0, 0.0], [7.0, 0.0]], return_std=True)
    assert std[1] > 3 * std[0]
    draws = model.sample_y([[1.0, 0.0], [7.0, 0.0]], 4000, random_state=0)
    np.testing.assert_allclose(draws.std(axis=1), std, rtol=0.1)


def test_the_additive_part_counts_for_memory():
    with pytest.raises(SizeError, match="500,000 weights"):
        check_size([100] * 5000, [0] * 5000, GGN(), GaussNewton(), 10**6, rank=0, additive=True)
