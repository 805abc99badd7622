"""The five Hessians against complex steps and dense algebra."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from tensorlace.columns.bases import Chebyshev, Cosine, Fourier, Legendre
from tensorlace.laplace.curvature import GGN, BlockDiagonal, Diag, Full, Last, _Joint
from tensorlace.laplace.factorisation import Truncation
from tensorlace.laplace.posterior import LowRank, Root
from tensorlace.networks.cpd import CPD
from tensorlace.rows.memory import MemoryRows
from tensorlace.solvers.gauss_newton import GaussNewton
from tensorlace.solvers.linearisation import Linearisation, residual_curvature
from tests.helpers import oracles
from tests.helpers.oracles import error, problem, truncated

EVERY_CURVATURE = pytest.mark.parametrize("curvature", oracles.CURVATURES, ids=repr)
KEEP_ALL = Truncation()
EPS = np.finfo(float).eps


def at_map(p):
    """The problem at its MAP, where the full Hessian is positive."""
    solver = GaussNewton()
    with p.rows() as rows:
        state = solver.start(rows, p.network)
        for _ in range(200):
            state, info = solver.step(rows, state, p.beta, p.gamma)
            if info.gradient < 1e-13 or info.stalled:
                break
    return p.at(state.network.cores)


def evaluate(p, curvature, **options):
    with p.rows(**options) as rows:
        return curvature.evaluate(rows, p.network, None)


def posterior(p, curvature, truncation=KEEP_ALL):
    at = oracles.positions(p.cores, curvature.bayesian_cores(len(p.cores)))
    return evaluate(p, curvature).posterior(p.beta, p.g[at], truncation)


def gradients(p, curvature, n=25, seed=99):
    """Jacobian at new rows (P, n), of the Bayesian cores."""
    u = oracles.variables(p.bases, n, np.random.default_rng(seed))
    A = oracles.jacobian(p.cores, [b.phi(x) for b, x in zip(p.bases, u, strict=True)])
    return A[:, oracles.positions(p.cores, curvature.bayesian_cores(len(p.cores)))].T


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("D", "R"), [(1, 2), (2, 3), (3, 2), (4, 2)])
@pytest.mark.parametrize("N", [15, 40])
def test_the_full_hessian_is_the_complex_step(weighted, D, R, N):
    p = problem(D, D=D, R=R, N=N, weighted=weighted, gamma=None)
    stat = evaluate(p, Full())
    H = p.beta * (stat.linear.dense_gram() + stat.E) + np.diag(p.g)
    assert error(H, oracles.hessian(p)) < 1e-14
    np.testing.assert_array_equal(stat.E, stat.E.T)


@pytest.mark.parametrize("N", [15, 60])
def test_full_is_ggn_where_nothing_is_left_over(N):
    p = problem(1, D=3, R=2, N=N, weighted=True)
    p = replace(p, y=oracles.response(p.cores, p.phi))
    with p.rows() as rows:
        assert np.max(np.abs(residual_curvature(rows, p.network))) < 1e-13
    G = gradients(p, Full())
    full, ggn = posterior(p, Full()), posterior(p, GGN())
    assert full.n_dropped == 0
    assert error(full.quad(G), ggn.quad(G)) < 1e-11
    assert full.logdet == pytest.approx(ggn.logdet, rel=1e-12)


@pytest.mark.parametrize("gamma", [1e-3, 1.0, 30.0])
@pytest.mark.parametrize(("D", "R"), [(1, 1), (2, 1), (3, 1), (3, 2), (3, 3), (4, 2)])
def test_gauge_directions_of_ggn(D, R, gamma):
    """Moving scale from one factor of a term to another changes nothing: (D-1) R eigenvalues γ."""
    bases = (Cosine(4), Chebyshev(4), Fourier(5), Legendre(4))[:D]
    p = problem(3, bases=bases, R=R, N=200, gamma=gamma)
    lam = np.linalg.eigvalsh(oracles.precision_matrix(p, GGN())[0])
    noise = 10 * lam.size * EPS * lam[-1]
    gauge = (D - 1) * R
    assert np.sum(np.abs(lam - gamma) < noise) == gauge
    assert np.all(lam[gauge:] > gamma + 1e3 * noise)
    G = gradients(p, GGN())
    everything = posterior(p, GGN())
    without = posterior(p, GGN(), Truncation(gamma + 1e2 * noise))
    assert everything.n_dropped == 0
    assert without.n_dropped == gauge
    assert error(without.quad(G), everything.quad(G)) < 1e-11


def test_two_columns_have_more_gauge_freedom():
    """A CPD of two columns is a matrix product: any invertible R x R matrix fits in between."""
    p = problem(3, bases=(Cosine(5), Chebyshev(5)), R=3, N=200)
    lam = np.linalg.eigvalsh(oracles.precision_matrix(p, GGN())[0])
    assert np.sum(np.abs(lam - 1.0) < 10 * lam.size * EPS * lam[-1]) == 9
    G = gradients(p, GGN())
    without = posterior(p, GGN(), Truncation(1.0 + 1e-9))
    assert without.n_dropped == 9
    assert error(without.quad(G), posterior(p, GGN()).quad(G)) < 1e-11


@EVERY_CURVATURE
@pytest.mark.parametrize("gamma", [1.0, None])
@pytest.mark.parametrize(("D", "N", "weighted"), [(1, 40, True), (3, 60, False), (3, 14, True)])
def test_posteriors_are_the_dense_inverse(curvature, gamma, D, N, weighted):
    p = at_map(problem(2, D=D, R=2, N=N, weighted=weighted, gamma=gamma))
    H, at = oracles.precision_matrix(p, curvature)
    S, q = np.linalg.inv(H), posterior(p, curvature)
    assert q.n_dropped == 0
    assert q.n_weights == len(at)
    rng = np.random.default_rng(0)
    b, B = rng.standard_normal(len(at)), rng.standard_normal((len(at), 4))
    assert error(q.solve(b), S @ b) < 1e-11
    assert error(q.solve(B), S @ B) < 1e-11
    assert error(q.quad(B), np.diagonal(B.T @ S @ B)) < 1e-11
    assert error(q.variances(), np.diagonal(S)) < 1e-11
    assert q.trace == pytest.approx(np.trace(S), rel=1e-11)
    assert q.logdet == pytest.approx(np.linalg.slogdet(H)[1], rel=1e-11)
    G = gradients(p, curvature)
    assert error(q.quad(G), np.diagonal(G.T @ S @ G)) < 1e-11
    assert np.max(np.abs(oracles.covariance_z(q.sample(rng, 20_000), S))) < 5


@pytest.mark.parametrize(("N", "kind"), [(60, Root), (14, LowRank)])
def test_ggn_takes_the_cheaper_form(N, kind):
    assert isinstance(posterior(problem(2, D=3, R=2, N=N), GGN()), kind)


@pytest.mark.parametrize("gamma", [1e-6, 1e-2, 1.0])
def test_dense_and_low_rank_are_the_same_posterior(gamma):
    p = problem(2, D=3, R=2, N=14, weighted=True, gamma=gamma)
    low = evaluate(p, GGN())
    gram = low.linear.dense_gram()
    dense = replace(low, linear=replace(low.linear, gram=gram, rows=None))
    a, b = (stat.posterior(p.beta, p.g, KEEP_ALL) for stat in (low, dense))
    assert (type(a), type(b)) == (LowRank, Root)
    # forming the Gram matrix costs what its condition number says
    rounding = EPS * p.beta * np.linalg.norm(gram, 2) / gamma
    assert abs(a.logdet - b.logdet) < rounding
    assert error(a.variances(), b.variances()) < rounding
    assert low.expected_rss(a) == pytest.approx(dense.expected_rss(b), rel=rounding)


@EVERY_CURVATURE
@pytest.mark.parametrize("gamma", [1.0, None])
@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("N", [14, 60])
def test_truncation_keeps_the_directions_from_the_threshold_on(curvature, gamma, relative, N):
    p = at_map(problem(2, D=3, R=2, N=N, gamma=gamma))
    H, at = oracles.precision_matrix(p, curvature)
    lam = np.linalg.eigvalsh(H)
    k = np.argmax(np.diff(np.log(lam[:-1])))  # in the widest gap nobody can be unsure
    threshold = np.sqrt(lam[k] * lam[k + 1])
    S, logdet, dropped = truncated(H, threshold)
    q = posterior(p, curvature, Truncation(threshold / (lam[-1] if relative else 1.0), relative))
    assert q.n_dropped == dropped == k + 1
    assert error(q.solve(np.eye(len(at))), S) < 1e-11
    assert error(q.variances(), np.diagonal(S)) < 1e-11
    assert q.logdet == pytest.approx(logdet, rel=1e-11)
    draws = q.sample(np.random.default_rng(0), 20_000)
    assert np.max(np.abs(oracles.covariance_z(draws, S))) < 5


@EVERY_CURVATURE
@pytest.mark.parametrize("N", [14, 60])
def test_variance_never_rises_with_the_threshold(curvature, N):
    p = at_map(problem(2, D=3, R=2, N=N))
    H, _ = oracles.precision_matrix(p, curvature)
    G, stat = gradients(p, curvature), evaluate(p, curvature)
    gamma = np.ones(len(H))
    before = stat.posterior(p.beta, gamma, KEEP_ALL).quad(G)
    dropped = 0
    for threshold in np.geomspace(0.5, 2 * np.linalg.eigvalsh(H)[-1], 25):
        q = stat.posterior(p.beta, gamma, Truncation(threshold))
        assert np.all(q.quad(G) <= before * (1 + 1e-12) + 1e-14)
        assert q.n_dropped >= dropped
        before, dropped = q.quad(G), q.n_dropped
    assert dropped == len(H)
    np.testing.assert_array_equal(before, 0.0)


@pytest.mark.parametrize("seed", range(10))
def test_full_drops_exactly_what_is_not_positive(seed):
    p = problem(seed, D=3, R=2, N=30, gamma=0.1)  # far from the MAP
    H = oracles.hessian(p)
    S, logdet, dropped = truncated(H, 0.0)
    assert dropped > 0
    q = posterior(p, Full())
    assert q.n_dropped == dropped
    assert error(q.variances(), np.diagonal(S)) < 1e-9
    assert q.logdet == pytest.approx(logdet, rel=1e-11)


@pytest.mark.parametrize("curvature", [Full(), GGN(), BlockDiagonal(), Last(0)], ids=repr)
@pytest.mark.parametrize("off", [1e6, 1e10])
def test_switched_off_weights_cost_the_others_no_digits(curvature, off):
    """ARD sends prior precisions to 1e10; the variances of the other weights stay exact."""
    p = problem(0, bases=(Chebyshev(6),), R=1, N=40)
    gamma = np.array([[1.0, 1e-3, off, 1.0, off, 1e-3]])
    p = replace(p, gamma=(gamma,))
    G = gradients(p, curvature)
    A = oracles.jacobian(p.cores, p.phi)
    _, variance = oracles.bayesian_regression(A, p.y, p.w, p.beta, gamma[0], G.T)
    q = posterior(p, curvature)
    assert q.n_dropped == 0
    assert error(q.quad(G), variance) < 1e-14


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("N", [12, 60])
def test_a_flat_prior_drops_the_directions_without_data(seed, N):
    """With γ = 0 the gauge directions of GGN, and whatever the rows do not see, have no say."""
    p = problem(seed, bases=(Cosine(3), Chebyshev(3), Legendre(3)), R=2, N=N, gamma=0.0)
    rank = np.linalg.matrix_rank(oracles.jacobian(p.cores, p.phi), rtol=1e-10)
    assert rank == min(N, p.v.size - 4)
    assert posterior(p, GGN()).n_dropped == p.v.size - rank


@EVERY_CURVATURE
@pytest.mark.parametrize("truncation", [KEEP_ALL, Truncation(3.0)], ids=["all", "truncated"])
@pytest.mark.parametrize(("N", "weighted"), [(60, False), (60, True), (14, True)])
def test_expected_rss(curvature, truncation, N, weighted):
    """``rss + tr(A Σ Aᵀ)``: the linearised model's own expectation."""
    p = at_map(problem(2, D=3, R=2, N=N, weighted=weighted, gamma=None))
    H, at = oracles.precision_matrix(p, curvature)
    S = truncated(H, truncation.threshold or 0.0)[0]
    A = oracles.jacobian(p.cores, p.phi)[:, at]
    rss = p.w @ (p.y - oracles.response(p.cores, p.phi)) ** 2
    expected = rss + np.sum(p.w * np.einsum("np,pq,nq->n", A, S, A))
    stat = evaluate(p, curvature)
    assert stat.rss == pytest.approx(rss, rel=1e-13)
    found = stat.expected_rss(posterior(p, curvature, truncation))
    assert found == pytest.approx(expected, rel=1e-11)


