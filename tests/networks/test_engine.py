"""The compiled engine against NumPy, rows in single precision, and a machine with no compiler."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tensorlace import TNKMRegressor
from tensorlace.columns.bases import Chebyshev, Cosine
from tensorlace.errors import CompilerError
from tensorlace.networks.engine import NUMPY
from tensorlace.networks.gram import padded
from tensorlace.networks.native.engine import CompiledEngine, build
from tensorlace.solvers.als import sweep
from tensorlace.sources import NpySource
from tests.helpers.oracles import error, problem

pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="needs a C compiler"
)
COMPILED = CompiledEngine()
SIZES = [(1, 1, 1), (1, 9, 3), (2, 4, 63), (3, 5, 64), (4, 4, 65), (5, 8, 130), (8, 3, 200)]
SIZES += [(16, 8, 1024), (20, 16, 1024), (20, 40, 300), (41, 12, 129), (7, 20, 1000)]


def block(R, I, n, dtype, *, weighted=False, left=True, right=True):
    rng = np.random.default_rng(R * 1000 + I * 10 + n)
    S = 2 * I - 1
    draw = rng.standard_normal
    return (
        draw((R, n)).astype(dtype) if left else None,
        draw((R, n)).astype(dtype) if right else None,
        draw((R, I)),
        draw((I, n)).astype(dtype),
        padded(draw((S, n)), dtype),
        draw(n),
        rng.uniform(0, 3, n) if weighted else None,
    )


def test_compiled_sums_are_double_even_of_single_rows():
    b = block(4, 6, 512, np.float32)
    assert all(a.dtype == np.float64 for a in COMPILED.core(*b))


@pytest.mark.parametrize("flags", ["-mno-avx512f", "-mno-avx -O1", "-O0"])
def test_other_processors(flags, tmp_path):
    """The branches for short vectors and few registers, in a process of their own."""
    if os.uname().machine != "x86_64":
        pytest.skip("flags of x86")
    check = (
        "import numpy as np\n"
        "from tests.networks.test_engine import *\n"
        "for dtype, tol in ((np.float64, 1e-14), (np.float32, 1e-6)):\n"
        "    for R, I, n in SIZES:\n"
        "        b = block(R, I, n, dtype)\n"
        "        double = tuple(None if a is None else a.astype(np.float64) for a in b)\n"
        "        for a, e in zip(COMPILED.core(*b), NUMPY.core(*double)):\n"
        "            assert error(a[..., : e.shape[-1]] if a.ndim else a, e) < tol, (R, I, n)\n"
    )
    environment = {**os.environ, "CC": f"cc {flags}", "XDG_CACHE_HOME": str(tmp_path)}
    subprocess.run(
        [sys.executable, "-c", check],
        check=True,
        env={**environment, "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=Path(__file__).parents[2],
    )
    assert len(list((tmp_path / "tensorlace").glob("core-*.so"))) == 1


def table(n=3000):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 4))
    y = np.sin(3 * X[:, 0]) * X[:, 1] + X[:, 2] ** 2 + 0.1 * rng.standard_normal(n)
    return X, y


def test_fits_agree():
    X, y = table()
    model = TNKMRegressor(rank=4, solver="als", max_sweeps=60, tol=1, random_state=0)
    mean, std = model.fit(X, y).predict(X, return_std=True)
    for changed, digits in (
        ({"engine": "compiled"}, 1e-11),
        ({"row_dtype": "float32"}, 2e-3),
        ({"engine": "compiled", "row_dtype": "float32"}, 2e-3),
    ):
        other = TNKMRegressor(**{**model.get_params(), **changed}).fit(X, y)
        m, s = other.predict(X, return_std=True)
        assert np.max(np.abs(m - mean)) < digits * np.std(y)
        assert error(s, std) < digits


def test_single_rows_reach_the_objective_of_double_rows():
    p = problem(5, D=3, R=4, N=2000)
    objectives = []
    for dtype in (np.float64, np.float32):
        network = p.network
        with p.rows(dtype=dtype) as rows:
            assert rows.blocks[0].phi(0).dtype == dtype
            for _ in range(30):
                network, _ = sweep(rows, network, p.beta, p.gamma)
        with p.rows() as rows:  # both judged in double precision
            objectives.append(sweep(rows, network, p.beta, p.gamma)[1].objective)
    assert abs(objectives[1] / objectives[0] - 1) < 1e-6


def test_streams_and_threads_give_the_same_bits(tmp_path):
    X, y = table(9000)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    source = NpySource(tmp_path / "X.npy", tmp_path / "y.npy")
    for dtype in ("float64", "float32"):
        model = TNKMRegressor(
            rank=5, solver="als", max_sweeps=12, tol=1, engine="compiled", row_dtype=dtype
        )
        fits = []
        for threads, budget in ((1, 1 << 30), (2, 1 << 30), (2, 0)):
            model.set_params(random_state=0, n_jobs=threads, memory_budget=budget)
            fits.append(model.fit_rows(source).machines_[0].fit)
        for fit in fits[1:]:
            for a, b in zip(fits[0].cores, fit.cores, strict=True):
                np.testing.assert_array_equal(a, b)


def test_no_compiler(monkeypatch, tmp_path):
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(CompilerError, match="needs a C compiler and none was found"):
        build(tmp_path)


def test_a_compiler_that_fails(monkeypatch, tmp_path):
    monkeypatch.setenv("CC", "false")
    with pytest.raises(CompilerError, match=r"false could not build .*engine='numpy'"):
        build(tmp_path)
    assert not list(tmp_path.iterdir())


def test_nowhere_to_keep_it(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CompilerError, match="name another directory in XDG_CACHE_HOME"):
        build(tmp_path / "file" / "below")


def test_built_once(tmp_path):
    path = build(tmp_path)
    before = path.stat().st_mtime_ns
    assert build(tmp_path) == path
    assert path.stat().st_mtime_ns == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("n", [1, 63, 64, 65, 1000])
@pytest.mark.parametrize("basis", [Cosine(1), Cosine(2), Cosine(9, lengthscale=0.3), Cosine(40)])
def test_compiled_features(basis, n):
    rng = np.random.default_rng(n)
    u = rng.uniform(-0.1, 1.1, n)
    for weight in (None, rng.uniform(0, 3, n)):
        for dtype, digits in ((np.float64, 1e-14), (np.float32, 2e-7)):
            phi = COMPILED.features(basis, u, dtype)
            psi = COMPILED.products(basis, u, weight, dtype)
            assert phi.dtype == psi.dtype == dtype
            assert error(phi, NUMPY.features(basis, u, np.float64)) < digits * basis.n
            expected = NUMPY.products(basis, u, weight, dtype)
            assert psi.shape == expected.shape
            assert error(psi, expected.astype(np.float64)) < 2 * digits * basis.n


def test_other_bases_are_left_to_numpy():
    u = np.random.default_rng(0).uniform(-1, 1, 50)
    for a, b in (
        (COMPILED.features(Chebyshev(5), u, np.float64), Chebyshev(5).phi(u)),
        (COMPILED.products(Chebyshev(5), u, None, np.float64), padded(Chebyshev(5).psi(u))),
    ):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("n", [1, 7, 8, 63, 64, 65, 100, 1024, 1203])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_features_that_are_not_kept_give_the_same_bits(n, dtype):
    rng = np.random.default_rng(n)
    u = rng.uniform(size=n)
    for basis in (Cosine(1), Cosine(3), Cosine(40, lengthscale=0.1), Chebyshev(4)):
        V = rng.standard_normal((7, basis.n))
        for times in (None, rng.standard_normal((7, n)).astype(dtype)):
            for engine in (NUMPY, COMPILED):
                kept = engine.factor(V, engine.features(basis, u, dtype), times)
                np.testing.assert_array_equal(engine.evaluate(basis, u, V, times, dtype), kept)
