"""LAPACK without Python's lock: the bits of SciPy, but threads run side by side.

SciPy's wrappers hold the interpreter's lock while LAPACK works, so several small fits on threads
would wait for each other. Here the same routines are called through the C pointers that SciPy
publishes for Cython, `scipy.linalg.cython_lapack`, and ctypes lets go of the lock in the meantime.
Everything is float64; results are laid out by columns, as LAPACK leaves them.
"""

import ctypes
import re
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cython_lapack

from tensorlace._types import Array

__all__ = [
    "cholesky",
    "cholesky_inverse",
    "cholesky_rcond",
    "cholesky_solve",
    "eigh",
    "svd",
    "triangular_inverse",
    "triangular_solve",
]

_NUMBER = re.compile(r"(char|int|\w+_d) \*")
_LARGEST = int(np.iinfo(np.int32).max)
_WHOLE = np.dtype(np.int32)

_name = ctypes.pythonapi.PyCapsule_GetName
_name.restype, _name.argtypes = ctypes.c_char_p, [ctypes.py_object]
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def cholesky(K: Array) -> Array | None:
    """Lower factor ``L`` of symmetric ``K = L Lᵀ`` (P, P); None if not positive definite.

    Above the diagonal stands what ``K`` has there: no function here looks.

    >>> np.tril(cholesky(np.array([[4.0, 2.0], [2.0, 2.0]])))
    array([[2., 0.],
           [1., 1.]])
    """
    n, L = _order(K), _by_columns(K.T)  # rows of K become columns: a straight copy
    return L if n == 0 or _call("dpotrf", b"L", n, L, n) == 0 else None


