"""Every registered curvature: one contract for the posterior that it gives, against dense algebra.

The Hessian itself is held against derivatives in ``tests/laplace``; here it is read off the
posterior, so that a curvature without an oracle of its own is tested too.
"""

import numpy as np
import pytest

from tensorlace.fitting.registry import CURVATURES, SOLVERS, curvature_named
from tensorlace.laplace.factorisation import Truncation
from tests.helpers import oracles
from tests.helpers.oracles import error, problem

KEEP_ALL = Truncation()


def core(name):
    """The curvature, of the last core where it is to be told which."""
    return curvature_named(name, -1, 3)


def at_map(p):
    """The problem at its MAP, where every Hessian is positive."""
    solver = SOLVERS["gauss_newton"]
    with p.rows() as rows:
        state = solver.start(rows, p.network)
        for _ in range(200):
            state, info = solver.step(rows, state, p.beta, p.gamma)
            if info.gradient < 1e-13 or info.stalled:
                break
    return p.at(state.network.cores)


@pytest.fixture(scope="module", params=[(60, False), (14, True)], ids=["many", "few"])
def p(request):
    N, weighted = request.param
    return at_map(problem(2, D=3, R=2, N=N, weighted=weighted, gamma=None))


@pytest.fixture(params=list(CURVATURES))
def evaluated(request, p):
    """Sums over the rows, the prior precisions of the Bayesian weights, and their positions."""
    curvature = core(request.param)
    at = oracles.positions(p.cores, curvature.bayesian_cores(len(p.cores)))
    with p.rows() as rows:
        return curvature.evaluate(rows, p.network, None), p.g[at], at


def test_the_posterior_is_that_of_one_matrix(evaluated, p):
    stat, gamma, at = evaluated
    q = stat.posterior(p.beta, gamma, KEEP_ALL)
    P = len(at)
    assert q.n_weights == P
    assert q.n_dropped == 0
    S = q.solve(np.eye(P))
    assert error(S, S.T) < 1e-11
    assert np.all(np.linalg.eigvalsh(S) > 0.0)
    rng = np.random.default_rng(0)
    B = rng.standard_normal((P, 4))
    assert error(q.solve(B), S @ B) < 1e-11
    assert error(q.quad(B), np.diagonal(B.T @ S @ B)) < 1e-11
    assert error(q.variances(), np.diagonal(S)) < 1e-11
    assert q.trace == pytest.approx(np.trace(S), rel=1e-11)
    assert q.logdet == pytest.approx(-np.linalg.slogdet(S)[1], rel=1e-9)
    assert np.max(np.abs(oracles.covariance_z(q.sample(rng, 20_000), S))) < 5


def test_the_prior_is_a_diagonal_beside_the_rows(evaluated, p):
    """``H = β C + Γ`` with a C that knows no precision: one pass serves all of them.

    With less noise precision or more prior precision, H stays positive.
    """
    stat, gamma, at = evaluated
    H = np.linalg.inv(stat.posterior(p.beta, gamma, KEEP_ALL).solve(np.eye(len(at))))
    C = (H - np.diag(gamma)) / p.beta
    for beta, shift in ((0.5 * p.beta, 0.0), (p.beta, 0.7)):
        other = stat.posterior(beta, gamma + shift, KEEP_ALL).solve(np.eye(len(at)))
        assert error(np.linalg.inv(other), beta * C + np.diag(gamma + shift)) < 1e-9


def test_residuals(evaluated, p):
    """Those at the cores, and what the linearised model expects with its own uncertainty."""
    stat, gamma, at = evaluated
    rss = p.w @ (p.y - oracles.response(p.cores, p.phi)) ** 2
    assert stat.rss == pytest.approx(rss, rel=1e-12)
    q = stat.posterior(p.beta, gamma, KEEP_ALL)
    A = oracles.jacobian(p.cores, p.phi)[:, at]
    expected = rss + np.sum(p.w * np.einsum("np,pn->n", A, q.solve(A.T)))
    assert stat.expected_rss(q) == pytest.approx(expected, rel=1e-10)


def test_rough_shares_of_determined_weights(evaluated, p):
    stat, gamma, _ = evaluated
    rough = stat.determined(p.beta, gamma)
    if rough is not None:
        exact = 1.0 - gamma * stat.posterior(p.beta, gamma, KEEP_ALL).variances()
        np.testing.assert_allclose(rough, exact, atol=1e-7)


def test_a_higher_threshold_never_adds_variance(evaluated, p):
    stat, gamma, at = evaluated
    B = np.random.default_rng(1).standard_normal((len(at), 5))
    before, dropped = stat.posterior(p.beta, gamma, KEEP_ALL).quad(B), 0
    for threshold in np.geomspace(0.1, 1e8, 15):
        q = stat.posterior(p.beta, gamma, Truncation(threshold))
        assert np.all(q.quad(B) <= before * (1 + 1e-12) + 1e-14)
        assert q.n_dropped >= dropped
        before, dropped = q.quad(B), q.n_dropped
    assert dropped == len(at)
    np.testing.assert_array_equal(before, 0.0)


@pytest.mark.parametrize("name", CURVATURES)
def test_threads_and_memory_change_no_bit(name):
    p = problem(5, D=3, R=2, N=300)
    curvature = core(name)
    at = oracles.positions(p.cores, curvature.bayesian_cores(3))
    found = []
    for options in ({}, {"threads": 2}, {"memory_budget": 0}):
        with p.rows(**options) as rows:
            stat = curvature.evaluate(rows, p.network, None)
        found.append(stat.posterior(p.beta, p.g[at], KEEP_ALL).variances())
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
