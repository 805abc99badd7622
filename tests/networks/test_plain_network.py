"""A network told by its environments alone does what those of their own kind do."""

from dataclasses import dataclass

import numpy as np
import pytest

from tensorlace import TNKMRegressor
from tensorlace.fitting.registry import NETWORKS
from tensorlace.networks.cpd import CPD
from tensorlace.networks.plain_network import PlainNetwork
from tensorlace.networks.tensor_train import TensorTrain

SIZES, RANK, N = (3, 4, 2, 3), 2, 11


@dataclass(frozen=True, eq=False)
class PlainCPD(PlainNetwork):
    cores: tuple[np.ndarray, ...]

    @classmethod
    def initialise(cls, constants, rank, rng):
        return cls(CPD.initialise(constants, rank, rng).cores)

    widths = staticmethod(CPD.widths)

    @property
    def rank(self):
        return len(self.cores[0])

    def is_consistent(self):
        return len({len(V) for V in self.cores}) == 1

    def environment(self, factors, d):
        out = np.ones(factors[d].shape)
        for F in (*factors[:d], *factors[d + 1 :]):
            out = out * F
        return out

    def portable_environments(self, g, factors):
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class PlainTrain(PlainCPD):
    ranks: tuple[int, ...] = ()

    @classmethod
    def initialise(cls, constants, rank, rng):
        train = TensorTrain.initialise(constants, rank, rng)
        return cls(train.cores, train.ranks)

    def environment(self, factors, d):
        shapes = zip(factors, self.ranks[:-1], self.ranks[1:], strict=True)
        M = [F.reshape(r, s, -1) for F, r, s in shapes]
        left = right = np.ones((1, 1, 1))
        for m in M[:d]:
            left = np.einsum("abn,bcn->acn", left, m)
        for m in M[:d:-1]:
            right = np.einsum("abn,bcn->acn", m, right)
        Z = np.einsum("xan,bxn->abn", left, right)
        return np.broadcast_to(Z, (*Z.shape[:2], factors[d].shape[1])).reshape(len(factors[d]), -1)


@pytest.fixture(params=[(PlainCPD, CPD), (PlainTrain, TensorTrain)], ids=["cpd", "train"])
def pair(request):
    plain, own = request.param
    constants = [np.eye(size)[0] for size in SIZES]
    return [kind.initialise(constants, RANK, np.random.default_rng(3)) for kind in (plain, own)]


@pytest.fixture
def phi():
    rng = np.random.default_rng(4)
    return [rng.standard_normal((size, N)) for size in SIZES]


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


def test_response_and_first_derivatives(pair, phi):
    plain, own = pair
    close(plain.response(phi), own.response(phi))
    close(plain.jacobian(phi), own.jacobian(phi))
    for d in range(len(SIZES)):
        for a, b in zip(*(n.response_and_environment(phi, d) for n in pair), strict=True):
            close(a, b)


def test_second_derivatives(pair, phi):
    misfit = np.random.default_rng(5).standard_normal(N)
    matrices = [n.cross_matrix(n.cross_terms(phi, misfit)) for n in pair]
    close(*matrices)
    assert np.array_equal(matrices[0], matrices[0].T)
    assert np.abs(matrices[0]).max() > 0.01


def test_derivatives_along_a_direction(pair, phi):
    rng = np.random.default_rng(6)
    y, change, misfit = rng.standard_normal((3, N))
    direction = tuple(rng.standard_normal(V.shape) for V in pair[0].cores)
    plain, own = (n.local(phi) for n in pair)
    close(plain.residual(y), own.residual(y))
    close(plain.push(direction), own.push(direction))
    close(plain.bend(direction), own.bend(direction))
    for a, b in zip(plain.pull(change), own.pull(change), strict=True):
        close(a, b)
    for a, b in zip(*(n.pull_turned(change, misfit, direction) for n in (plain, own)), strict=True):
        close(a, b)


def test_balancing_keeps_the_response_and_lowers_the_penalty(pair, phi):
    plain, _ = pair
    gamma = tuple(np.full(V.shape, 2.0 + d) for d, V in enumerate(plain.cores))
    balanced = plain.balanced(gamma)
    close(balanced.response(phi), plain.response(phi))

    def penalty(network):
        return sum(np.sum(g * V * V) for g, V in zip(gamma, network.cores, strict=True))

    assert penalty(balanced) < penalty(plain)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", ["als", "gauss_newton", "matrix_free"])
def test_fits_take_the_same_steps(solver):
    rng = np.random.default_rng(7)
    X = rng.uniform(-1, 1, (150, 3))
    y = np.sin(2 * X[:, 0]) * X[:, 1] + X[:, 2] + 0.1 * rng.standard_normal(150)
    NETWORKS.register("plain train", PlainTrain)
    try:
        how = {"rank": 2, "n_basis": 3, "solver": solver, "max_sweeps": 8}
        found = [
            TNKMRegressor(network=name, random_state=0, **how).fit(X, y).predict(X, return_std=True)
            for name in ("plain train", "tt")
        ]
    finally:
        NETWORKS.remove("plain train")
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8)
