"""A network of somebody else: one class and one line, and every promise is kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, final

import numpy as np
import pytest

from tensorlace import TNKMRegressor
from tensorlace.fitting.registry import NETWORKS
from tensorlace.networks.column_network import ColumnNetwork
from tensorlace.networks.network import Local, Surroundings
from tests.helpers import member_contract, network_contract
from tests.helpers.member_contract import X, Y, quietly
from tests.helpers.registered import registered


def _chain(matrices, n, rank):
    """Product (rank, rank, n) of matrices, the unit matrix if there are none."""
    unit = np.repeat(np.eye(rank)[:, :, None], n, axis=2)
    return reduce(lambda A, B: np.einsum("abn,bcn->acn", A, B), matrices, unit)


@final
@dataclass(frozen=True, eq=False)
class Ring(ColumnNetwork):
    """A train whose ends are tied together: ``f = tr V^(1)[φ_1] ... V^(D)[φ_D]``.

    Cores are (R², I_d), the left index slower.
    """

    cores: tuple

    def with_cores(self, cores):
        return Ring(cores)

    @classmethod
    def initialise(cls, constants, rank, rng):
        scale = rank ** (-1.0 / len(constants))
        cores = []
        for c in constants:
            core = 0.3 * rng.standard_normal((rank, rank, len(c))) / np.sqrt(rank * len(c))
            core[np.arange(rank), np.arange(rank)] += rng.choice([-1.0, 1.0], (rank, 1)) * c
            cores.append(scale * core.reshape(rank * rank, -1))
        return cls(tuple(cores))

    @staticmethod
    def widths(sizes, rank):
        return (rank * rank,) * len(sizes)

    def is_consistent(self):
        matrices = len(self.cores) > 0 and all(V.ndim == 2 for V in self.cores)
        return matrices and {len(V) for V in self.cores} == {self.rank**2}

    @property
    def rank(self):
        return round(len(self.cores[0]) ** 0.5)

    @property
    def kept_per_row(self):
        return sum(map(len, self.cores))

    def factors(self, cores, phi):
        """Matrices (R, R, n) of all columns."""
        R = self.rank
        return [(V @ phi[d]).reshape(R, R, -1) for d, V in enumerate(cores)]

    def around(self, M, d):
        """Environment (R², n): what closes the ring, transposed."""
        n = M[0].shape[2]
        return _chain([*M[d + 1 :], *M[:d]], n, self.rank).swapaxes(0, 1).reshape(-1, n)

    def response(self, phi):
        M = self.factors(self.cores, phi)
        return np.einsum("aan->n", _chain(M, M[0].shape[2], self.rank))

    def environments(self, phi):
        M = self.factors(self.cores, phi)
        return [self.around(M, d) for d in range(len(M))]

    def response_and_environment(self, phi, d):
        return self.response(phi), self.around(self.factors(self.cores, phi), d)

    def with_extra_functions(self, weights):
        return Ring(tuple(map(np.column_stack, zip(self.cores, weights, strict=True))))

    def local(self, phi: Sequence, kept: Any = None):
        return _LocalRing(self, phi, kept)

    def surroundings(self, keep):
        return _AroundRing(self)

    def cross_terms(self, phi, misfit):
        M, R = self.factors(self.cores, phi), self.rank
        D, n = len(M), len(misfit)
        out = []
        for k in range(D):
            for m in range(k + 1, D):
                between = _chain(M[k + 1 : m], n, R)
                outside = _chain([*M[m + 1 :], *M[:k]], n, R)
                tile = np.einsum(
                    "n,in,bcn,jn,dan->abicdj",
                    *(misfit, phi[k], between, phi[m], outside),
                    optimize=True,
                )
                out.append(tile.reshape(self.cores[k].size, self.cores[m].size))
        return tuple(out)

    def cross_matrix(self, terms):
        D = len(self.cores)
        tiles = [[np.zeros((V.size, W.size)) for W in self.cores] for V in self.cores]
        pairs = [(k, m) for k in range(D) for m in range(k + 1, D)]
        for (k, m), tile in zip(pairs, terms, strict=True):
            tiles[k][m], tiles[m][k] = tile, tile.T
        return np.block(tiles)

    def balanced(self, gamma):
        counts = [g if g.any() else np.ones_like(g) for g in gamma]
        penalty = np.array([np.sum(g * V * V) for g, V in zip(counts, self.cores, strict=True)])
        if not np.all(penalty > 0.0):
            return self
        log = np.log(penalty)
        scales = np.exp(0.5 * (log.mean() - log))
        return Ring(tuple(s * V for s, V in zip(scales, self.cores, strict=True)))

    def portable_environments(self, g, factors):
        raise NotImplementedError


class _AroundRing(Surroundings):
    """All other cores, computed each time."""

    def __init__(self, network):
        self._network = network

    def around(self, block, d, cores):
        R = self._network.rank
        M = [block.factor(k, V, None).reshape(R, R, -1) for k, V in enumerate(cores)]
        return None, self._network.around(M, d)


class _LocalRing(Local):
    """Environments are kept."""

    def __init__(self, network, phi, kept):
        self._network, self._phi = network, phi
        self.kept = network.environments(phi) if kept is None else kept

    def response(self):
        return np.einsum("kn,kn->n", self._network.cores[0] @ self._phi[0], self.kept[0])

    def residual(self, y):
        return y - self.response()

    def push(self, direction):
        triples = zip(direction, self._phi, self.kept, strict=True)
        return sum(np.einsum("kn,kn->n", P @ p, z) for P, p, z in triples)

    def pull(self, q):
        return tuple((z * q) @ p.T for z, p in zip(self.kept, self._phi, strict=True))

    def turned(self, direction):
        """Derivatives of the environments: one other core after another moves."""
        network = self._network
        M = network.factors(network.cores, self._phi)
        T = network.factors(direction, self._phi)
        D = len(M)
        return [
            sum(
                (network.around([*M[:e], T[e], *M[e + 1 :]], d) for e in range(D) if e != d),
                np.zeros_like(self.kept[d]),
            )
            for d in range(D)
        ]

    def pull_turned(self, change, misfit, direction):
        triples = zip(self.kept, self.turned(direction), self._phi, strict=True)
        return tuple((z * change + dz * misfit) @ p.T for z, dz, p in triples)

    def bend(self, direction):
        triples = zip(direction, self._phi, self.turned(direction), strict=True)
        return sum(np.einsum("kn,kn->n", P @ p, dz) for P, p, dz in triples)


@pytest.fixture(autouse=True)
def ring():
    with registered(NETWORKS, "ring", Ring):
        yield


@pytest.mark.parametrize("check", network_contract.CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(("D", "R"), [(1, 2), (2, 3), (3, 2), (4, 2)])
@pytest.mark.parametrize("build", network_contract.builders("ring", Ring).values())
def test_contract(build, D, R, check):
    check(network_contract.case_of(build, D, R))


@pytest.mark.parametrize("check", network_contract.KIND_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(("D", "R"), network_contract.SHAPES)
def test_contract_of_the_kind(D, R, check):
    check(Ring, D, R)


@pytest.mark.parametrize("check", member_contract.CHECKS, ids=lambda check: check.__name__)
def test_contract_of_the_member(check, tmp_path):
    """Fits, streams, is saved and loaded."""
    check({"network": "ring"}, tmp_path)


@pytest.mark.parametrize("solver", ["als", "gauss_newton", "matrix_free"])
@pytest.mark.parametrize("curvature", ["last", "block", "ggn", "diag", "full"])
def test_every_solver_and_curvature_takes_it(solver, curvature):
    model = TNKMRegressor(
        network="ring", rank=2, n_basis=4, solver=solver, curvature=curvature, random_state=0
    ).set_params(max_sweeps=60)
    mean, std = quietly(model.fit, X, Y).predict(X, return_std=True)
    assert np.mean((mean - Y) ** 2) < 0.05 * np.var(Y)
    assert np.all(std > 0.0)
