"""Evidence of a Gaussian linear model for every signal and noise variance, from one eigensystem."""

import numpy as np
from scipy.optimize import minimize

from tensorlace_lab.systems.regressor import Array

__all__ = ["log_evidence", "most_evident"]


def log_evidence(s: float, v: float, lam: Array, c: Array, yy: float, n: int) -> float:
    """``log N(y | 0, s A A^T + v I)`` for A (n, P) with ``A^T A = U diag(lam) U^T``.

    Parameters
    ----------
    s, v : float
        Variance of the weights and of the noise.
    lam, c : array (P,)
        Eigenvalues, and ``c = U^T A^T y``.
    yy, n : float, int
        ``y^T y`` and its length.

    Examples
    --------
    >>> A, y = 2.0, 1.0
    >>> round(log_evidence(2.0, 0.5, np.array([A * A]), np.array([A * y]), y * y, 1), 4)
    -2.0478
    """
    d = v + s * lam
    logdet = np.log(d).sum() + (n - len(lam)) * np.log(v)
    return float(-0.5 * (n * np.log(2 * np.pi) + logdet + (yy - np.sum(s * c * c / d)) / v))


def most_evident(
    lam: Array, c: Array, yy: float, n: int, start: tuple[float, float], trace: float = 0.0
) -> tuple[float, float, float]:
    """Variances s and v that maximise ``log_evidence - s trace / (2 v)``, and that maximum.

    ``trace`` is the part of the prior variance that A leaves out (Titsias 2009, eq. 9), else 0.
    """

    def negative(theta: Array) -> float:
        s, v = np.exp(theta)
        return 0.5 * s * trace / v - log_evidence(s, v, lam, c, yy, n)

    bounds = [(-25.0, 25.0), (-25.0, 5.0)]
    at = np.clip(np.log(start), -24.0, 4.0)
    best = minimize(negative, at, method="Nelder-Mead", bounds=bounds, options={"xatol": 1e-5})
    s, v = np.exp(best.x)
    return float(s), float(v), -float(best.fun)
