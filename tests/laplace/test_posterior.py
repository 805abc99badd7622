"""One contract for all posteriors: whatever the form, it is the Gaussian with this covariance."""

from dataclasses import dataclass

import numpy as np
import pytest

from tensorlace.laplace.factorisation import Truncation, dense, indefinite
from tensorlace.laplace.posterior import Blocks, Diagonal, LowRank, Posterior, Root
from tests.helpers.oracles import covariance_z, error, truncated

BETA = 3.0


@dataclass(frozen=True)
class Case:
    """A posterior and what it should be: dense covariance, log-determinant, directions dropped."""

    posterior: Posterior
    covariance: np.ndarray
    logdet: float
    n_dropped: int


def gram(rng, P, N):
    A = rng.standard_normal((N, P))
    return A.T @ A


def whitened():
    rng = np.random.default_rng(1)
    G, gamma = gram(rng, 7, 12), rng.uniform(0.1, 10.0, 7)
    H = BETA * G + np.diag(gamma)
    posterior = dense(G, BETA, gamma, Truncation())
    return Case(posterior, np.linalg.inv(H), np.linalg.slogdet(H)[1], 0)


def cut(relative, uniform):
    rng = np.random.default_rng(2)
    G, gamma = gram(rng, 8, 5), rng.uniform(0.1, 2.0, 8)
    gamma = np.full(8, 0.5) if uniform else gamma
    H = BETA * G + np.diag(gamma)
    lam = np.linalg.eigvalsh(H)
    t = np.sqrt(lam[3] * lam[4])
    posterior = dense(G, BETA, gamma, Truncation(t / lam[-1] if relative else t, relative))
    return Case(posterior, *truncated(H, t))


def flat():
    G = gram(np.random.default_rng(3), 6, 4)  # two directions that no row has seen
    lam = np.linalg.eigvalsh(BETA * G)
    posterior = dense(G, BETA, np.zeros(6), Truncation())
    return Case(posterior, *truncated(BETA * G, 0.5 * lam[2]))


def saddle():
    rng = np.random.default_rng(4)
    Q = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    H = (Q * [-3.0, -0.1, 0.0, 0.2, 1.0, 5.0]) @ Q.T
    return Case(indefinite(H, Truncation()), *truncated(H, 0.1))


def low_rank():
    rng = np.random.default_rng(5)
    U = np.linalg.qr(rng.standard_normal((9, 4)))[0]
    s, c = rng.uniform(0.2, 2.0, 9), rng.uniform(0.01, 1.0, 4)
    inner = U @ np.diag(c) @ U.T + np.eye(9) - U @ U.T
    S = s[:, None] * inner * s
    return Case(LowRank(s, U, c), S, -np.linalg.slogdet(S)[1], 0)


def full_span():
    """As many directions as weights: nothing of the prior is left."""
    rng = np.random.default_rng(6)
    U = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    s, c = rng.uniform(0.2, 2.0, 4), np.array([1e-12, 1e-3, 0.3, 1.0])
    S = s[:, None] * ((U * c) @ U.T) * s
    return Case(LowRank(s, U, c), S, -2 * np.log(s).sum() - np.log(c).sum(), 0)


def diagonal():
    variance = np.array([0.5, 0.0, 2.0, 1e-3])
    return Case(Diagonal(variance, 1), np.diag(variance), -np.log(0.5 * 2.0 * 1e-3), 1)


def blocks():
    parts = [whitened(), diagonal(), low_rank(), saddle()]
    sizes = [len(part.covariance) for part in parts]
    S = np.zeros((sum(sizes), sum(sizes)))
    for start, size, part in zip(np.cumsum([0, *sizes]), sizes, parts, strict=False):
        S[start : start + size, start : start + size] = part.covariance
    logdet = sum(part.logdet for part in parts)
    dropped = sum(part.n_dropped for part in parts)
    return Case(Blocks(tuple(part.posterior for part in parts)), S, logdet, dropped)


CASES = {
    "Root, whitened": whitened(),
    "Root, truncated": cut(relative=False, uniform=False),
    "Root, truncated, one prior": cut(relative=False, uniform=True),
    "Root, relative": cut(relative=True, uniform=False),
    "Root, relative, one prior": cut(relative=True, uniform=True),
    "Root, flat prior": flat(),
    "Root, saddle": saddle(),
    "LowRank": low_rank(),
    "LowRank, full span": full_span(),
    "Diagonal": diagonal(),
    "Blocks": blocks(),
}


