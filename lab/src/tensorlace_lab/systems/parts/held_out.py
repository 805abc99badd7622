"""A tenth of the rows, held out, and what they say about a variance."""

import numpy as np
from numpy.typing import NDArray

from tensorlace.predictive.distributions import Normal
from tensorlace_lab.systems.regressor import Array

__all__ = ["held_out", "variance_factor"]


def held_out(n_rows: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Numbers of the rows held out, a tenth of them, and of the rest."""
    held, rest = np.split(rng.permutation(n_rows), [max(n_rows // 10, 1)])
    return held, rest


def variance_factor(dist: Normal, y: Array) -> float:
    """The factor of the variance of least Gaussian NLL on these rows, in closed form."""
    return max(float(np.mean(((y - dist.mean) / dist.std) ** 2)), 1e-6)
