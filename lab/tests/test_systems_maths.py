"""The formulas of the compared systems, each computed another way."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import sqrtm
from scipy.optimize import approx_fprime, minimize
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from tensorlace_lab.systems.paper import mean_field_btn as mf
from tensorlace_lab.systems.paper import tngpr
from tensorlace_lab.systems.paper.btnkm import Factor, second_moments
from tensorlace_lab.systems.paper.exact_gp import ExactGP, ExactPosterior, SparsePosterior
from tensorlace_lab.systems.paper.qtnm import quantised_features, ridge_by_validation
from tensorlace_lab.systems.parts import cp_machine as cp
from tensorlace_lab.systems.parts.evidence import log_evidence, most_evident
from tensorlace_lab.systems.parts.kernel import (
    SquaredExponential,
    likely,
    log_likelihood,
    most_likely,
)
from tensorlace_lab.systems.regressor import Scale, UnitBox, equal_mixture


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_scales():
    X = np.array([[1.0, 5.0], [3.0, 5.0]])
    assert np.array_equal(Scale.of(X).standardise(X), [[-1, 0], [1, 0]])
    assert np.array_equal(UnitBox.of(X)(X), [[0, 0.5], [1, 0.5]])


def test_equal_mixture():
    dist = equal_mixture(np.array([[0.0], [2.0]]), 0.5)
    assert_allclose([dist.mean[0], dist.std[0]], [1.0, np.sqrt(1.25)])


def test_evidence_is_a_normal_density(rng):
    A = rng.standard_normal((7, 3))
    y = A @ [1.0, -1.0, 0.5] + 0.5 * rng.standard_normal(7)
    lam, U = np.linalg.eigh(A.T @ A)
    c = U.T @ A.T @ y
    dense = multivariate_normal(np.zeros(7), 0.7 * A @ A.T + 0.2 * np.eye(7)).logpdf(y)
    assert_allclose(log_evidence(0.7, 0.2, lam, c, y @ y, 7), dense, rtol=1e-12)
    s, v, best = most_evident(lam, c, y @ y, 7, (1.0, 1.0))
    assert_allclose(best, log_evidence(s, v, lam, c, y @ y, 7), rtol=1e-12)
    for t in (0.97, 1.03):
        assert log_evidence(t * s, v, lam, c, y @ y, 7) < best
        assert log_evidence(s, t * v, lam, c, y @ y, 7) < best


def test_exact_posterior_is_scikit_learns(rng):
    X, y, new = rng.standard_normal((20, 2)), rng.standard_normal(20), rng.standard_normal((5, 2))
    kernel = ConstantKernel(1.3) * RBF([0.5, 2.0]) + WhiteKernel(0.1)
    other = GaussianProcessRegressor(kernel, optimizer=None).fit(X, y)
    mean, std = other.predict(new, return_std=True)
    ours = ExactPosterior.of(SquaredExponential(np.array([0.5, 2.0]), 1.3, 0.1), X, y)
    m, variance = ours.moments(new)
    assert_allclose(m, mean, rtol=1e-9)
    assert_allclose(variance + 0.1, std**2, rtol=1e-9)


def test_copies_among_the_rows_are_remembered_unless_noise_is_asked_for(rng):
    X, y = np.repeat(rng.standard_normal((30, 2)), 2, axis=0), np.repeat(rng.standard_normal(30), 2)
    first, *others = likely(X, y, np.random.default_rng(0), 60, least_noise=0.1)
    assert first.noise < 1e-4
    assert max(kernel.noise for kernel in others) > 0.0999
    assert most_likely(X, y, np.random.default_rng(0), 60).noise == first.noise


def test_the_factor_of_an_exact_posterior_is_the_likeliest(rng):
    X, y, new = rng.standard_normal((20, 2)), rng.standard_normal(20), rng.standard_normal((5, 2))
    kernel = SquaredExponential(np.array([0.5, 2.0]), 1.3, 0.1)
    found = ExactPosterior.of(kernel, X, y).rescaled(y)

    def likelihood(factor):
        theta = [*kernel.lengths, factor * kernel.signal, factor * kernel.noise]
        return log_likelihood(np.log(theta), X, y)[0]

    factor = found.kernel.signal / kernel.signal
    assert_allclose(found.kernel.noise, factor * kernel.noise, rtol=1e-14)
    assert likelihood(factor) > max(likelihood(0.99 * factor), likelihood(1.01 * factor))
    again = ExactPosterior.of(found.kernel, X, y)
    for a, b in zip(found.moments(new), again.moments(new), strict=True):
        assert_allclose(a, b, rtol=1e-7)


@pytest.mark.parametrize("ard", [True, False])
def test_likelihood_and_gradient_are_scikit_learns(ard, rng):
    X, y = rng.standard_normal((25, 3)), rng.standard_normal(25)
    lengths = [0.7, 2.0, 1.1] if ard else [0.9]
    kernel = ConstantKernel(1.3) * RBF(lengths if ard else lengths[0]) + WhiteKernel(0.1)
    other = GaussianProcessRegressor(kernel, optimizer=None).fit(X, y)
    at = np.log([1.3, *lengths, 0.1])
    value, slope = other.log_marginal_likelihood(at, eval_gradient=True)
    ours, gradient = log_likelihood(np.log([*lengths, 1.3, 0.1]), X, y)
    assert_allclose(ours, value, rtol=1e-9)
    assert_allclose(gradient, [*slope[1:-1], slope[0], slope[-1]], rtol=1e-6)


def test_sparse_posterior_at_all_rows_is_exact_and_bounds_from_below(rng):
    X, new = rng.uniform(-2, 2, (30, 1)), np.linspace(-2, 2, 7)[:, None]
    y = np.sin(2 * X[:, 0]) + 0.2 * rng.standard_normal(30)
    start = SquaredExponential(np.array([0.4]), 1.0, 0.1)

    def exact(kernel):
        K = kernel(X, X) + (kernel.noise + 1e-8 * kernel.signal) * np.eye(30)
        return multivariate_normal(np.zeros(30), K).logpdf(y)

    full = SparsePosterior.of(start, X, X, y)
    assert_allclose(full.bound, exact(full.kernel), rtol=1e-6)
    dense = ExactPosterior.of(full.kernel, X, y)
    for ours, theirs in zip(full.moments(new), dense.moments(new), strict=True):
        assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)
    few = SparsePosterior.of(start, X[:6], X, y)
    assert few.bound < exact(few.kernel)


def test_gaussian_process_beyond_its_exact_rows(rng):
    X = rng.uniform(-3, 3, (300, 1))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(300)
    exact = ExactGP(hyper_rows=100, random_state=0).fit(X, y)
    sparse = ExactGP(hyper_rows=100, exact_rows=200, n_inducing=25, random_state=0).fit(X, y)
    new = np.linspace(-2.5, 2.5, 11)[:, None]
    assert_allclose(sparse.predict(new), exact.predict(new), atol=0.03)
    assert_allclose(sparse.predict(new, True)[1], exact.predict(new, True)[1], rtol=0.15)


@pytest.mark.parametrize("kind", [float, complex])
def test_alternation_at_full_rank_is_dense_ridge_regression(kind, rng):
    features = [rng.standard_normal((40, 3)) for _ in range(2)]
    if kind is complex:
        features = [Phi + 1j * rng.standard_normal(Phi.shape) for Phi in features]
    y = rng.standard_normal(40)
    cores = cp.alternate(features, y, cp.near_constant(features, 3, rng), 2.0, 200)
    A = cp.row_kronecker(features[0], features[1] @ cores[1])  # the first core, once more
    G = cores[1].conj().T @ cores[1]
    w = np.linalg.solve(A.conj().T @ A + 2.0 * np.kron(np.eye(3), G), A.conj().T @ y)
    dense = cp.row_kronecker(*features)
    ridge = np.linalg.solve(dense.conj().T @ dense + 2.0 * np.eye(9), dense.conj().T @ y)
    assert_allclose(A @ w, dense @ ridge, atol=1e-6)


@pytest.mark.parametrize("kind", [float, complex])
def test_core_posterior_is_a_gaussian_process(kind, rng):
    features = [rng.standard_normal((15, 2)).astype(kind) for _ in range(3)]
    if kind is complex:
        features = [Phi * np.exp(1j * rng.uniform(0, 6, Phi.shape)) for Phi in features]
    cores = [rng.standard_normal((2, 2)).astype(kind) for _ in range(3)]
    y, d = rng.standard_normal(12), 1
    train, new = [Phi[:12] for Phi in features], [Phi[12:] for Phi in features]
    fit = cp.CoreLaplace.of(train, y, cores, d, 0.1)
    # prior covariance of f: weights of core d ~ N(0, s (I (x) G)^-1), real and imaginary part
    factors = [Phi @ W for Phi, W in zip(features, cores, strict=True)]
    A = cp.row_kronecker(features[d], factors[0] * factors[2])
    G = (cores[0].conj().T @ cores[0]) * (cores[2].conj().T @ cores[2])
    K = (A @ np.linalg.solve(np.kron(np.eye(2), G), A.conj().T)).real
    v = fit.noise
    s = fit.variances.max()  # bounds s from below: find it from the evidence

    def negative(t):
        C = np.exp(t[0]) * K[:12, :12] + v * np.eye(12)
        return -multivariate_normal(np.zeros(12), C).logpdf(y)

    best = minimize(negative, [np.log(s)], method="Nelder-Mead", options={"xatol": 1e-8})
    assert_allclose(fit.evidence, -best.fun, rtol=1e-5)
    s = np.exp(best.x[0])
    gain = s * K[12:, :12] @ np.linalg.inv(s * K[:12, :12] + v * np.eye(12))
    dist = fit.predict(new)
    assert_allclose(dist.mean, gain @ y, rtol=1e-3, atol=1e-5)
    variance = np.diag(s * K[12:, 12:] - gain @ (s * K[:12, 12:]))
    assert_allclose(dist.epistemic_std**2, variance, rtol=1e-3, atol=1e-8)


def test_quantised_pairs_multiply_to_exponentials(rng):
    U, M, P = rng.uniform(-0.5, 0.5, (5, 1)), 8, 3.0
    pairs = quantised_features(U, M, P)
    products = pairs[0]
    for pair in pairs[1:]:
        products = cp.row_kronecker(pair, products)  # the first digit runs fastest
    m = np.arange(M)
    assert_allclose(products, np.exp(1j * np.pi * U * (2 * m - M) / P) / np.sqrt(M), atol=1e-14)


def test_validation_finds_a_smooth_kernel(rng):
    U = rng.uniform(-0.5, 0.5, (60, 1))
    period, ridge = ridge_by_validation(U, np.sin(6 * U[:, 0]), 8)
    assert ridge < 1e-3
    assert period < 10


def small_posterior(rng, R=3, I=2, D=3):
    means = tuple(rng.standard_normal((I, R)) for _ in range(D))
    variances = tuple(rng.uniform(0.1, 1, (I, R)) for _ in range(D))
    return mf.MeanField(means, variances, 2.0, 0.7)


def test_moments_of_independent_weights(rng):
    q = small_posterior(rng)
    features = [rng.standard_normal((4, 2)) for _ in range(3)]
    mean, variance = mf.moments(features, q.means, q.variances)
    a = np.array([Phi @ m for Phi, m in zip(features, q.means, strict=True)])
    b = np.array([Phi**2 @ s for Phi, s in zip(features, q.variances, strict=True)])
    assert_allclose(mean, a.prod(axis=0).sum(axis=1))
    assert_allclose(variance, ((a**2 + b).prod(axis=0) - (a**2).prod(axis=0)).sum(axis=1))


def test_coordinate_updates_reach_the_maximum_of_the_bound(rng):
    features = [rng.standard_normal((30, 2)) for _ in range(3)]
    y, q = rng.standard_normal(30), small_posterior(rng)
    new = mf._with_core(q, features, y, 1)
    top = new.bound(features, y)
    assert top > q.bound(features, y)

    def bound(theta):
        means, variances = list(new.means), list(new.variances)
        means[1], variances[1] = theta[:6].reshape(2, 3), np.exp(theta[6:]).reshape(2, 3)
        return mf.MeanField(tuple(means), tuple(variances), 2.0, 0.7).bound(features, y)

    theta = np.concatenate([new.means[1].ravel(), np.log(new.variances[1]).ravel()])
    assert_allclose(approx_fprime(theta, bound), 0.0, atol=1e-4)
    level = mf._with_precisions(new, features, y)
    for t in (0.99, 1.01):
        for beta, gamma in ((t * level.beta, level.gamma), (level.beta, t * level.gamma)):
            near = mf.MeanField(level.means, level.variances, beta, gamma)
            assert near.bound(features, y) < level.bound(features, y)
    fit = mf.ascend(q, features, y, 60, 0.0)
    assert np.all(np.diff(fit.elbo) > -1e-9)


def test_balance_keeps_the_function_and_lifts_the_bound(rng):
    features = [rng.standard_normal((30, 2)) for _ in range(3)]
    y, q = rng.standard_normal(30), small_posterior(rng)
    flat = q.balanced()
    for before, after in zip(
        mf.moments(features, q.means, q.variances),
        mf.moments(features, flat.means, flat.variances),
        strict=True,
    ):
        assert_allclose(after, before)
    assert flat.bound(features, y) > q.bound(features, y)


def test_moments_of_correlated_cores(rng):
    D, I, R = 3, 2, 2
    factors = []
    for _ in range(D):
        root = 0.5 * rng.standard_normal((I * R, I * R))
        factors.append(Factor(rng.standard_normal((I, R)), root @ root.T))
    features = [rng.standard_normal((2, I)) for _ in range(D)]
    mean, variance = second_moments(features, factors)
    for n in range(2):
        square, first = np.ones((R, R)), np.ones(R)
        for Phi, q in zip(features, factors, strict=True):
            T = np.kron(Phi[n], np.eye(R))  # V^T phi = T vec(V)
            a = T @ q.mean.ravel()
            square *= np.outer(a, a) + T @ q.covariance @ T.T
            first *= a
        assert_allclose([mean[n], variance[n]], [first.sum(), square.sum() - first.sum() ** 2])
    half = factors[0].subset(np.array([False, True]))
    assert_allclose(half.covariance, factors[0].covariance[1::2, 1::2])


def test_train_is_multilinear_and_its_cores_orthogonal(rng):
    features = [rng.standard_normal((50, 4)) for _ in range(4)]
    y = rng.standard_normal(50)
    start = tngpr._start(features, 3, rng)
    cores = tngpr.alternate_train(features, y, start, 0.5, 3, 2)
    dense = np.einsum("aib,bjc,ckd,dle->ijkl", *cores)
    f = np.einsum("ijkl,ni,nj,nk,nl->n", dense, *features)
    A = tngpr.train_design(features, cores, 2)
    assert_allclose(A @ cores[2].ravel(), f)
    assert_allclose(np.linalg.norm(dense), np.linalg.norm(cores[2]))
    objective = [
        np.sum((y - tngpr.train_design(features, c, 2) @ c[2].ravel()) ** 2)
        + 0.5 * np.sum(c[2] ** 2)
        for c in (tngpr.alternate_train(features, y, start, 0.5, k, 2) for k in (1, 2, 4))
    ]
    assert objective[0] > objective[1] > objective[2]


def test_projected_posterior_is_a_gaussian_process(rng):
    A, y, new = rng.standard_normal((20, 4)), rng.standard_normal(20), rng.standard_normal((3, 4))
    fit = tngpr.ProjectedPosterior.of(A, y, (1.0, 0.5))
    s, v = fit.signal, fit.noise
    gain = s * new @ A.T @ np.linalg.inv(s * A @ A.T + v * np.eye(20))
    assert_allclose(fit.predict(new).mean, gain @ y, rtol=1e-6, atol=1e-12)
    variance = np.diag(s * new @ new.T - gain @ (s * A @ new.T))
    assert_allclose(fit.predict(new).epistemic_std ** 2, variance, rtol=1e-6)


class TestNeural:
    """Formulas that need JAX."""

    @pytest.fixture(autouse=True)
    def _double(self):
        jax = pytest.importorskip("jax")
        pytest.importorskip("optax")
        with jax.enable_x64(True):
            yield

    def test_jacobian_and_precisions(self, rng):
        from jax.flatten_util import ravel_pytree

        from tensorlace_lab.systems.paper.laplace_bnn import jacobian, precisions
        from tensorlace_lab.systems.parts.descent import initial_layers, network

        layers, X = initial_layers((2, 3, 1), rng), rng.standard_normal((4, 2))
        flat, restore = ravel_pytree(layers)
        J = np.asarray(jacobian(layers, X))
        slow = approx_fprime(np.asarray(flat), lambda t: np.asarray(network(restore(t), X)))
        assert_allclose(J, slow, atol=1e-6)
        lam, error, size, n = np.linalg.eigvalsh(J.T @ J).clip(0), 3.0, 2.0, 40

        def evidence(t):
            beta, gamma = np.exp(t)
            H = np.log(beta * lam + gamma).sum()
            return 0.5 * (n * t[0] - beta * error + len(lam) * t[1] - gamma * size - H)

        best = np.log(precisions(lam, error, size, n, (1.0, 1.0)))
        assert_allclose(approx_fprime(best, evidence), 0.0, atol=1e-5)

    def test_root_of_a_product(self, rng):
        import jax

        from tensorlace_lab.systems.paper.gwi import trace_root

        B = rng.standard_normal((4, 4))
        S = B @ B.T
        assert_allclose(trace_root(S), np.trace(sqrtm(S)), rtol=1e-10)
        slope = np.asarray(jax.grad(trace_root)(S))
        assert_allclose(slope, 0.5 * np.linalg.inv(sqrtm(S)), rtol=1e-6)

    def test_structured_bound_is_the_mean_field_bound(self, rng):
        import jax.numpy as jnp

        from tensorlace_lab.systems.paper.structured_btn import (
            _cp,
            negative_bound,
            posterior_moments,
        )

        D, I, R = 3, 2, 4
        u, v, w = (rng.standard_normal(n) for n in (D, I, R))
        factors = [rng.standard_normal((n, 5)) for n in (D, I, R)]
        p = {"mean": factors, "log_std": (u, v, w), "beta": 0.3, "gamma": -0.2}
        means, stds = posterior_moments(p)
        kron = np.kron(np.exp(u), np.kron(np.exp(v), np.exp(w)))
        assert_allclose(stds.ravel(), kron)  # d slow, i, r fast
        q = mf.MeanField(tuple(means), tuple(stds**2), np.exp(0.3), np.exp(-0.2))
        features, y = [rng.standard_normal((9, I)) for _ in range(D)], rng.standard_normal(9)
        value = negative_bound(p, jnp.asarray(np.stack(features)), jnp.asarray(y))
        assert_allclose(-value, q.bound(features, y), rtol=1e-10)
        again = _cp(means, 16, rng, n_sweeps=300)
        assert_allclose(np.einsum("dq,iq,rq->dir", *again), means, atol=1e-3)

    def test_divergences(self, rng):
        from tensorlace_lab.systems.paper.bayes_by_backprop import _divergence as over_weights
        from tensorlace_lab.systems.paper.fvi import _divergence as over_functions

        m, s = rng.standard_normal(4), rng.uniform(0.2, 2, 4)
        B = rng.standard_normal((4, 4))
        K = B @ B.T + np.eye(4)
        Q = np.diag(s**2)
        dense = 0.5 * (
            np.trace(np.linalg.solve(K, Q))
            + m @ np.linalg.solve(K, m)
            - 4
            + np.linalg.slogdet(K)[1]
            - np.linalg.slogdet(Q)[1]
        )
        assert_allclose(over_functions(m, Q, K), dense, rtol=1e-10)
        weights, logs = [(m[:3], m[3:])], [(np.log(s[:3]), np.log(s[3:]))]
        assert_allclose(over_weights(weights, logs), over_functions(m, Q, np.eye(4)), rtol=1e-10)

    def test_alpha_energy(self, rng):
        import jax

        from tensorlace_lab.systems.paper.alpha_dropout import Energy, _dropped
        from tensorlace_lab.systems.parts.descent import initial_layers

        layers, X = initial_layers((2, 3, 1), rng), rng.standard_normal((5, 2))
        y, key, log_tau = rng.standard_normal(5), jax.random.key(0), 0.4
        keys = jax.random.split(key, 6)
        f = np.array([_dropped(layers, X, 0.3, k, shared=False) for k in keys])
        assert np.ptp(f, axis=0).min() > 0
        likelihood = np.sqrt(np.exp(log_tau)) * np.exp(-0.5 * np.exp(log_tau) * (y - f) ** 2)
        energy = -2 * np.log(np.mean(np.sqrt(likelihood), axis=0))
        decay = 0.5 * 0.7 * 0.01 * sum(np.sum(W**2) for W, _ in layers) / 5
        value = Energy(0.5, 6)((layers, log_tau), (X, y), (0.3, 0.01, 5.0), key, 0.0)
        assert_allclose(value, energy.mean() + decay, rtol=1e-10)


def test_root_of_an_inverse_that_is_nearly_singular():
    from tensorlace_lab.systems.paper.gwi import _lower_root_of_inverse

    A = np.random.default_rng(0).standard_normal((300, 40)) * np.geomspace(1e-6, 1e3, 40)
    B = np.eye(40) + A.T @ A
    L = _lower_root_of_inverse(B)
    assert_allclose(L, np.tril(L))
    assert_allclose(L.T @ B @ L, np.eye(40), atol=1e-9)
    few = np.random.default_rng(0).standard_normal((20, 40))
    B = np.eye(40) + 1e12 * few.T @ few
    with pytest.raises(np.linalg.LinAlgError):  # its inverse, rounded, has no root
        np.linalg.cholesky(np.linalg.inv(B))
    assert_allclose((L := _lower_root_of_inverse(B)).T @ B @ L, np.eye(40), atol=0.02)
