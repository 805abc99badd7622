"""Tables with a known truth."""

from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import make_friedman1

from tensorlace._types import Array
from tensorlace_lab.trust.tables import Rows

__all__ = ["friedman", "wave"]

N_TEST = 2_000


def friedman(n_rows: int, seed: int) -> Rows:
    """Friedman's first function of five columns of ten, noise of standard deviation 1."""
    X, y = make_friedman1(n_rows + N_TEST, noise=1.0, random_state=seed)
    return _split(X, y, n_rows)


def wave(n_rows: int, n_test: int, rng: np.random.Generator) -> Rows:
    """A wave in one column and a slope in another, noise of standard deviation 0.1."""
    X = rng.uniform(-1, 1, (n_rows + n_test, 2))
    y = np.sin(3 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(len(X))
    return _split(X, y, n_rows)


def _split(X: Array, y: Array, n: int) -> Rows:
    frame: Any = pd.DataFrame(X, columns=[f"x{k}" for k in range(X.shape[1])])
    return Rows(frame[:n], y[:n], frame[n:], y[n:])
