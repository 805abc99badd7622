"""Alternating least squares: descent, stationarity, and what it says about itself."""

import numpy as np
import pytest

from tensorlace.networks.cpd import balance
from tensorlace.solvers.als import ALS, sweep
from tests.helpers import oracles
from tests.helpers.oracles import error, objective, problem

PRIORS = pytest.mark.parametrize("gamma", [1.0, None], ids=["one prior", "prior per weight"])


def run(p, sweeps, tol=0.0):
    """Cores after at most so many sweeps, and what the last one saw."""
    solver = ALS()
    with p.rows() as rows:
        state = solver.start(rows, p.network)
        for _ in range(sweeps):
            state, info = solver.step(rows, state, p.beta, p.gamma)
            if info.gradient <= tol:
                break
    return p.at(state.network.cores), info


@pytest.mark.parametrize("tens", range(10))
def test_the_objective_never_rises(tens):
    """100 seeds: 1 to 4 columns, weak to strong priors, with weights, noise-free, more weights."""
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
        before = objective(p)
        with p.rows() as rows:
            for _ in range(8):
                network, _ = sweep(rows, p.network, p.beta, p.gamma)
                p = p.at(network.cores)
                now = objective(p)
                assert now <= before * (1 + 1e-13), seed
                before = now


def dense_sweep(p):
    """A sweep by its definition, eq. (wk_update_specs), with the gradient met at each core."""
    slopes, sizes = [], []
    for d, V in enumerate(p.cores):
        at = oracles.positions(p.cores, (d,))
        A = oracles.jacobian(p.cores, p.phi)[:, at]
        slopes.append(oracles.gradient(p)[at])
        sizes += [p.beta * A.T @ (p.w * p.y), p.g[at] * p.v[at]]
        H = p.beta * A.T @ (p.w[:, None] * A) + np.diag(p.g[at])
        new = np.linalg.solve(H, p.beta * A.T @ (p.w * p.y))
        p = p.at(oracles.replaced(p.cores, d, new.reshape(V.shape)))
    gradient = np.linalg.norm(np.concatenate(slopes)) / np.linalg.norm(np.concatenate(sizes))
    return p.at(balance(p.cores, p.gamma)), gradient


@PRIORS
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("D", "R"), [(1, 1), (2, 3), (3, 2), (4, 2)])
def test_a_sweep_is_the_dense_sweep(gamma, weighted, D, R):
    p = problem(4, D=D, R=R, weighted=weighted, gamma=gamma)
    expected, gradient = dense_sweep(p)
    with p.rows() as rows:
        network, info = sweep(rows, p.network, p.beta, p.gamma)
    cores = network.cores
    assert error(oracles.vec(cores), expected.v) < 1e-12
    f = oracles.response(cores, p.phi)
    assert info.gradient == pytest.approx(gradient, rel=1e-12)
    assert info.objective == pytest.approx(objective(p.at(cores)), rel=1e-13)
    assert info.rss == pytest.approx(p.w @ (p.y - f) ** 2, rel=1e-13)
    assert not info.stalled


@PRIORS
@pytest.mark.parametrize("seed", [0, 1, 2, 3, 7, 10])
def test_reaches_the_map(gamma, seed):
    """Relative gradient, virial identity, balanced factors: what a Laplace approximation needs."""
    p = problem(seed, D=2 + seed % 3, R=1 + seed % 3, N=60, weighted=seed % 2 == 1, gamma=gamma)
    p, info = run(p, sweeps=1500, tol=1e-9)
    assert info.gradient <= 1e-9
    assert oracles.relative_gradient(p) <= 1e-9
    assert info.objective == pytest.approx(objective(p), rel=1e-14)
    f = oracles.response(p.cores, p.phi)
    virial = p.beta * f @ (p.w * (p.y - f))
    penalty = np.array([np.sum(g * V * V, axis=1) for g, V in zip(p.gamma, p.cores, strict=True)])
    np.testing.assert_allclose(penalty.sum(axis=1), virial, rtol=1e-7)
    np.testing.assert_allclose(penalty, np.tile(penalty[0], (len(p.cores), 1)), rtol=1e-13)


def test_one_column_is_solved_in_one_sweep():
    p = problem(0, D=1, R=1, gamma=None)
    A = oracles.jacobian(p.cores, p.phi)
    H = p.beta * A.T @ A + np.diag(p.g)
    p, _ = run(p, sweeps=1)
    assert error(p.v, np.linalg.solve(H, p.beta * A.T @ p.y)) < 1e-14
    assert run(p, sweeps=1)[1].gradient < 1e-15


def test_a_dead_term_stays_harmless():
    p = problem(1, D=3, R=2)
    cores = [V.copy() for V in p.cores]
    for V in cores:
        V[1] = 0.0
    p, info = run(p.at(cores), sweeps=5)
    assert np.isfinite(info.objective)
    for V in p.cores:
        np.testing.assert_array_equal(V[1], 0.0)


def test_a_flat_prior_is_legal():
    """gamma = 0 with one column is plain least squares."""
    p = problem(2, D=1, R=1, gamma=0.0)
    p, info = run(p, sweeps=2)
    best, *_ = np.linalg.lstsq(oracles.jacobian(p.cores, p.phi), p.y, rcond=None)
    assert error(p.v, best) < 1e-13
    assert info.gradient < 1e-14


def test_the_arguments_are_left_alone():
    p = problem(0, weighted=True)
    before = p.v.copy()
    run(p, sweeps=2)
    np.testing.assert_array_equal(p.v, before)
