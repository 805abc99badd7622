"""Gauss-Newton: one direction however it is solved, and the same MAP as anybody else."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from tensorlace.networks.cpd import balance
from tensorlace.networks.network import from_vector
from tensorlace.solvers.als import ALS
from tensorlace.solvers.gauss_newton import GaussNewton, _directions
from tensorlace.solvers.linearisation import Linearisation, bend, linearise, residual_curvature
from tests.helpers import oracles
from tests.helpers.oracles import error, objective, problem

CASES = pytest.mark.parametrize(
    ("seed", "D", "R", "N", "weighted", "gamma"),
    [
        (0, 2, 1, 60, False, 1.0),  # primal: P <= N
        (1, 3, 2, 60, True, 1.0),
        (6, 3, 2, 80, False, None),
        (8, 4, 2, 60, True, None),
        (0, 2, 2, 8, False, 1.0),  # dual: P > N
        (1, 3, 3, 15, True, 1.0),
        (6, 4, 2, 20, False, None),
    ],
)


def run(solver, p, steps=300, tol=1e-12):
    """Follow a solver to the end: the problem there, every info, the last state."""
    infos = []
    with p.rows() as rows:
        state = solver.start(rows, p.network)
        for _ in range(steps):
            state, info = solver.step(rows, state, p.beta, p.gamma)
            infos.append(info)
            if info.gradient <= tol or info.stalled:
                break
    return p.at(state.network.cores), infos


@CASES
def test_reaches_the_map(seed, D, R, N, weighted, gamma):
    p = problem(seed, D=D, R=R, N=N, weighted=weighted, gamma=gamma)
    with p.rows() as rows:
        assert (linearise(rows, p.network).gram is None) == (p.v.size > N)
    start = objective(p)
    p, infos = run(GaussNewton(), p)
    assert oracles.relative_gradient(p) < 1e-11
    assert infos[-1].objective == pytest.approx(objective(p), rel=1e-14)
    values = [start, *(info.objective for info in infos)]
    assert all(b <= a * (1 + 1e-13) for a, b in pairwise(values))
    f = oracles.response(p.cores, p.phi)
    virial = p.beta * f @ (p.w * (p.y - f))
    penalty = np.array([np.sum(g * V * V, axis=1) for g, V in zip(p.gamma, p.cores, strict=True)])
    np.testing.assert_allclose(penalty.sum(axis=1), virial, rtol=1e-9)
    assert error(penalty, np.tile(penalty[0], (D, 1))) < 1e-13


@CASES
def test_a_step_reports_what_it_met(seed, D, R, N, weighted, gamma):
    p = problem(seed, D=D, R=R, N=N, weighted=weighted, gamma=gamma)
    p = p.at(balance(p.cores, p.gamma))
    after, (info,) = run(GaussNewton(), p, steps=1)
    assert info.gradient == pytest.approx(oracles.relative_gradient(p), rel=1e-12)
    assert info.objective == pytest.approx(objective(after), rel=1e-13)
    penalty = [np.sum(g * V * V, axis=1) for g, V in zip(p.gamma, after.cores, strict=True)]
    assert error(penalty, np.tile(penalty[0], (D, 1))) < 1e-13
    misfit = p.y - oracles.response(after.cores, p.phi)
    assert info.rss == pytest.approx(p.w @ misfit**2, rel=1e-13)


@CASES
def test_the_linearisation_is_the_dense_one(seed, D, R, N, weighted, gamma):
    p = problem(seed, D=D, R=R, N=N, weighted=weighted)
    A, misfit = oracles.jacobian(p.cores, p.phi), p.y - oracles.response(p.cores, p.phi)
    with p.rows() as rows:
        linear = linearise(rows, p.network)
    assert error(linear.dense_gram(), A.T @ (p.w[:, None] * A)) < 1e-13
    assert error(linear.slope, A.T @ (p.w * misfit)) < 1e-13
    assert error(linear.target, A.T @ (p.w * p.y)) < 1e-13
    assert linear.rss == pytest.approx(p.w @ misfit**2, rel=1e-13)
    if linear.rows is not None:
        assert error(linear.rows, (np.sqrt(p.w)[:, None] * A).T) < 1e-14


@pytest.mark.parametrize("damping", [0.0, 1e-3, 1.0])
@pytest.mark.parametrize("gamma", [1e-4, 1.0, None])
@pytest.mark.parametrize("seed", range(4))
def test_primal_and_dual_directions_agree(seed, gamma, damping):
    p = problem(seed, D=3, R=3, N=12, weighted=True, gamma=gamma)
    with p.rows() as rows:
        dual = linearise(rows, p.network)
    assert dual.gram is None
    primal = Linearisation(dual.dense_gram(), None, dual.slope, dual.target, dual.rss)
    slope, ridge = p.beta * dual.slope - p.g * p.v, (1 + damping) * p.g
    a, b = (_directions(linear, None, p.beta, ridge)(slope).x for linear in (primal, dual))
    A = oracles.jacobian(p.cores, p.phi)
    H = p.beta * A.T @ (p.w[:, None] * A) + np.diag(ridge)
    # what rounding of the slope alone does to the solution
    rounding = 20 * np.finfo(float).eps * np.linalg.norm(slope) / ridge.min()
    assert np.max(np.abs(a - np.linalg.solve(H, slope))) < rounding
    assert np.max(np.abs(b - a)) < rounding
    if gamma != 1e-4:
        assert error(b, a) < 1e-12


def test_newton_direction_solves_the_full_hessian():
    p, _ = run(GaussNewton(), problem(1, D=3, R=2, N=60, gamma=None))
    with p.rows() as rows:
        linear, E = linearise(rows, p.network), residual_curvature(rows, p.network)
    slope = np.random.default_rng(0).standard_normal(p.v.size)
    x = _directions(linear, E, p.beta, p.g)(slope).x
    assert error(x, np.linalg.solve(oracles.hessian(p), slope)) < 1e-10


@pytest.mark.parametrize("seed", [0, 1, 4, 6, 10])
def test_same_objective_as_als_from_the_same_start(seed):
    p = problem(seed, D=2 + seed % 3, R=1 + seed % 3, N=60)
    a, _ = run(ALS(), p, steps=1500, tol=1e-9)
    b, _ = run(GaussNewton(), p)
    assert objective(b) == pytest.approx(objective(a), rel=1e-13)


@CASES
def test_a_step_leaves_its_state_alone(seed, D, R, N, weighted, gamma):
    p = problem(seed, D=D, R=R, N=N, weighted=weighted, gamma=gamma)
    solver = GaussNewton()
    with p.rows() as rows:
        state = solver.prepare(rows, solver.start(rows, p.network), p.gamma)
        linear = state.linear
        arrays = [*state.network.cores, *(x for x in (linear.gram, linear.rows) if x is not None)]
        arrays += [linear.slope, linear.target, *p.gamma, *p.cores]
        before = [x.copy() for x in arrays]
        first, info = solver.step(rows, state, p.beta, p.gamma)
        assert all(map(np.array_equal, arrays, before))
        again, second = solver.step(rows, state, p.beta, p.gamma)
    assert info == second
    assert np.array_equal(first.network.vector, again.network.vector)
    assert not np.array_equal(first.network.vector, state.network.vector)


def test_stalls_where_nothing_can_be_gained():
    """A target of zero has its MAP at zero, where every step is as good as none."""
    p = problem(0, D=2, R=1)
    p = oracles.Problem(p.bases, p.u, 0.0 * p.y, None, p.cores, p.beta, p.gamma)
    p = p.at(0.0 * V for V in p.cores)
    _, infos = run(GaussNewton(), p, steps=1)
    assert infos[-1].stalled
    assert infos[-1].objective == 0.0
    assert infos[-1].gradient == 0.0


@pytest.mark.parametrize("seed", range(20))
def test_overshooting_does_not_zigzag(seed):
    """Where the prior rules, Gauss-Newton steps are twice too long: damping has to notice."""
    p = problem(seed, D=2 + seed % 3, R=2 + seed % 2, N=8 + seed % 12, gamma=0.3 + seed % 2)
    _, infos = run(GaussNewton(), p, steps=100, tol=1e-8)
    assert infos[-1].gradient <= 1e-8


@pytest.mark.parametrize(("D", "weighted"), [(1, False), (2, True), (5, False), (5, True)])
def test_bend_is_the_second_derivative_pulled_back(D, weighted):
    """Along a line the response is a polynomial of degree D: its values at D + 1 points say all."""
    p = problem(3, D=D, R=3, N=40, weighted=weighted, gamma=1.0)
    direction = np.random.default_rng(1).standard_normal(p.v.size)
    t = np.cos(np.pi * (np.arange(D + 3) + 0.5) / (D + 3))
    values = [oracles.response(from_vector(p.v + step * direction, p.cores), p.phi) for step in t]
    second = 2.0 * np.polynomial.polynomial.polyfit(t, np.array(values), D + 2)[2]
    with p.rows() as rows:
        found = bend(rows, p.network, direction)
    expected = oracles.jacobian(p.cores, p.phi).T @ (p.w * second)
    assert np.linalg.norm(found - expected) <= 1e-12 * (
        np.linalg.norm(expected) + np.linalg.norm(p.v)
    )


def test_bent_steps_follow_a_valley():
    """Noise-free products of many columns: the same steps go much further on the curve."""
    rng = np.random.default_rng(0)
    ratios = []
    for seed in range(5):
        p = problem(seed, D=6, R=3, N=400, gamma=1e-4)
        p = replace(p, y=oracles.response(p.cores, p.phi))
        p = p.at(tuple(V + 0.5 * rng.standard_normal(V.shape) for V in p.cores))
        straight, bent = (
            run(GaussNewton(bends=bends), p, steps=30)[1][-1].objective for bends in (False, True)
        )
        ratios.append(bent / straight)
    assert np.exp(np.mean(np.log(ratios))) < 0.7
