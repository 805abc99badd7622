"""The only factorisations: symmetric positive systems, scaled exactly by powers of two first."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from tensorlace._types import Array
from tensorlace.linalg.lapack import (
    cholesky,
    cholesky_rcond,
    cholesky_solve,
    eigh,
    triangular_inverse,
)

__all__ = ["Solution", "eigen", "inverse_root", "solve", "solver"]

_EPS = float(np.finfo(float).eps)
NOISE = 10.0 * _EPS
"""Eigenvalues below P times this, in units of the largest, are zero: LAPACK errs by 4 P eps."""


@final
@dataclass(frozen=True)
class Solution:
    """``x`` and the reciprocal condition number of the (equilibrated) matrix it was solved with."""

    x: Array
    rcond: float

    @property
    def ill_conditioned(self) -> bool:
        """No digit of ``x`` is guaranteed."""
        return self.rcond < _EPS


def _equilibrate(H: Array) -> tuple[Array, Array]:
    """Scale ``H`` by powers of two to a diagonal within [1/2, 2): exact, and all Cholesky needs."""
    diagonal = np.diagonal(H)
    _, exponent = np.frexp(np.where(diagonal > 0, diagonal, 1.0))
    s = np.ldexp(1.0, -(exponent // 2))
    K = H * s
    K *= s[:, None]
    return K, s


def _cholesky(K: Array) -> tuple[Array, float] | None:
    """Lower factor of ``K`` and reciprocal condition estimate; None if not positive definite."""
    L = cholesky(K)
    if L is None:
        return None
    return L, cholesky_rcond(L, float(np.abs(K).sum(axis=0).max(initial=0.0)))


def solver(H: Array) -> Callable[[Array], Solution]:
    """Function that solves ``H x = b`` for symmetric positive semidefinite ``H`` (P, P).

    Cholesky on the equilibrated matrix; where that breaks down, the solution of least (scaled) norm
    from the eigenvectors, reported by ``rcond`` = 0.
    """
    K, s = _equilibrate(H)
    factored = _cholesky(K)
    if factored is not None:
        L, rcond = factored
        return lambda b: Solution(s * cholesky_solve(L, s * b), rcond)
    lam, U = eigh(K)
    kept = lam > len(lam) * NOISE * max(float(lam[-1]), 0.0)
    lam, U = lam[kept], U[:, kept]
    return lambda b: Solution(s * (U @ ((U.T @ (s * b)) / lam)), 0.0)


def solve(H: Array, b: Array) -> Solution:
    """Solve ``H x = b`` once, see `solver`."""
    return solver(H)(b)


def inverse_root(H: Array) -> tuple[Array, float] | None:
    """``W`` (P, P) with ``W Wᵀ = H⁻¹`` and ``log|H|``; None if ``H`` is not positive definite."""
    K, s = _equilibrate(H)
    factored = _cholesky(K)
    if factored is None:
        return None
    L, _ = factored
    logdet = 2.0 * float(np.sum(np.log(np.diagonal(L))) - np.sum(np.log(s)))
    return np.ascontiguousarray((np.tril(triangular_inverse(L)) * s).T), logdet


def eigen(H: Array) -> tuple[Array, Array]:
    """Eigenvalues in rising order and eigenvectors of symmetric ``H`` (P, P)."""
    return eigh(H)
