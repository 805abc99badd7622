"""The structured Gram against the plain one, for every basis there is."""

import tracemalloc

import numpy as np
import pytest

from tensorlace.columns import bases
from tensorlace.networks import column_network, network
from tensorlace.networks.cpd import CPD
from tensorlace.networks.gram import block_rows, expand, moments, padded, pair_products
from tensorlace.rows.memory import MemoryRows
from tensorlace.solvers.als import core_system
from tests.helpers import oracles
from tests.helpers.oracles import error, problem

KINDS = [
    kind
    for kind in (getattr(bases, name) for name in bases.__all__)
    if isinstance(kind, type) and issubclass(kind, bases.Basis) and kind is not bases.Basis
]
EVERY_BASIS = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


@EVERY_BASIS
@pytest.mark.parametrize("n", [4, 5, 16])
@pytest.mark.parametrize("R", [1, 3])
def test_gram_of_every_basis(kind, n, R):
    rng = np.random.default_rng(n)
    if kind is bases.Subset:
        basis = kind(bases.Cosine(n + 2), (0, *range(2, n)))
    else:
        basis = kind(bases.Cosine(n)) if kind is bases.Missing else kind(n)
    (u,) = oracles.variables([basis], 200, rng)
    if kind is bases.Missing:
        u[::7] = np.nan
    Z = rng.standard_normal((R, 200))
    A = np.einsum("rn,in->nri", Z, basis.phi(u)).reshape(200, -1)
    G = expand(moments(padded(basis.psi(u)), Z), basis.closure(), R)
    # each entry in units of its own row and column, so that small functions count as well
    size = np.sqrt(np.diagonal(A.T @ A))
    assert np.max(np.abs(G - A.T @ A) / np.outer(size, size)) < 1e-14
    np.testing.assert_array_equal(G, G.T)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("block", [1, 7, 64, 1000])
@pytest.mark.parametrize("D", [1, 2, 4])
def test_core_system_is_the_dense_one(weighted, block, D):
    p = problem(D, D=D, R=3, N=150, weighted=weighted)
    A = oracles.jacobian(p.cores, p.phi)
    f = oracles.response(p.cores, p.phi)
    with p.rows(block_rows=block) as rows:
        for d, V in enumerate(p.cores):
            system = core_system(rows, p.network, d)
            Ad = A[:, oracles.positions(p.cores, (d,))]
            assert error(system.gram, Ad.T @ (p.w[:, None] * Ad)) < 1e-13
            assert error(system.residual, (Ad.T @ (p.w * (p.y - f))).reshape(V.shape)) < 1e-13
            assert system.rss == pytest.approx(p.w @ (p.y - f) ** 2, rel=1e-13)


@pytest.mark.parametrize("S", [1, 7, 8, 9])
def test_padding_adds_nothing(S):
    psi = np.random.default_rng(0).standard_normal((S, 5))
    out = padded(psi)
    assert out.shape == (5, 8 * ((S + 7) // 8))
    np.testing.assert_array_equal(out[:, :S], psi.T)
    np.testing.assert_array_equal(out[:, S:], 0.0)


@pytest.mark.parametrize("R", [1, 2, 3, 4, 7, 16])
def test_moments_are_those_of_the_upper_triangle(R):
    rng = np.random.default_rng(0)
    Z, one_row_each = rng.standard_normal((R, 8)), np.eye(8)
    pairs = [Z[r] * Z[q] for r in range(R) for q in range(r, R)]
    np.testing.assert_array_equal(moments(one_row_each, Z), pairs)
    assert sorted(map(tuple, pair_products(Z))) == sorted(map(tuple, pairs))


def test_the_design_matrix_is_never_formed(monkeypatch):
    def refuse(*_):
        raise AssertionError("a design matrix was asked for")

    for module in (network, column_network):
        monkeypatch.setattr(module, "design", refuse)
    N, n, R = 20_000, 16, 8
    rng = np.random.default_rng(0)
    kinds = (bases.Chebyshev(n), bases.Cosine(n), bases.Legendre(n))
    u, y = oracles.variables(kinds, N, rng), rng.standard_normal(N)
    cpd = CPD(tuple(rng.standard_normal((R, n)) for _ in kinds))
    with MemoryRows(u, y, None, kinds, block_rows=block_rows(R), memory_budget=0) as rows:
        tracemalloc.start()
        core_system(rows, cpd, 1)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 8 * N * n * R / 10  # one block and the Gram itself: a twentieth


@pytest.mark.parametrize("R", [1, 5, 20, 100, 1000])
def test_blocks_are_powers_of_two_that_fit_the_cache(R):
    rows = block_rows(R)
    assert rows == 2 ** round(np.log2(rows))
    assert 64 <= rows <= 1024
    assert rows == 64 or 8 * rows * R * (R + 1) // 2 <= 2**21
