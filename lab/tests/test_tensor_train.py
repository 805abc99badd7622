"""The tensor train against dense tensors, complex steps and closed forms."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

from tensorlace import metrics
from tensorlace.columns.bases import UnitPolynomial
from tensorlace.linalg.symmetric import eigen
from tensorlace_lab.systems.paper.tensor_train import TTRegressor, _evidence
from tensorlace_lab.systems.parts import tt_network as tensor_train


@pytest.fixture
def case():
    rng = np.random.default_rng(0)
    bases = [UnitPolynomial(n) for n in (3, 2, 4)]
    cores = tensor_train.initialise([b.constant() for b in bases], 3, rng, noise=2.0)
    phi = [b.phi(rng.normal(size=30)) for b in bases]
    return cores, phi, rng.standard_normal(30)


def dense(cores):
    """The whole weight tensor."""
    W = cores[0]
    for V in cores[1:]:
        W = np.tensordot(W, V, 1)
    return W[0, ..., 0]


def moved(cores, v):
    parts = np.split(v, np.cumsum([V.size for V in cores])[:-1])
    return tuple(p.reshape(V.shape) for p, V in zip(parts, cores, strict=True))


def test_ranks_are_no_larger_than_useful(case):
    assert [V.shape for V in case[0]] == [(1, 3, 3), (3, 2, 3), (3, 4, 1)]


def test_predict_is_the_dense_contraction(case):
    cores, phi, _ = case
    f = np.einsum("ijk,in,jn,kn->n", dense(cores), *phi)
    np.testing.assert_allclose(tensor_train.predict(cores, phi), f, rtol=1e-12)


def test_response_is_linear_in_every_core(case):
    cores, phi, _ = case
    left, right = tensor_train.environments(cores, phi)
    f = tensor_train.predict(cores, phi)
    for d, V in enumerate(cores):
        A = tensor_train.design(left[d], phi[d], right[d])
        np.testing.assert_allclose(V.ravel() @ A, f, rtol=1e-12)


def test_jacobian_is_the_complex_step(case):
    cores, phi, _ = case
    v = np.concatenate([V.ravel() for V in cores])
    steps = [
        tensor_train.predict(moved(cores, v + 1e-30j * e), phi).imag / 1e-30 for e in np.eye(len(v))
    ]
    np.testing.assert_allclose(tensor_train.jacobian(cores, phi), steps, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("d", [0, 1, 2])
def test_orthogonalise_keeps_the_function(case, d):
    cores, phi, _ = case
    new = tensor_train.orthogonalise(cores, d)
    f = tensor_train.predict(cores, phi)
    np.testing.assert_allclose(tensor_train.predict(new, phi), f, rtol=1e-11)
    assert np.linalg.norm(new[d]) == pytest.approx(np.linalg.norm(dense(cores)))


def test_als_falls_to_a_stationary_point(case):
    _, phi, y = case
    rng = np.random.default_rng(1)
    cores = tensor_train.initialise([UnitPolynomial(len(p)).constant() for p in phi], 4, rng)
    fitted, history = tensor_train.als(cores, phi, y, 0.1, 20)
    assert np.all(np.diff(history) <= 1e-10 * history[0])
    W = dense(fitted)
    f = tensor_train.predict(fitted, phi)
    assert history[-1] == pytest.approx(np.sum((y - f) ** 2) + 0.1 * np.sum(W**2))
    # ranks are full here: the minimum over all tensors is ridge regression on all products
    Phi = np.einsum("in,jn,kn->ijkn", *phi).reshape(-1, 30)
    w = np.linalg.solve(Phi @ Phi.T + 0.1 * np.eye(len(Phi)), Phi @ y)
    assert history[-1] == pytest.approx(np.sum((y - w @ Phi) ** 2) + 0.1 * w @ w, rel=1e-6)


@pytest.mark.parametrize("curvature", ["full", "ggn", "block", "diag", "last"])
def test_hessians(case, curvature):
    """Full against derivatives of the gradient by complex step; the others are parts of GGN."""
    cores, phi, y = case
    beta, gamma = 2.0, 0.3
    H = tensor_train.hessian(cores, phi, y, beta, gamma, curvature)
    v = np.concatenate([V.ravel() for V in cores])
    P, start = len(v), len(v) - cores[-1].size

    def gradient(z):
        at = moved(cores, z)
        J = tensor_train.jacobian(at, phi)
        return beta * J @ (tensor_train.predict(at, phi) - y) + gamma * z

    J = tensor_train.jacobian(cores, phi)
    G = beta * J @ J.T + gamma * np.eye(P)
    of_core = np.repeat([0, 1, 2], [V.size for V in cores])
    own = {
        "full": lambda: [gradient(v + 1e-30j * e).imag / 1e-30 for e in np.eye(P)],
        "ggn": lambda: G,
        "block": lambda: np.where(of_core[:, None] == of_core, G, 0.0),
        "diag": lambda: np.diag(np.diag(G)),
        "last": lambda: G[start:, start:],
    }
    np.testing.assert_allclose(H, own[curvature](), rtol=1e-10, atol=1e-10)


def test_unknown_curvature(case):
    with pytest.raises(ValueError, match="no curvature"):
        tensor_train.hessian(*case, 1.0, 1.0, "round")


def test_evidence_is_stationary():
    """At the fixed point the derivative of log N(y | 0, A Aᵀ/γ + I/β) vanishes."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(40, 5))
    y = A @ rng.normal(size=5) + 0.5 * rng.standard_normal(40)
    values, U = eigen(A.T @ A)
    beta, gamma = _evidence(values, U.T @ (A.T @ y), float(y @ y), 40, 1.0, 1.0)

    def log_density(b, g):
        K = A @ A.T / g + np.eye(40) / b
        return -0.5 * (np.linalg.slogdet(K)[1] + y @ np.linalg.solve(K, y))

    e = 1e-4
    for one, other in ((e, 0.0), (0.0, e)):
        up = log_density(beta * np.exp(one), gamma * np.exp(other))
        down = log_density(beta * np.exp(-one), gamma * np.exp(-other))
        assert abs(up - down) / (2 * e) < 1e-3


