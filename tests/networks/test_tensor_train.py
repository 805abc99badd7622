"""The tensor train against dense weight tensors: solvers, curvatures, evidence."""

import numpy as np
import pytest

from tensorlace.fitting.config import Config
from tensorlace.fitting.fit_network import infer
from tensorlace.fitting.registry import SOLVERS
from tensorlace.fitting.run import Start
from tensorlace.laplace.curvature import GGN, BlockDiagonal, Diag, Full, Last
from tensorlace.laplace.factorisation import Truncation
from tensorlace.laplace.precision import Fixed
from tensorlace.laplace.prior_groups import one_group
from tensorlace.networks.cpd import CPD
from tensorlace.networks.tensor_train import TensorTrain
from tests.helpers import oracles
from tests.helpers.network_contract import Case, case_of
from tests.helpers.oracles import STEP, error

CURVED = [Full(), GGN(), BlockDiagonal(), Diag(), Last(0), Last(-1)]


# --- the network ---


@pytest.mark.parametrize(("D", "R"), [(1, 1), (2, 3), (3, 2), (4, 3)])
def test_response_is_that_of_the_dense_tensor(D, R):
    case = case_of(TensorTrain.initialise, D, R)
    W = oracles.train_tensor(case.network.cores, case.network.ranks)
    assert error(case.f, oracles.kronecker_features(case.phi) @ W.ravel()) < 1e-14


def test_ranks_are_no_larger_than_they_can_use():
    assert TensorTrain.widths((2, 9, 9, 3), 5) == (2, 10, 15, 3)
    assert TensorTrain.widths((4,), 5) == (1,)
    constants = [np.eye(n)[0] for n in (2, 9, 9, 3)]
    train = TensorTrain.initialise(constants, 5, np.random.default_rng(0))
    assert train.ranks == (1, 2, 5, 3, 1)
    assert train.rank == 5


def test_rank_one_is_a_product():
    case = case_of(TensorTrain.initialise, 3, 1)
    assert error(CPD(case.network.cores).response(case.phi), case.f) < 1e-14


# --- solvers and curvatures ---


def trained(seed, D=3, R=2, N=60, spread=None):
    """A case whose target is another train plus noise, and precisions of its weights."""
    case = case_of(TensorTrain.initialise, D, R)
    rng = np.random.default_rng(seed)
    truth = case.network.with_vector(
        case.network.vector + 0.2 * rng.standard_normal(case.J.shape[0])
    )
    u = oracles.variables(case.bases, N, rng)
    y = truth.response([b.phi(x) for b, x in zip(case.bases, u, strict=True)])
    y = y + 0.3 * rng.standard_normal(N)
    weight = rng.uniform(0.3, 3.0, N)
    gamma = tuple(
        rng.uniform(0.3, 3.0, V.shape) if spread is None else np.full(V.shape, spread)
        for V in case.network.cores
    )
    return Case(case.network, case.bases, u, y, weight), 4.0, gamma


def slope(case, beta, gamma, v):
    """Gradient of the objective, each derivative from the dense tensor with a unit core."""
    shapes, K = [V.shape for V in case.network.cores], oracles.kronecker_features(case.phi)
    cores, ranks = oracles.unvec(v, shapes), case.network.ranks
    A = [
        K @ oracles.train_tensor(oracles.replaced(cores, d, unit), ranks).ravel()
        for d, (k, n) in enumerate(shapes)
        for unit in np.eye(k * n).reshape(-1, k, n)
    ]
    misfit = K @ oracles.train_tensor(cores, ranks).ravel() - case.y
    return beta * np.stack(A) @ (case.w * misfit) + oracles.vec(gamma) * v


def hessian(case, beta, gamma):
    """Of the objective, by complex steps of its gradient."""
    v = case.network.vector
    steps = v + 1j * STEP * np.eye(v.size)
    return np.stack([slope(case, beta, gamma, moved).imag / STEP for moved in steps])


def solved(solver, case, beta, gamma, steps=4000, tol=1e-10):
    with case.rows() as rows:
        state = solver.start(rows, case.network)
        for _ in range(steps):
            state, info = solver.step(rows, state, beta, gamma)
            if info.gradient <= tol or info.stalled:
                break
    return state.network, info


def value_and_slope(case, beta, gamma, network):
    """Objective, and norm of its gradient in units of what it is a difference of."""
    misfit = case.y - network.response(case.phi)
    penalty = np.sum(oracles.vec(gamma) * network.vector**2)
    g = slope(case, beta, gamma, network.vector)
    scale = np.linalg.norm(beta * case.J @ (case.w * case.y))
    return 0.5 * (beta * np.sum(case.w * misfit**2) + penalty), np.linalg.norm(g) / scale


