"""Sine features of a squared-exponential kernel, column by column."""

import numpy as np

from tensorlace.columns.bases import Sine
from tensorlace_lab.systems.regressor import Array

__all__ = ["MAX_LENGTHS", "sine_features"]

MAX_LENGTHS = (0.1, 0.2, 0.3, 0.5, 1.0)
"""Limits of the length scale, in units of the range of a column: sines vanish half of it away."""


def sine_features(U: Array, n_basis: int, lengthscale: float) -> list[Array]:
    """D arrays (n, I) of features of U (n, D), which is in [0, 1] but for new rows."""
    basis = Sine(n_basis, lengthscale)
    return [basis.phi(np.ascontiguousarray(u)).T for u in U.T]
