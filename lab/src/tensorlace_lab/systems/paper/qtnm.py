"""QTNM: kernel machines with quantised Fourier features."""

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from tensorlace.predictive.distributions import Normal
from tensorlace_lab.systems.parts.cp_machine import CoreLaplace, alternate, near_constant
from tensorlace_lab.systems.regressor import Array, Baseline, UnitBox

__all__ = ["QTNM", "quantised_features", "ridge_by_validation"]
Complex = NDArray[np.complex128]

_PERIODS = tuple(1.0 + 2.0**k for k in range(-2, 7))
_RIDGES = tuple(10.0**k for k in range(-7, 3))


@final
class QTNM(Baseline):
    """Quantised tensor-network kernel machine (Wesel & Batselier 2024).

    The ``n_basis = 2^K`` complex exponentials of a column are products of K pairs, each pair with a
    core of its own: D K cores of size 2 x R, fitted by alternating least squares with the ridge on
    the whole tensor. The prediction is the real part. Period and ridge come from 3-fold validation
    of exact kernel ridge regression with the same kernel. The original has no variance; here the
    core of highest evidence has its exact posterior.

    Parameters
    ----------
    n_basis : int
        Frequencies per column, a power of two.
    rank : int
        Terms of the CPD.
    n_sweeps : int
        Passes over all cores.
    validation_rows : int
        Rows for period and ridge.
    random_state : int, RandomState or None
        Start of the cores; the rows for the validation.

    Examples
    --------
    >>> X = np.linspace(-3, 3, 60)[:, None]
    >>> model = QTNM(random_state=0).fit(X, np.sin(X[:, 0]))
    >>> bool(abs(model.predict([[1.0]])[0] - np.sin(1.0)) < 1e-2)
    True
    """

    def __init__(
        self,
        n_basis: int = 16,
        rank: int = 10,
        n_sweeps: int = 15,
        validation_rows: int = 400,
        random_state: Any = None,
    ) -> None:
        self.n_basis = n_basis
        self.rank = rank
        self.n_sweeps = n_sweeps
        self.validation_rows = validation_rows
        self.random_state = random_state

    def _fit(self, X: Array, y: Array, rng: np.random.Generator) -> None:
        self._box = UnitBox.of(X)
        U = self._box(X) - 0.5
        few = rng.permutation(len(U))[: self.validation_rows]
        self.period_, self.ridge_ = ridge_by_validation(U[few], y[few], self.n_basis)
        features = quantised_features(U, self.n_basis, self.period_)
        cores = near_constant(features, self.rank, rng)
        cores = alternate(features, y, cores, len(y) * self.ridge_, self.n_sweeps)
        self._posterior = CoreLaplace.best(features, y, cores, 0.1)

    def _predict(self, X: Array) -> Normal:
        U = self._box(X) - 0.5
        return self._posterior.predict(quantised_features(U, self.n_basis, self.period_))


def quantised_features(U: Array, n_basis: int, period: float) -> list[Complex]:
    """Pairs (N, 2) for each of K digits of each column of U (N, D), of length one.

    Their products over the digits are ``exp(i pi u (2m - M) / P) / sqrt(M)``, m = 0 .. M-1.
    """
    K = n_basis.bit_length() - 1
    out = []
    for u in U.T:
        base = -u * n_basis / K
        for q in range(K):
            angle = np.stack([base, base + 2.0 * u * 2**q], axis=1)
            out.append(np.exp(1j * np.pi * angle / period) / np.sqrt(2.0))
    return out


def ridge_by_validation(U: Array, y: Array, n_basis: int, n_folds: int = 3) -> tuple[float, float]:
    """Period and ridge of least validation error of exact kernel ridge regression, U (N, D)."""
    folds = np.arange(len(y)) % min(n_folds, len(y))
    best, chosen = np.inf, (_PERIODS[0], _RIDGES[0])
    for period in _PERIODS:
        K = np.ones((len(y), len(y)), dtype=complex)
        for Phi in quantised_features(U, n_basis, period):
            K *= Phi @ Phi.conj().T
        errors = np.zeros(len(_RIDGES))
        for fold in np.unique(folds):
            a, b = folds != fold, folds == fold
            lam, Q = np.linalg.eigh(K[np.ix_(a, a)])
            c, rows = Q.conj().T @ y[a], K[np.ix_(b, a)] @ Q
            for k, ridge in enumerate(_RIDGES):
                f = (rows @ (c / (np.maximum(lam, 0.0) + np.sum(a) * ridge))).real
                errors[k] += np.sum((y[b] - f) ** 2)
        if errors.min() < best:
            best, chosen = errors.min(), (period, _RIDGES[int(errors.argmin())])
    return chosen