def cholesky_rcond(L: Array, norm: float) -> float:
    """Estimate ``1 / (‖K‖₁ ‖K⁻¹‖₁)`` from the lower factor of ``K`` and its norm ``‖K‖₁``."""
    n = _order(L)
    if n == 0:
        return 1.0
    rcond, whole = np.zeros(1), np.empty(n, _WHOLE)
    # sums of absolute values begin where a cache line does: the last bit may not depend on luck
    room = np.empty(3 * n + 8)
    work = room[-(room.ctypes.data // 8) % 8 :]
    _call("dpocon", b"L", n, _laid(L), n, float(norm), rcond, work, whole)
    return float(rcond[0])


def cholesky_solve(L: Array, b: Array) -> Array:
    """``(L Lᵀ)⁻¹ b`` for ``b`` (P,) or (P, k)."""
    n, x = _order(L), _by_columns(b)
    if columns := _width(L, x):
        _call("dpotrs", b"L", n, columns, _laid(L), n, x, n)
    return x


def cholesky_inverse(L: Array) -> Array:
    """Lower triangle of ``(L Lᵀ)⁻¹`` (P, P), zeros above.

    Raises
    ------
    LinAlgError
        If a diagonal element of ``L`` is zero.
    """
    inverse = _by_columns(np.tril(L))
    n = _order(inverse)
    if n:
        _regular(_call("dpotri", b"L", n, inverse, n))
    return inverse


def triangular_solve(L: Array, b: Array, *, transposed: bool = False) -> Array:
    """``L⁻¹ b``, or ``L⁻ᵀ b``, for lower triangular ``L`` (P, P) and ``b`` (P,) or (P, k).

    Raises
    ------
    LinAlgError
        If a diagonal element of ``L`` is zero.
    """
    n, x = _order(L), _by_columns(b)
    if columns := _width(L, x):
        mode = b"T" if transposed else b"N"
        _regular(_call("dtrtrs", b"L", mode, b"N", n, columns, _laid(L), n, x, n))
    return x


def triangular_inverse(L: Array) -> Array:
    """``L⁻¹`` (P, P) of a lower triangular matrix; what stands above its diagonal stays.

    Raises
    ------
    LinAlgError
        If a diagonal element of ``L`` is zero.
    """
    inverse = _by_columns(L)
    n = _order(inverse)
    if n:
        _regular(_call("dtrtri", b"L", b"N", n, inverse, n))
    return inverse


def eigh(H: Array) -> tuple[Array, Array]:
    """Eigenvalues (P,) in rising order and eigenvectors (P, P) of a symmetric matrix.

    Only the lower triangle of ``H`` is read.

    Raises
    ------
    LinAlgError
        If LAPACK gives up.
    """
    H = _by_columns(H)
    n = _order(H)
    lam, U = np.empty(n), np.empty((n, n), order="F")
    if n:
        work, whole = _eigh_work(n)
        info = _syevr(n, H, lam, U, np.empty(work), np.empty(whole, _WHOLE), work, whole)
        if info:
            raise LinAlgError(f"eigenvalues of a matrix {H.shape} not found: dsyevr gave {info}")
    return lam, U


def svd(A: Array) -> tuple[Array, Array, Array]:
    """Singular value decomposition ``A = U diag(s) Vᵀ`` (m, n): (m, k), (k,), (k, n), k = min.

    Raises
    ------
    LinAlgError
        If LAPACK does not converge.
    ValueError
        If an element is not finite, or there are more than LAPACK can count.
    """
    (m, n), k = A.shape, min(A.shape)
    if max(m, n) * k > _LARGEST:
        raise ValueError(f"a matrix {A.shape} has more elements than LAPACK counts, {_LARGEST}")
    given = np.asarray_chkfinite(A)
    U, s, Vt = np.empty((m, k), order="F"), np.empty(k), np.empty((k, n), order="F")
    if k:
        work, whole = _svd_work(m, n), np.empty(8 * k, _WHOLE)
        # divide and conquer is quick but gives up on a few matrices that QR steps can do
        if _gesdd(_by_columns(given), s, U, Vt, np.empty(work), whole, work):
            work = 5 * max(m, n)
            info = _gesvd(_by_columns(given), s, U, Vt, np.empty(work), work)
            if info:
                raise LinAlgError(f"SVD of a matrix {A.shape} did not converge: dgesvd gave {info}")
    return U, s, Vt


def _syevr(n: int, H: Array, lam: Array, U: Array, *work: Any) -> int:
    values, whole, size, whole_size = work
    support, found = np.empty(2 * n, _WHOLE), np.empty(1, _WHOLE)
    subset = (0.0, 1.0, 1, n, 0.0)  # not read but for the last, the tolerance
    last = (lam, U, n, support, values, size, whole, whole_size)
    return _call("dsyevr", b"V", b"A", b"L", n, H, n, *subset, found, *last)


@lru_cache(maxsize=256)
def _eigh_work(n: int) -> tuple[int, int]:
    """Numbers and whole numbers of work space with which LAPACK is fastest."""
    best, whole, H = np.empty(1), np.empty(1, _WHOLE), np.empty((n, 1))
    _syevr(n, H, H, H, best, whole, -1, -1)
    return int(best[0]), int(whole[0])


def _gesdd(A: Array, s: Array, U: Array, Vt: Array, *work: Any) -> int:
    values, whole, size = work
    (m, n), k = A.shape, min(A.shape)
    return _call("dgesdd", b"S", m, n, A, m, s, U, m, Vt, k, values, size, whole)


def _gesvd(A: Array, s: Array, U: Array, Vt: Array, values: Array, size: int) -> int:
    (m, n), k = A.shape, min(A.shape)
    return _call("dgesvd", b"S", b"S", m, n, A, m, s, U, m, Vt, k, values, size)


@lru_cache(maxsize=256)
def _svd_work(m: int, n: int) -> int:
    best = np.empty(1)
    A = np.broadcast_to(best, (m, n))
    _gesdd(A, best, best, best, best, np.empty(1, _WHOLE), -1)
    return int(best[0])


def _call(name: str, *arguments: Any) -> int:
    """Call a routine by reference, as Fortran does, and return its ``info``."""
    info = ctypes.c_int(0)
    _routine(name)(*map(_reference, arguments), ctypes.byref(info))
    if info.value < 0:
        raise ValueError(f"{name} does not take its argument {-info.value}")
    return info.value


def _reference(argument: Any) -> Any:
    if isinstance(argument, np.ndarray):
        return argument.ctypes.data
    if isinstance(argument, int):
        return ctypes.byref(ctypes.c_int(argument))
    if isinstance(argument, float):
        return ctypes.byref(ctypes.c_double(argument))
    return argument


@lru_cache(maxsize=32)
def _routine(name: str) -> Any:
    """A function that lets go of the lock; its signature is the name of SciPy's capsule."""
    capsule = cython_lapack.__pyx_capi__[name]
    signature = _name(capsule)
    inside = re.fullmatch(r"void \((.*)\)", signature.decode())
    kinds = inside.group(1).split(", ") if inside else [""]
    if not all(map(_NUMBER.fullmatch, kinds)):
        raise ImportError(f"{name} of this SciPy takes {signature.decode()}: install another SciPy")
    pointer = _pointer(capsule, signature)
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(kinds))(pointer)


def _by_columns(A: npt.ArrayLike) -> Array:
    """A copy that LAPACK may overwrite."""
    return np.array(A, dtype=np.float64, order="F")


def _laid(A: npt.ArrayLike) -> Array:
    """By columns, and a copy only where it is not so already."""
    return np.asarray(A, dtype=np.float64, order="F")


def _order(A: Array) -> int:
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(f"a matrix {A.shape} is not square")
    return A.shape[0]


def _width(A: Array, b: Array) -> int:
    """Number of columns of the right side ``b``, 0 if it is empty."""
    if b.ndim not in (1, 2) or len(b) != len(A):
        raise ValueError(f"a right side {b.shape} does not fit a matrix {A.shape}")
    return b.size // max(len(b), 1)


def _regular(info: int) -> None:
    if info:
        raise LinAlgError(f"singular matrix: element {info - 1} of the diagonal is zero")
