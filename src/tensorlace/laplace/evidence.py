"""The Laplace approximation of the log evidence."""

import numpy as np

from tensorlace._types import Array

__all__ = ["log_evidence"]


def log_evidence(
    n: float, rss: float, beta: float, v: Array, gamma: Array, logdet: float, n_dropped: int
) -> float:
    """Laplace evidence ``log p(y | β, γ)`` of the Bayesian weights ``v`` (P,).

    ``N/2 log β - β/2 ‖r‖² + ½ Σ log γ - ½ vᵀΓv - ½ log|H| - N/2 log 2π``; dropped directions count
    as if the rows said nothing about them. A flat prior has no evidence: minus infinity.
    """
    if np.any(gamma <= 0):
        return -np.inf
    log_prior = float(np.sum(np.log(gamma)))
    dropped = n_dropped * log_prior / len(gamma)
    return 0.5 * (
        n * np.log(beta / (2.0 * np.pi))
        - beta * rss
        + log_prior
        - float(gamma @ (v * v))
        - (logdet + dropped)
    )
