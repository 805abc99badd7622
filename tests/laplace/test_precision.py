"""Noise and prior precisions against loops, exact evidence and scikit-learn."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.linear_model import BayesianRidge

from tensorlace.columns.bases import Chebyshev, Cosine, Polynomial
from tensorlace.fitting.config import Config
from tensorlace.fitting.fit_network import infer
from tensorlace.fitting.run import Start
from tensorlace.laplace.curvature import GGN, BlockDiagonal, Diag, Full, Last
from tensorlace.laplace.evidence import log_evidence
from tensorlace.laplace.factorisation import Truncation
from tensorlace.laplace.precision import (
    DOUBT_ROWS,
    DOUBT_VARIANCE,
    FEW_ROWS,
    LARGEST_NOISE_PRECISION,
    Evidence,
    Fixed,
    GammaVI,
    Moments,
)
from tensorlace.laplace.prior_groups import (
    LARGEST_PRIOR,
    Groups,
    one_group,
    per_column,
    per_column_and_order,
    per_order,
    per_rank_term,
)
from tensorlace.networks.cpd import CPD
from tensorlace.solvers.als import ALS
from tensorlace.solvers.gauss_newton import GaussNewton
from tests.helpers import oracles
from tests.helpers.oracles import problem

SIZES, RANK = (3, 1, 4), 2
NETWORK = CPD(tuple(np.ones((RANK, n)) for n in SIZES))
KEYS = {
    one_group: lambda d, r, i: 0,
    per_column: lambda d, r, i: d,
    per_order: lambda d, r, i: i,
    per_column_and_order: lambda d, r, i: (d, i),
    per_rank_term: lambda d, r, i: r,
}
EVERY_GROUPING = pytest.mark.parametrize("grouping", KEYS, ids=lambda f: f.__name__)
EXACT = pytest.mark.parametrize("curvature", [Full(), GGN(), BlockDiagonal(), Last(0)], ids=repr)
SOLVERS = pytest.mark.parametrize("solver", [ALS(), GaussNewton()], ids=["ALS", "GaussNewton"])


def settings(solver, curvature, noise, prior, groups=one_group, rank=1, max_steps=200):
    return Config(
        rank=rank,
        solver=solver,
        curvature=curvature,
        truncation=Truncation(),
        noise=noise,
        prior=prior,
        groups=groups,
        max_steps=max_steps,
        tol=1e-14,
        precision_tol=1e-13,
    )


def fit(p, *args, **options):
    with p.rows() as rows:
        return infer(rows, settings(*args, **options), Start(p.network))


# --- groups ---


@EVERY_GROUPING
def test_groups_are_what_loops_find(grouping):
    groups = grouping(NETWORK)
    keys = [
        KEYS[grouping](d, r, i) for d, n in enumerate(SIZES) for r in range(RANK) for i in range(n)
    ]
    assert len(groups.index) == len(keys)
    named = dict(zip(groups.index.tolist(), keys, strict=True))
    assert [named[g] for g in groups.index] == keys  # one key per group
    assert len(set(named.values())) == len(named) == len(groups.count)  # one group per key
    assert [keys.count(named[g]) for g in range(len(named))] == groups.count.tolist()
    if grouping in (per_column, per_column_and_order):
        columns = [named[g] if grouping is per_column else named[g][0] for g in range(len(named))]
        assert groups.column.tolist() == columns
    else:
        assert groups.column is None


@EVERY_GROUPING
def test_totals_are_sums_over_groups(grouping):
    groups = grouping(NETWORK)
    values = np.random.default_rng(0).standard_normal(len(groups.index))
    expected = [values[groups.index == g].sum() for g in range(len(groups.count))]
    np.testing.assert_allclose(groups.total(values), expected, rtol=1e-14)
    np.testing.assert_array_equal(groups.total(np.ones(len(values))), groups.count)


@EVERY_GROUPING
def test_pinning_moves_only_a_factor_per_column(grouping):
    groups = grouping(NETWORK)
    gamma = np.random.default_rng(1).lognormal(0.0, 3.0, len(groups.count))
    pinned = groups.pinned(gamma)
    if groups.column is None:
        np.testing.assert_array_equal(pinned, gamma)
        return
    factor = [np.unique(np.round(np.log(pinned / gamma)[groups.column == d], 12)) for d in range(3)]
    assert [len(f) for f in factor] == [1, 1, 1]
    assert abs(np.sum(factor)) < 1e-11  # their product is 1: the response may have the same prior
    weights = np.log(pinned[groups.index])
    column = np.repeat([0, 1, 2], [RANK * n for n in SIZES])
    means = [weights[column == d].mean() for d in range(3)]
    np.testing.assert_allclose(means, means[0], rtol=1e-13)
    np.testing.assert_allclose(groups.pinned(pinned), pinned, rtol=1e-13)


def test_pinning_weighs_groups_by_their_size():
    groups = Groups(np.array([0, 0, 0, 1, 2]), np.array([3.0, 1.0, 1.0]), np.array([0, 0, 1]))
    pinned = groups.pinned(np.array([2.0, 16.0, 1.0]))
    # logs to base 2: column 0 has the mean (3 * 1 + 4) / 4 = 7/4, column 1 has 0; both get 7/8
    np.testing.assert_allclose(np.log2(pinned), [1 - 7 / 8, 4 - 7 / 8, 7 / 8], rtol=1e-14)


# --- updates ---


def moments(**changes):
    values = {
        "n": 50.0,
        "rss": 4.0,
        "expected_rss": 5.0,
        "determined": 6.0,
        "count": np.array([4.0, 8.0]),
        "square": np.array([2.0, 3.0]),
        "spread": np.array([0.5, 0.25]),
        "group_determined": np.array([1.5, 4.5]),
    }
    return Moments(**{**values, **changes})


def test_updates_by_hand():
    m, old = moments(), np.array([1.0, 1.0])
    assert Fixed(2.0).start(9.0) == 2.0
    assert Fixed(2.0).noise(m, 2.0) == 2.0
    np.testing.assert_array_equal(Fixed(1.0).prior(m, old), old)
    assert GammaVI(a=1.0, b=2.0).noise(m, 1.0) == (1.0 + 25.0) / (2.0 + 2.5)
    np.testing.assert_allclose(
        GammaVI(a=1.0, b=2.0).prior(m, old), [3.0 / (2.0 + 1.25), 5.0 / (2.0 + 1.625)], rtol=1e-15
    )
    assert Evidence().noise(m, 1.0) == (50.0 - 6.0) / 4.0
    np.testing.assert_allclose(Evidence().prior(m, old), [0.75, 1.5], rtol=1e-15)
    assert (Fixed(1.0).learns, GammaVI().learns, Evidence().learns) == (False, True, True)


@pytest.mark.parametrize(("n", "determined"), [(2.0, 2.0), (12.0, 5.0), (49.0, 20.0)])
def test_doubt_of_few_rows_is_a_gamma_prior(n, determined):
    """``Gamma(a, b)`` of so many rows: the update maximises the evidence times the prior."""
    m = moments(n=n, determined=determined, rss=1e-3)
    free = max(n - determined, 0.5)
    a = 0.5 * DOUBT_ROWS * (1.0 - n / FEW_ROWS) / (1.0 + free)
    b = a * DOUBT_VARIANCE
    beta = Evidence().doubting().noise(m, 1.0)

    def slope(log_beta):  # of ½ (n - determined) log β - β/2 ‖r‖² + a log β - b β
        return (0.5 * free + a) - np.exp(log_beta) * (0.5 * m.rss + b)

    assert abs(slope(np.log(beta))) < 1e-12 * free
    assert beta < Evidence().noise(m, 1.0)


def test_no_doubt_from_fifty_rows_nor_of_other_policies():
    for n in (FEW_ROWS, 80.0):
        m = moments(n=n, rss=1e-9)
        assert Evidence().doubting().noise(m, 1.0) == Evidence().noise(m, 1.0)
    for policy in (Fixed(2.0), GammaVI()):
        assert policy.doubting() is policy
    m = moments(n=5.0)
    np.testing.assert_array_equal(
        Evidence().doubting().prior(m, np.ones(2)), Evidence().prior(m, np.ones(2))
    )


@pytest.mark.parametrize("policy", [GammaVI(a=0.0, b=0.0), Evidence()], ids=repr)
def test_updates_stay_finite(policy):
    """A perfect fit, dead weights, fewer rows than weights: bounded precisions, no warning."""
    nothing = moments(rss=0.0, expected_rss=1e-30, square=np.zeros(2), spread=np.full(2, 1e-30))
    assert policy.noise(nothing, 1.0) == pytest.approx(LARGEST_NOISE_PRECISION, rel=1e-15)
    np.testing.assert_allclose(policy.prior(nothing, np.ones(2)), LARGEST_PRIOR, rtol=1e-15)
    assert 0 < policy.noise(moments(determined=80.0), 1.0) < np.inf


# --- evidence ---


def exact_evidence(p, beta, gamma):
    """``log p(y)`` of one column: y is Gaussian with covariance ``I/β + Φ Γ⁻¹ Φᵀ``, no Laplace."""
    times = np.round(p.w).astype(int)
    A = oracles.jacobian(p.cores, p.phi).repeat(times, axis=0)
    covariance = np.eye(len(A)) / beta + (A / gamma) @ A.T
    return multivariate_normal(cov=covariance).logpdf(p.y.repeat(times))


def one_column(seed, *, gamma=1.0, R=1, N=30, weighted=False, basis=None):
    p = problem(seed, bases=(basis or Chebyshev(5),), R=R, N=N, gamma=gamma)
    weight = np.random.default_rng(seed).integers(1, 4, N).astype(float) if weighted else None
    return oracles.Problem(p.bases, p.u, p.y, weight, p.cores, p.beta, p.gamma)


@EXACT
@SOLVERS
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("R", [1, 3])
def test_laplace_evidence_of_one_column_is_exact(curvature, solver, weighted, R):
    p = one_column(0, R=R, weighted=weighted)
    fitted = fit(p, solver, curvature, Fixed(4.0), Fixed(1.7), rank=R)
    expected = exact_evidence(p, 4.0, np.full(5 * R, 1.7))
    assert fitted.log_evidence == pytest.approx(expected, rel=1e-12)


def test_evidence_with_a_prior_per_weight():
    p = one_column(1, gamma=None)
    A = oracles.jacobian(p.cores, p.phi)
    H = p.beta * A.T @ A + np.diag(p.g)
    v = np.linalg.solve(H, p.beta * A.T @ p.y)
    rss, logdet = np.sum((p.y - A @ v) ** 2), np.linalg.slogdet(H)[1]
    found = log_evidence(30.0, rss, p.beta, v, p.g, logdet, 0)
    assert found == pytest.approx(exact_evidence(p, p.beta, p.g), rel=1e-13)


def test_dropped_directions_count_as_unseen():
    """A column of zeros tells nothing: dropping it must not change the evidence."""
    v, gamma = np.array([1.0, 0.0]), np.full(2, 0.3)
    both = log_evidence(10.0, 3.0, 2.0, v, gamma, logdet=np.log(5.0 * 0.3), n_dropped=0)
    one = log_evidence(10.0, 3.0, 2.0, v, gamma, logdet=np.log(5.0), n_dropped=1)
    assert one == pytest.approx(both, rel=1e-15)


def test_a_flat_prior_has_no_evidence():
    assert log_evidence(10.0, 3.0, 2.0, np.ones(1), np.zeros(1), 0.0, 0) == -np.inf


@EXACT
@SOLVERS
@pytest.mark.parametrize("groups", [one_group, per_order], ids=["one prior", "prior per order"])
def test_evidence_fixed_point_is_stationary(curvature, solver, groups):
    """MacKay's updates end where the exact evidence of one column has no slope."""
    p = one_column(2, N=60)
    fitted = fit(p, solver, curvature, Evidence(), Evidence(), groups=groups, max_steps=40_000)
    gamma = fitted.gamma[0].ravel()
    h = 1e-3

    def slope(direction):
        def value(t):
            beta = fitted.beta * np.exp(t * direction[0])
            return exact_evidence(p, beta, gamma * np.exp(t * direction[1:]))

        # fourth order, so that truncation is 1e-12 and rounding 1e-11 of the evidence
        return (8 * (value(h) - value(-h)) - (value(2 * h) - value(-2 * h))) / (12 * h)

    assert abs(slope(np.array([1.0, 0, 0, 0, 0, 0]))) < 1e-8
    if groups is one_group:
        assert abs(slope(np.array([0.0, 1, 1, 1, 1, 1]))) < 1e-8
    else:
        for k in range(5):
            if gamma[k] < 0.99 * LARGEST_PRIOR:  # an order that was switched off stays off
                assert abs(slope(np.eye(6)[k + 1])) < 1e-8
        assert np.sum(gamma < 0.99 * LARGEST_PRIOR) >= 2


