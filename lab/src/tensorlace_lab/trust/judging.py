"""What observed targets say about predictive distributions."""

from typing import Any

import numpy as np
from scipy.stats import beta

from tensorlace._types import Array
from tensorlace.predictive.distributions import Distribution

__all__ = ["FAR", "LEVELS", "judged", "share_range", "standardised"]

LEVELS = (0.5, 0.9, 0.95)
FAR = 10.0
"""An error of so many predicted standard deviations should not happen."""


def standardised(y: Array, dist: Distribution) -> Array:
    """Errors (n,) in predicted standard deviations, ``(y - mean) / std``."""
    return (y - dist.mean) / dist.std


def judged(y: Array, dist: Distribution) -> dict[str, Any]:
    """Coverage of central intervals, rows that are far off, and scores.

    A row is in the central interval of a level if its probability ``F(y)`` is within half the
    level of one half.

    Returns
    -------
    dict
        ``coverage50``, ``coverage90``, ``coverage95``; ``beyond10``, the share of rows with
        ``|z| > 10``, and ``worst_z``, the largest ``|z|``; ``crps``, ``nll``, ``rmse`` in units
        of y; ``median_std``.
    """
    z, probability = np.abs(standardised(y, dist)), dist.cdf(y)
    covered = {
        f"coverage{100 * level:.0f}": np.mean(np.abs(probability - 0.5) <= level / 2)
        for level in LEVELS
    }
    return {
        **covered,
        "beyond10": np.mean(z > FAR),
        "worst_z": np.max(z),
        "crps": np.mean(dist.crps(y)),
        "nll": -np.mean(dist.logpdf(y)),
        "rmse": np.sqrt(np.mean((dist.mean - y) ** 2)),
        "median_std": np.median(dist.std),
    }


def share_range(hits: float, n: float, confidence: float = 0.95) -> tuple[float, float]:
    """Range of a share that ``hits`` of ``n`` are compatible with (Clopper and Pearson 1934).

    >>> low, high = share_range(0, 10)
    >>> low, round(high, 3)
    (0.0, 0.308)
    """
    tail = (1.0 - confidence) / 2.0
    low = 0.0 if hits <= 0 else float(beta.ppf(tail, hits, n - hits + 1))
    high = 1.0 if hits >= n else float(beta.ppf(1.0 - tail, hits + 1, n - hits))
    return low, high