def test_regressor_is_calibrated_and_good():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(600, 3))
    f = np.sin(X[:, 0]) * X[:, 1] + 0.5 * X[:, 2]
    y = 10.0 + 4.0 * (f + 0.1 * rng.standard_normal(600))
    model = TTRegressor([(2, 6)], random_state=0).fit(X[:400], y[:400])
    dist = model.predict_dist(X[400:])
    assert metrics.rmse(y[400:], dist) < 0.65  # noise is 0.4, f has a deviation of 3.4
    # one core of three is Bayesian: a little too sure (0.875 measured)
    assert 0.85 < metrics.coverage(y[400:], dist) < 0.99
    assert 0.35 < y[:400].std() * model.noise_precision_**-0.5 < 0.65
    mean, std = model.predict(X[400:], return_std=True)
    np.testing.assert_array_equal(mean, dist.mean)
    assert np.all(std > 0.3)


@pytest.mark.parametrize("curvature", ["full", "ggn", "block", "diag"])
def test_regressor_has_all_curvatures(curvature):
    """The deviation of the function is that of the dense Hessian, whichever of the five it is."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(150, 2))
    y = X[:, 0] * X[:, 1] + 0.1 * rng.standard_normal(150)
    how = {"sizes": [(2, 4)], "random_state": 0}
    model = TTRegressor(**how, curvature=curvature).fit(X, y)
    mean, std = model.predict(X, return_std=True)
    last = TTRegressor(**how).fit(X, y)
    np.testing.assert_array_equal(mean, last.predict(X))  # one MAP estimate for all
    scale = y.std()
    phi = model._features((X - X.mean(axis=0)) / X.std(axis=0))
    z = (y - y.mean()) / scale
    beta, gamma = model.noise_precision_, model.prior_precision_
    H = tensor_train.hessian(model.cores_, phi, z, beta, gamma, curvature)
    J = tensor_train.jacobian(model.cores_, phi)
    values, U = np.linalg.eigh(H)
    projected = (U.T @ J)[values > 0]
    variance = np.sum(projected**2 / values[values > 0, None], axis=0)
    np.testing.assert_allclose(std, scale * np.sqrt(variance + 1 / beta), rtol=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_regressor_keeps_the_contract_of_scikit_learn():
    check_estimator(TTRegressor([(2, 3)], n_sweeps=2, random_state=0))