@EXACT
@SOLVERS
@pytest.mark.parametrize("hyper", [1e-6, 0.5])
def test_gamma_vi_of_one_column_is_bayesian_ridge(curvature, solver, hyper):
    p = one_column(3, N=50, basis=Polynomial(4))
    policy = GammaVI(a=hyper, b=2 * hyper)
    fitted = fit(p, solver, curvature, policy, policy, max_steps=20_000)
    peer = BayesianRidge(
        fit_intercept=False,
        tol=1e-15,
        max_iter=10_000,
        alpha_1=hyper,
        alpha_2=2 * hyper,
        lambda_1=hyper,
        lambda_2=2 * hyper,
    ).fit(p.phi[0].T, p.y)
    assert fitted.beta == pytest.approx(peer.alpha_, rel=1e-10)
    np.testing.assert_allclose(fitted.gamma[0], peer.lambda_, rtol=1e-10)
    np.testing.assert_allclose(fitted.cores[0][0], peer.coef_, rtol=1e-9)
    at = fitted.posterior.solve(np.eye(4))
    np.testing.assert_allclose(at, peer.sigma_, rtol=1e-9, atol=1e-12 * np.max(peer.sigma_))


# --- the alternation itself ---


@pytest.mark.parametrize("curvature", [*oracles.CURVATURES, Last()], ids=repr)
@pytest.mark.parametrize("policy", [GammaVI(), Evidence()], ids=repr)
def test_learnt_precisions_are_a_fixed_point(curvature, policy):
    """After the fit one more update, computed by brute force, changes nothing."""
    p = problem(4, bases=(Cosine(4), Chebyshev(3), Polynomial(3)), R=2, N=80)
    fitted = fit(p, GaussNewton(), curvature, policy, policy, rank=2, max_steps=3000)
    p = oracles.Problem(p.bases, p.u, p.y, None, fitted.cores, fitted.beta, fitted.gamma)
    H, at = oracles.precision_matrix(p, fitted.curvature)
    S = np.linalg.inv(H)
    A = oracles.jacobian(p.cores, p.phi)[:, at]
    rss = np.sum((p.y - oracles.response(p.cores, p.phi)) ** 2)
    determined = 1.0 - p.g[at] * np.diagonal(S)
    gamma = p.g[0]
    if policy == GammaVI():
        beta = (1e-6 + 40.0) / (1e-6 + 0.5 * (rss + np.einsum("np,pq,nq->", A, S, A)))
        spread = p.v @ p.v + np.trace(S)
        expected = (1e-6 + 0.5 * p.v.size) / (1e-6 + 0.5 * spread)
    else:
        beta = (80.0 - determined.sum()) / rss
        if len(at) < p.v.size:  # point cores lend their conditional posterior
            block = np.linalg.inv(oracles.precision_matrix(p, BlockDiagonal())[0])
            determined = 1.0 - gamma * np.diagonal(block)
        expected = determined.sum() / (p.v @ p.v)
    assert fitted.beta == pytest.approx(beta, rel=1e-8)
    assert gamma == pytest.approx(expected, rel=1e-8)