def test_precisions_may_change_without_a_new_pass():
    p = problem(2, D=2, R=2, N=60)
    for curvature in oracles.CURVATURES[1:]:
        stat = evaluate(p, curvature)
        for beta, gamma in [(4.0, 1.0), (0.3, 7.0)]:
            q = replace(p, beta=beta, gamma=tuple(np.full(V.shape, gamma) for V in p.cores))
            H, at = oracles.precision_matrix(q, curvature)
            found = stat.posterior(beta, np.full(len(at), gamma), KEEP_ALL).logdet
            assert found == pytest.approx(np.linalg.slogdet(H)[1], rel=1e-12)


@pytest.mark.parametrize(
    ("curvature", "numbers"),
    [
        (Diag(), lambda P, block: 10 * P),
        (Last(-1), lambda P, block: 7 * block),
        (BlockDiagonal(), lambda P, block: (2 * 6 + 5) * block),
    ],
    ids=["Diag", "Last", "Block"],
)
def test_no_structure_allocates_more_than_it_stores(curvature, numbers):
    """P x P is 36 blocks; Block stores 6 Gram matrices and 6 roots and needs 5 more to work."""
    D, n, R = 6, 16, 20
    P = D * n * R
    rng = np.random.default_rng(0)
    bases = (Chebyshev(n),) * D
    u, y = oracles.variables(bases, 32, rng), rng.standard_normal(32)
    network = CPD(tuple(0.1 * rng.standard_normal((R, n)) for _ in range(D)))
    gamma = np.ones(P // D if curvature == Last(-1) else P)
    for b in bases:
        b.closure()  # remembered for ever, so not counted
    with MemoryRows(u, y, None, bases, block_rows=8, memory_budget=0) as rows:
        tracemalloc.start()
        stat = curvature.evaluate(rows, network, None)
        q = stat.posterior(2.0, gamma, KEEP_ALL)
        q.variances(), q.sample(rng, 1), stat.expected_rss(q)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 8 * numbers(P, (n * R) ** 2)


def test_last_without_a_core_says_so():
    with pytest.raises(ValueError, match="choose one"):
        Last().bayesian_cores(3)
    assert Last(-1).bayesian_cores(3) == Last(2).bayesian_cores(3) == (2,)
    assert BlockDiagonal().bayesian_cores(3) == Diag().bayesian_cores(3) == (0, 1, 2)


def test_rough_shares_of_determined_weights():
    """Against the posterior's own variances, with fewer rows than weights."""
    rng = np.random.default_rng(0)
    J = rng.standard_normal((40, 15))
    gamma, beta = rng.gamma(2.0, size=40) + 0.1, 3.0
    linear = Linearisation(None, J, np.zeros(40), np.zeros(40), 1.0)
    stat = _Joint(linear, None)
    variances = stat.posterior(beta, gamma, Truncation()).variances()
    np.testing.assert_allclose(stat.determined(beta, gamma), 1 - gamma * variances, atol=1e-13)
    assert stat.determined(beta, np.zeros(40)) is None
