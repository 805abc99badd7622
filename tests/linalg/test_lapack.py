"""LAPACK without the lock: SciPy's bits, bad input, and threads that do not wait."""

import ctypes
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.linalg
from scipy.linalg import lapack as flapack

from tensorlace.linalg import lapack
from tensorlace.linalg.lapack import (
    cholesky,
    cholesky_inverse,
    cholesky_rcond,
    cholesky_solve,
    eigh,
    svd,
    triangular_inverse,
    triangular_solve,
)
from tensorlace.linalg.symmetric import eigen, inverse_root, solve

same = np.testing.assert_array_equal
LAYOUTS = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "strided": lambda A: np.repeat(np.repeat(A, 2, axis=0), 3, axis=1)[::2, ::3],
    "reversed": lambda A: np.ascontiguousarray(A[::-1, ::-1])[::-1, ::-1],
}


def positive(n):
    rng = np.random.default_rng(n)
    A = rng.standard_normal((n, n + 2))
    return A @ A.T / (n + 2), rng.standard_normal(n), rng.standard_normal((n, 5))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("n", [1, 2, 3, 8, 31, 64, 65, 130, 300])
def test_symmetric_routines_have_the_bits_of_scipy(n, layout):
    K, b, B = positive(n)
    given = LAYOUTS[layout](K)
    same(given, K)
    L, info = flapack.dpotrf(K, lower=1, clean=1)
    assert info == 0
    factor = cholesky(given)
    same(np.tril(factor), L)
    same(np.tril(factor), scipy.linalg.cholesky(K, lower=True))
    same(np.triu(factor, 1), np.triu(K, 1))
    low = LAYOUTS[layout](L)
    norm = np.abs(K).sum(axis=0).max()
    # SciPy's last bit depends on where its work space happens to begin
    expected = flapack.dpocon(L, norm, uplo="L")[0]
    assert cholesky_rcond(low, norm) == pytest.approx(expected, rel=1e-15)
    wide = LAYOUTS[layout](B)
    same(cholesky_solve(low, b), scipy.linalg.cho_solve((L, True), b))
    same(cholesky_solve(low, wide), scipy.linalg.cho_solve((L, True), B))
    same(cholesky_inverse(low), np.tril(flapack.dpotri(L, lower=1)[0]))
    same(triangular_inverse(low), flapack.dtrtri(L, lower=1)[0])
    for transposed in (False, True):
        for right, laid in ((b, b), (B, wide)):
            expected = flapack.dtrtrs(L, right, lower=1, trans=int(transposed))[0]
            same(triangular_solve(low, laid, transposed=transposed), expected)
    lam, U = scipy.linalg.eigh(K)
    found = eigh(given)
    same(found[0], lam)
    same(found[1], U)
    same(given, K)  # nobody's input is overwritten
    same(low, L)
    same(wide, B)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (20, 20), (90, 33), (33, 90), (400, 20)])
def test_svd_has_the_bits_of_scipy(shape, layout):
    A = np.random.default_rng(sum(shape)).standard_normal(shape)
    given = LAYOUTS[layout](A)
    for found, expected in zip(svd(given), scipy.linalg.svd(A, full_matrices=False), strict=True):
        same(found, expected)
    same(given, A)


@pytest.mark.parametrize("shape", [(20, 20), (90, 33), (33, 90)])
def test_svd_goes_on_where_divide_and_conquer_gives_up(shape, monkeypatch):
    A = np.random.default_rng(1).standard_normal(shape)
    svd(A)  # it now knows its work space
    monkeypatch.setattr("tensorlace.linalg.lapack._gesdd", lambda A, *rest: A.fill(np.nan) or 1)
    expected = scipy.linalg.svd(A, full_matrices=False, lapack_driver="gesvd")
    for found, there in zip(svd(A), expected, strict=True):
        np.testing.assert_allclose(found, there, rtol=0, atol=1e-13)
    monkeypatch.setattr("tensorlace.linalg.lapack._gesvd", lambda *_: 3)
    with pytest.raises(np.linalg.LinAlgError, match="dgesvd gave 3"):
        svd(A)


@pytest.mark.parametrize("n", [5, 40])
def test_only_the_lower_triangle_is_read(n):
    K, _, _ = positive(n)
    L, upper = cholesky(K), np.triu(np.full((n, n), np.nan), 1)
    low, b = np.tril(L) + upper, np.arange(1.0, n + 1)
    same(cholesky_solve(low, b), cholesky_solve(L, b))
    same(triangular_solve(low, b), triangular_solve(L, b))
    same(np.tril(triangular_inverse(low)), np.tril(triangular_inverse(L)))
    assert cholesky_rcond(low, 1.0) == cholesky_rcond(L, 1.0)
    same(eigh(np.tril(K) + upper)[1], eigh(K)[1])


def test_other_kinds_of_numbers_become_double():
    K, b, _ = positive(6)
    K, b = K.astype(np.float32), b.astype(np.float32)
    L = cholesky(K)
    assert L.dtype == np.float64
    same(L, cholesky(K.astype(np.float64)))
    same(np.tril(cholesky(np.array([[4, 2], [2, 2]]))), [[2.0, 0.0], [1.0, 1.0]])
    same(cholesky_solve(L.astype(np.float32), b), cholesky_solve(L.astype(np.float32) * 1.0, b))


def test_a_matrix_that_is_not_positive_definite_has_no_factor():
    assert cholesky(np.diag([1.0, -1.0])) is None
    assert cholesky(np.ones((2, 2))) is None