def test_last_takes_the_core_of_highest_evidence():
    winners = set()
    bases = (Cosine(4), Chebyshev(4), Polynomial(4))
    for seed in range(3):
        p = problem(seed, bases=bases[seed:] + bases[:seed], R=2, N=80)
        free, *each = (
            fit(p, GaussNewton(), Last(d), Fixed(4.0), Fixed(1.0), rank=2) for d in (None, 0, 1, 2)
        )
        scores = [fitted.log_evidence for fitted in each]
        assert free.bayesian_cores == (int(np.argmax(scores)),)
        assert free.log_evidence == max(scores)
        winners.add(free.bayesian_cores)
    assert winners == {(0,), (1,), (2,)}


@EVERY_GROUPING
@pytest.mark.parametrize("curvature", [GGN(), Diag(), Last()], ids=repr)
def test_every_grouping_can_be_learnt(grouping, curvature):
    p = problem(4, bases=(Cosine(4), Chebyshev(3), Polynomial(3)), R=2, N=80)
    fitted = fit(p, GaussNewton(), curvature, Evidence(), Evidence(), grouping, 2, max_steps=100)
    groups = grouping(p.network)
    gamma = oracles.vec(fitted.gamma)
    assert all(len(set(gamma[groups.index == g])) == 1 for g in range(len(groups.count)))
    assert np.all((gamma > 0) & np.isfinite(gamma))
    assert np.isfinite(fitted.log_evidence)
    assert fitted.rss < 0.5 * np.sum(p.y**2)