@pytest.mark.parametrize("D", [2, 3])
def test_solvers_meet(D):
    case, beta, gamma = trained(1, D=D, N=200, spread=1.0)
    ends = []
    for solver in SOLVERS.values():
        network, info = solved(solver, case, beta, gamma, tol=1e-8)
        objective, gradient = value_and_slope(case, beta, gamma, network)
        assert gradient < 1e-7
        assert info.objective == pytest.approx(objective, rel=1e-12)
        ends.append((objective, network.response(case.phi)))
    for objective, f in ends[1:]:
        assert objective == pytest.approx(ends[0][0], rel=1e-10)
        assert error(f, ends[0][1]) < 1e-6


@pytest.mark.parametrize("D", [2, 3, 4])
def test_solvers_stop_where_another_did(D):
    """Where each weight has a prior of its own, sweeps creep; but they know when they are there."""
    case, beta, gamma = trained(1, D=D)
    for name in ("gauss_newton", "matrix_free"):
        network, _ = solved(SOLVERS[name], case, beta, gamma, tol=1e-11)
        objective, gradient = value_and_slope(case, beta, gamma, network)
        assert gradient < 1e-10
        there = Case(network, case.bases, case.u, case.y, case.weight)
        for solver in SOLVERS.values():
            after, info = solved(solver, there, beta, gamma, steps=1, tol=0.0)
            assert info.gradient < 1e-10
            assert info.objective == pytest.approx(objective, rel=1e-13)
            assert error(after.response(case.phi), there.f) < 1e-9


@pytest.fixture(scope="module")
def at_map():
    """With a prior of its own for each weight no rotation between cores is free."""
    case, beta, gamma = trained(2)
    network, _ = solved(SOLVERS["gauss_newton"], case, beta, gamma, tol=1e-13)
    case = Case(network, case.bases, case.u, case.y, case.weight)
    return case, beta, gamma, hessian(case, beta, gamma)


def precision(curvature, case, beta, gamma, H):
    """Dense Hessian of a curvature over its Bayesian weights, and where they are."""
    if curvature == Full():
        return H, slice(None)
    G = beta * (case.J * case.w) @ case.J.T + np.diag(oracles.vec(gamma))
    if isinstance(curvature, Last):
        at = case.slices[curvature.core]
        return G[at, at], at
    if curvature == Diag():
        return np.diag(np.diagonal(G)), slice(None)
    if curvature == BlockDiagonal():
        owner = np.repeat(np.arange(len(case.slices)), [V.size for V in case.network.cores])
        return np.where(owner[:, None] == owner, G, 0.0), slice(None)
    return G, slice(None)


@pytest.mark.parametrize("curvature", CURVED, ids=repr)
def test_posteriors_are_the_dense_ones(curvature, at_map):
    case, beta, gamma, H = at_map
    P, at = precision(curvature, case, beta, gamma, H)
    with case.rows() as rows:
        stat = curvature.evaluate(rows, case.network, None)
    posterior = stat.posterior(beta, oracles.vec(gamma)[at], Truncation())
    covariance = np.linalg.inv(P)
    assert posterior.n_dropped == 0
    assert error(posterior.variances(), np.diagonal(covariance)) < 1e-11
    b = np.random.default_rng(0).standard_normal((len(P), 3))
    assert error(posterior.solve(b), covariance @ b) < 1e-11
    assert (
        error(posterior.quad(case.J[at]), np.sum(case.J[at] * (covariance @ case.J[at]), 0)) < 1e-11
    )
    assert posterior.logdet == pytest.approx(np.linalg.slogdet(P)[1], rel=1e-12)


@pytest.mark.parametrize("curvature", [GGN(), BlockDiagonal(), Diag()], ids=repr)
def test_evidence_is_the_dense_formula(curvature):
    case, beta, _ = trained(3)
    settings = Config(
        rank=2,
        solver=SOLVERS["gauss_newton"],
        curvature=curvature,
        truncation=Truncation(),
        noise=Fixed(beta),
        prior=Fixed(0.7),
        groups=one_group,
        max_steps=500,
        tol=1e-13,
    )
    with case.rows() as rows:
        fit = infer(rows, settings, Start(case.network))
    there = Case(fit.network, case.bases, case.u, case.y, case.weight)
    P, _ = precision(curvature, there, beta, fit.gamma, None)
    rss, v = np.sum(case.w * (case.y - there.f) ** 2), fit.network.vector
    expected = 0.5 * (
        case.w.sum() * np.log(beta / (2 * np.pi))
        - beta * rss
        - 0.7 * v @ v
        + v.size * np.log(0.7)
        - np.linalg.slogdet(P)[1]
    )
    assert fit.log_evidence == pytest.approx(expected, rel=1e-12)