def test_a_condition_number_does_not_depend_on_where_it_is_computed():
    K, _, _ = positive(300)
    L, norm, kept = cholesky(K), np.abs(K).sum(axis=0).max(), []
    values = set()
    for size in range(1, 60):
        kept.append(np.empty(2 * size))  # moves what comes after
        values.add(cholesky_rcond(L.copy(order="F"), norm))
    assert len(values) == 1


def test_empty_matrices():
    empty = np.empty((0, 0))
    assert cholesky(empty).shape == cholesky_inverse(empty).shape == (0, 0)
    assert triangular_inverse(empty).shape == (0, 0)
    assert cholesky_rcond(empty, 0.0) == 1.0
    for solver in (cholesky_solve, triangular_solve):
        assert solver(empty, np.empty(0)).shape == (0,)
        assert solver(empty, np.empty((0, 3))).shape == (0, 3)
        assert solver(np.eye(2), np.empty((2, 0))).shape == (2, 0)
    assert [a.shape for a in eigh(empty)] == [(0,), (0, 0)]
    assert [a.shape for a in svd(np.empty((3, 0)))] == [(3, 0), (0,), (0, 0)]
    assert [a.shape for a in svd(np.empty((0, 3)))] == [(0, 0), (0,), (0, 3)]
    assert solve(empty, np.empty(0)).x.shape == (0,)
    assert inverse_root(empty)[1] == 0.0
    assert eigen(empty)[1].shape == (0, 0)


@pytest.mark.parametrize(
    "routine", [triangular_inverse, cholesky_inverse, lambda L: triangular_solve(L, np.ones(3))]
)
def test_singular_triangles(routine):
    with pytest.raises(scipy.linalg.LinAlgError, match="element 1 of the diagonal is zero"):
        routine(np.diag([1.0, 0.0, 2.0]))


def test_bad_input():
    for routine in (cholesky, cholesky_inverse, triangular_inverse, eigh):
        with pytest.raises(ValueError, match=r"\(2, 3\) is not square"):
            routine(np.ones((2, 3)))
    for routine in (cholesky_solve, triangular_solve):
        with pytest.raises(ValueError, match=r"right side \(3,\) does not fit a matrix \(2, 2\)"):
            routine(np.eye(2), np.ones(3))
    with pytest.raises(ValueError, match="must not contain infs or NaNs"):
        svd(np.array([[1.0, np.nan]]))
    with pytest.raises(ValueError, match="more elements than LAPACK counts"):
        svd(np.broadcast_to(0.0, (1 << 16, 1 << 16)))


def test_failures_of_lapack_are_reported(monkeypatch):
    eigh(np.eye(3))
    svd(np.eye(3))  # both now know their work space
    monkeypatch.setattr(lapack, "_call", lambda name, *arguments: 2)
    with pytest.raises(scipy.linalg.LinAlgError, match=r"\(3, 3\) not found: dsyevr gave 2"):
        eigh(np.eye(3))
    with pytest.raises(scipy.linalg.LinAlgError, match="did not converge: dgesvd gave 2"):
        svd(np.eye(3))


def test_an_illegal_argument_is_reported():
    with pytest.raises(ValueError, match="dpotrf does not take its argument 1"):
        lapack._call("dpotrf", b"X", 1, np.ones(1), 1)


def test_signatures_are_checked(monkeypatch):
    other = SimpleNamespace(__pyx_capi__={"dpotrf": None})
    monkeypatch.setattr(lapack, "cython_lapack", other)
    monkeypatch.setattr(lapack, "_name", lambda capsule: b"void (char *, long *)")
    with pytest.raises(ImportError, match=r"dpotrf .*takes void \(char \*, long \*\)"):
        lapack._routine.__wrapped__("dpotrf")


def progress_during(routine, tries):
    """Steps another thread makes while ``routine`` factors a matrix.

    Threads are not made to take turns, so the other one runs only if the lock is let go of.
    """
    steps, done = [0], threading.Event()

    def count():
        while not done.is_set():
            steps[0] += 1
            time.sleep(1e-4)  # lets go of the lock each time

    n = 1000
    K = np.eye(n) * n + 1.0
    L, info = np.empty_like(K, order="F"), ctypes.c_int(0)
    arguments = (b"L", ctypes.byref(ctypes.c_int(n)), L.ctypes.data)
    arguments = (*arguments, ctypes.byref(ctypes.c_int(n)), ctypes.byref(info))
    other = threading.Thread(target=count)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e3)
    try:
        other.start()
        made = 0
        while not made and tries:
            L[:] = K
            before = steps[0]
            routine(*arguments)
            made, tries = steps[0] - before, tries - 1
    finally:
        done.set()
        sys.setswitchinterval(interval)
        other.join()
    assert info.value == 0
    return made


def test_other_threads_run_during_a_factorisation():
    free = lapack._routine("dpotrf")
    address = ctypes.cast(free, ctypes.c_void_p).value
    held = ctypes.PYFUNCTYPE(None, *[ctypes.c_void_p] * 5)(address)
    assert progress_during(held, tries=5) == 0  # what the test would see with the lock
    assert progress_during(free, tries=200) > 0


def test_threads_get_their_own_results():
    matrices = [positive(n) for n in range(20, 60)]
    expected = [(eigh(K), solve(K, b).x) for K, b, _ in matrices]
    wrong = []

    def work():
        for (K, b, _), ((lam, U), x) in zip(matrices, expected, strict=True):
            found, vectors = eigh(K)
            same_bits = (found == lam).all() and (vectors == U).all()
            if not (same_bits and (solve(K, b).x == x).all()):
                wrong.append(len(K))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