def test_every_posterior_is_under_contract():
    assert {type(case.posterior) for case in CASES.values()} == set(Posterior.__subclasses__())
    assert set(Posterior.__subclasses__()) == {Root, LowRank, Blocks, Diagonal}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_contract(case):
    q, S = case.posterior, case.covariance
    P, rng = len(S), np.random.default_rng(0)
    b, B = rng.standard_normal(P), rng.standard_normal((P, 5))
    given = B.copy()

    assert q.n_weights == P
    assert q.n_dropped == case.n_dropped
    assert q.logdet == pytest.approx(case.logdet, rel=1e-13, abs=1e-13)
    assert error(q.variances(), np.diagonal(S)) < 1e-13
    assert q.trace == pytest.approx(np.trace(S), rel=1e-13)
    assert error(q.solve(b), S @ b) < 1e-13
    assert error(q.solve(B), S @ B) < 1e-13
    assert error(q.quad(B), np.einsum("pn,pq,qn->n", B, S, B)) < 1e-13
    assert error(q.solve(np.eye(P)), S) < 1e-13
    assert np.all(q.quad(np.linalg.eigh(S)[1]) >= 0.0)
    np.testing.assert_array_equal(B, given)

    draws = q.sample(np.random.default_rng(7), 40_000)
    assert draws.shape == (P, 40_000)
    assert np.max(np.abs(covariance_z(draws, S))) < 4.5
    spread = np.sqrt(np.diagonal(S) / 40_000)
    assert np.all(np.abs(draws.mean(axis=1)) <= 4 * spread + 1e-15)
    np.testing.assert_array_equal(draws, q.sample(np.random.default_rng(7), 40_000))
    assert not np.array_equal(draws, q.sample(np.random.default_rng(8), 40_000))


@pytest.mark.parametrize("gamma", [1e-12, 1e-6, 1.0])
def test_a_weak_prior_costs_no_more_than_its_condition_number(gamma):
    A = np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    q = dense(A.T @ A, BETA, np.full(2, gamma), Truncation())
    seen, unseen = q.quad(np.array([[1.0, 1.0], [1.0, -1.0]]))
    assert q.n_dropped == 0
    largest = 28 * BETA + gamma
    rounding = 2 * np.finfo(float).eps * largest / gamma
    assert unseen == pytest.approx(2.0 / gamma, rel=rounding)
    assert seen == pytest.approx(2.0 / largest, rel=rounding)


@pytest.mark.parametrize("tiny", [1e-150, 1e-12])
def test_prior_precisions_of_any_size_in_one_model(tiny):
    """Whitening: a weight with a huge variance does not spoil its neighbours."""
    G = np.diag([0.0, 1.0, 1.0])
    q = dense(G, BETA, np.array([tiny, 1.0, 1 / tiny]), Truncation())
    np.testing.assert_allclose(q.variances(), [1 / tiny, 0.25, 1 / (BETA + 1 / tiny)], rtol=1e-14)


def test_everything_can_be_truncated_away():
    q = dense(np.eye(3), 1.0, np.ones(3), Truncation(1e9))
    assert q.n_dropped == 3
    assert q.logdet == 0.0
    np.testing.assert_array_equal(q.quad(np.eye(3)), 0.0)
    np.testing.assert_array_equal(q.sample(np.random.default_rng(0), 2), 0.0)


@pytest.mark.parametrize(
    ("truncation", "expected"),
    [
        (Truncation(), [False, False, True, True, True]),
        (Truncation(1.0), [False, False, False, True, True]),  # equal to the threshold: kept
        (Truncation(0.25, relative=True), [False, False, False, True, True]),
        (Truncation(0.26, relative=True), [False, False, False, False, True]),
        (Truncation(-5.0), [False, False, True, True, True]),  # never a negative direction
    ],
)
def test_what_truncation_keeps(truncation, expected):
    lam = np.array([-1.0, 0.0, 0.5, 1.0, 4.0])
    np.testing.assert_array_equal(truncation.kept(lam, 4.0), expected)


def test_rounding_noise_is_no_direction():
    assert list(Truncation().kept(np.array([1e-16, 1.0]), 1.0, noise=1e-15)) == [False, True]
    assert list(Truncation(0.0).kept(np.array([1e-16, 1.0]), 1.0, noise=1e-15)) == [False, True]


def test_singular_matrices_lose_exactly_their_null_space():
    """LAPACK's eigenvalues of a null space reach several P eps; 300 of them, none mistaken."""
    for seed in range(300):
        rng = np.random.default_rng(seed)
        P = int(rng.integers(2, 12))
        rank = int(rng.integers(1, P))
        B = rng.standard_normal((P, rank))
        assert dense(B @ B.T, 1.0, np.zeros(P), Truncation()).n_dropped == P - rank, seed
        assert indefinite(B @ B.T, Truncation()).n_dropped == P - rank, seed


def test_directions_that_rows_say_nothing_of_are_let_go():
    rng = np.random.default_rng(0)
    U = np.linalg.qr(rng.standard_normal((9, 4)))[0]
    s, c = rng.uniform(0.5, 2.0, 9), np.array([0.1, 1.0, 0.5, 1.0])
    whole, small = LowRank(s, U, c), LowRank.of(s, U, c)
    assert small.U.shape == (9, 2)
    assert LowRank.of(s, U[:, :1], c[:1]).U.base is U  # nothing to let go, nothing copied
    G = rng.standard_normal((9, 5))
    for a, b in (
        (whole.variances(), small.variances()),
        (whole.quad(G), small.quad(G)),
        (whole.solve(G), small.solve(G)),
        (whole.logdet, small.logdet),
    ):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-14)
    none = LowRank.of(s, U, np.ones(4))
    np.testing.assert_allclose(none.quad(G), ((s[:, None] * G) ** 2).sum(axis=0), rtol=1e-13)
