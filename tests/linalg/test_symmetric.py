"""Symmetric positive systems: backward stability, singular matrices, roots."""

import numpy as np
import pytest

from tensorlace.linalg.symmetric import NOISE, eigen, inverse_root, solve

EPS = np.finfo(float).eps


def spectrum(kind, n, cond):
    """LAPACK's test spectra: geometric, one small, one large."""
    if kind == "geometric":
        return np.geomspace(1.0, 1.0 / cond, n)
    lam = np.full(n, 1.0 if kind == "one small" else 1.0 / cond)
    lam[0] = 1.0 / cond if kind == "one small" else 1.0
    return lam


def positive(rng, lam, scale=1.0):
    """A symmetric matrix with these eigenvalues."""
    Q = np.linalg.qr(rng.standard_normal((lam.size, lam.size)))[0]
    H = scale * ((Q * lam) @ Q.T)
    return 0.5 * (H + H.T)


def redundant(rng, n, rank):
    """A singular matrix whose diagonal is 1, so that scaling it changes nothing."""
    B = rng.standard_normal((n, rank))
    B /= np.linalg.norm(B, axis=1)[:, None]
    return B


@pytest.mark.parametrize("kind", ["geometric", "one small", "one large"])
@pytest.mark.parametrize("target", ["any", "in range"])
def test_residual_ratio(kind, target):
    """LAPACK accepts 30; 6 times 84 random systems stay below 5."""
    for seed in range(84):
        rng = np.random.default_rng(seed)
        n, cond = int(rng.integers(1, 65)), 10 ** rng.uniform(0, 15)
        scale = 10 ** rng.uniform(-150, 150)
        H = positive(rng, spectrum(kind, n, cond), scale)
        b = rng.standard_normal(n)
        if target == "in range":
            b = H @ b
        x = solve(H, b).x
        size = np.linalg.norm(H / scale, 1) * np.linalg.norm(x * scale, 1)
        assert np.linalg.norm(b - (H / scale) @ (x * scale), 1) < 5 * size * EPS, seed


@pytest.mark.parametrize("seed", range(20))
def test_units_of_single_weights_do_not_matter(seed):
    """Powers of two are exact, so rescaled rows and columns rescale the solution to the bit."""
    rng = np.random.default_rng(seed)
    H, b = positive(rng, rng.uniform(0.1, 1.0, 12)), rng.standard_normal(12)
    s = 2.0 ** (2 * rng.integers(-150, 150, 12))
    plain, scaled = solve(H, b), solve(H * s * s[:, None], s * b)
    np.testing.assert_array_equal(scaled.x * s, plain.x)
    assert scaled.rcond == plain.rcond


@pytest.mark.parametrize("cond", [1e0, 1e4, 1e8, 1e12])
def test_rcond_is_the_reciprocal_condition_number(cond):
    H = positive(np.random.default_rng(0), spectrum("geometric", 30, cond))
    s = 1.0 / np.sqrt(np.diagonal(H))
    exact = 1.0 / np.linalg.cond(H * s * s[:, None], 1)
    # the scaled diagonal is within a factor of 2 of 1, and LAPACK estimates within a factor of 3
    assert exact / 12 < solve(H, np.ones(30)).rcond < 12 * exact


def test_singular_systems_get_the_least_norm_solution():
    """Rounding makes some of them positive definite again: then rcond is below eps, but not 0."""
    found = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 24))
        B = redundant(rng, n, int(rng.integers(1, n)))
        H, b = B @ B.T, B @ rng.standard_normal(B.shape[1])
        solution = solve(H, b)
        assert solution.ill_conditioned, seed
        assert np.linalg.norm(b - H @ solution.x) < 1e-13 * np.linalg.norm(b), seed
        if solution.rcond == 0.0:
            found += 1
            least = np.linalg.pinv(B.T) @ (np.linalg.pinv(B) @ b)
            cond = np.linalg.cond(B) ** 2
            assert np.linalg.norm(solution.x - least) < 10 * n * EPS * cond * np.linalg.norm(least)
    assert found > 250


@pytest.mark.parametrize(
    ("H", "b", "least"),
    [
        (np.zeros((3, 3)), np.zeros(3), np.zeros(3)),
        (np.zeros((1, 1)), np.zeros(1), np.zeros(1)),
        (np.ones((2, 2)), np.array([2.0, 2.0]), np.array([1.0, 1.0])),
        (np.diag([4.0, 0.0, 1.0]), np.array([4.0, 0.0, 3.0]), np.array([1.0, 0.0, 3.0])),
        (np.diag([1e-150, 0.0]), np.array([1e-150, 0.0]), np.array([1.0, 0.0])),
    ],
)
def test_exactly_singular_systems_have_rcond_zero(H, b, least):
    solution = solve(H, b)
    assert solution.rcond == 0.0
    np.testing.assert_allclose(solution.x, least, rtol=1e-15, atol=1e-15)


@pytest.mark.parametrize("cond", [1.0, 1e3, 1e6, 1e9])
@pytest.mark.parametrize("n", [1, 2, 17, 64])
def test_inverse_root(n, cond):
    H = positive(np.random.default_rng(n), spectrum("geometric", n, cond), 1e3)
    W, logdet = inverse_root(H)
    assert np.max(np.abs(W @ W.T @ H - np.eye(n))) < 10 * n * EPS * cond
    assert np.max(np.abs(W.T @ H @ W - np.eye(n))) < 10 * n * EPS * cond
    sign, expected = np.linalg.slogdet(H)
    assert sign == 1.0
    assert logdet == pytest.approx(expected, rel=1e-13, abs=10 * n * EPS * cond)


def test_inverse_root_takes_any_units():
    rng = np.random.default_rng(0)
    H = positive(rng, rng.uniform(0.5, 1.0, 6))
    s = 10.0 ** rng.uniform(-140, 140, 6)
    W, logdet = inverse_root(H * s * s[:, None])
    assert np.max(np.abs(W.T @ (H * s * s[:, None]) @ W - np.eye(6))) < 1e-13
    assert logdet == pytest.approx(np.linalg.slogdet(H)[1] + 2 * np.log(s).sum(), rel=1e-14)


def test_inverse_root_of_an_indefinite_matrix_is_none():
    assert inverse_root(np.diag([1.0, -1.0])) is None
    assert inverse_root(np.ones((2, 2))) is None


def test_eigen_is_sorted_and_complete():
    lam = np.array([-2.0, 0.5, 3.0, 7.0])
    H = positive(np.random.default_rng(1), lam)
    found, U = eigen(H)
    noise = lam.size * NOISE * lam[-1]
    np.testing.assert_allclose(found, lam, rtol=0, atol=noise)
    np.testing.assert_allclose((U * found) @ U.T, H, rtol=0, atol=noise)
