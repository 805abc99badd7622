"""Every registered engine does the arithmetic of NumPy, to rounding: one contract."""

import shutil

import numpy as np
import pytest

from tensorlace.fitting.registry import BASES, ENGINES
from tensorlace.networks.engine import NUMPY
from tensorlace.networks.gram import padded
from tensorlace.solvers.als import sweep
from tests.helpers.oracles import error, problem

pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="the compiled one needs a C compiler"
)
ALL = pytest.mark.parametrize("engine", ENGINES.values(), ids=list(ENGINES))
SIZES = [(1, 1, 1), (1, 9, 3), (2, 4, 63), (3, 5, 64), (4, 4, 65), (5, 8, 130), (8, 3, 200)]
SIZES += [(16, 8, 1024), (20, 16, 1024), (20, 40, 300), (41, 12, 129), (7, 20, 1000)]
SIDES = [(True, True), (False, True), (True, False), (False, False)]


def block(R, I, n, dtype, *, left, right):
    """Arguments of `Engine.core`; a block with both neighbours has weights."""
    rng = np.random.default_rng(R * 1000 + I * 10 + n)
    draw = rng.standard_normal
    return (
        draw((R, n)).astype(dtype) if left else None,
        draw((R, n)).astype(dtype) if right else None,
        draw((R, I)),
        draw((I, n)).astype(dtype),
        padded(draw((2 * I - 1, n)), dtype),
        draw(n),
        rng.uniform(0, 3, n) if left else None,
    )


@ALL
@pytest.mark.parametrize(("dtype", "digits"), [(np.float64, 1e-14), (np.float32, 1e-6)])
@pytest.mark.parametrize("sides", SIDES)
@pytest.mark.parametrize(("R", "I", "n"), SIZES)
def test_sums_of_a_block(engine, dtype, digits, sides, R, I, n):
    b = block(R, I, n, dtype, left=sides[0], right=sides[1])
    double = tuple(None if a is None else a.astype(np.float64) for a in b)
    exact = NUMPY.core(*double)
    for a, e in zip(engine.core(*b), exact, strict=True):
        assert error(a[..., : e.shape[-1]] if a.ndim else a, e) < digits
    if b[1] is not None:
        M = NUMPY.moments(double[4], double[1])
        assert error(engine.moments(b[4], b[1])[:, : M.shape[1]], M) < digits
    F = engine.factor(b[2], b[3], b[0])
    assert F.dtype == dtype
    assert error(F, NUMPY.factor(b[2], double[3], double[0])) < digits


@ALL
@pytest.mark.parametrize(("dtype", "digits"), [(np.float64, 1e-14), (np.float32, 2e-7)])
@pytest.mark.parametrize("name", BASES)
def test_features_of_every_basis(engine, dtype, digits, name):
    basis = BASES[name](5)
    rng = np.random.default_rng(0)
    codes = basis.interval is None
    u = rng.integers(0, 5, 100).astype(float) if codes else rng.uniform(*basis.interval, 100)
    for weight in (None, rng.uniform(0, 3, 100)):
        phi = engine.features(basis, u, dtype)
        psi = engine.products(basis, u, weight, dtype)
        assert phi.dtype == psi.dtype == dtype
        assert error(phi, NUMPY.features(basis, u, np.float64)) < digits * 10
        expected = NUMPY.products(basis, u, weight, np.float64)
        assert error(psi[:, : expected.shape[1]], expected) < digits * 10
    V = rng.standard_normal((7, basis.n))
    for times in (None, rng.standard_normal((7, 100)).astype(dtype)):
        kept = engine.factor(V, engine.features(basis, u, dtype), times)
        np.testing.assert_array_equal(engine.evaluate(basis, u, V, times, dtype), kept)


@ALL
@pytest.mark.parametrize("weighted", [False, True])
def test_a_sweep(engine, weighted):
    p = problem(3, D=4, R=6, N=700, weighted=weighted)
    with p.rows() as rows, p.rows(engine=engine) as own, p.rows(threads=2, engine=engine) as two:
        plain, info = sweep(rows, p.network, p.beta, p.gamma)
        found, found_info = sweep(own, p.network, p.beta, p.gamma)
        threaded, _ = sweep(two, p.network, p.beta, p.gamma)
    assert abs(found_info.objective / info.objective - 1) < 1e-12
    for a, b, c in zip(plain.cores, found.cores, threaded.cores, strict=True):
        assert error(b, a) < 1e-9
        np.testing.assert_array_equal(b, c)


@ALL
@pytest.mark.parametrize("rank", [1, 2, 7, 20, 100])
def test_blocks_are_powers_of_two(engine, rank):
    rows = engine.block_rows(rank)
    assert rows >= 1
    assert rows & (rows - 1) == 0
