"""The nine sets, and how every experiment splits and scales them."""

from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
from sklearn.model_selection import train_test_split

from tensorlace._types import Array
from tensorlace_lab.datasets import UCI, load_uci

__all__ = ["SETS", "UNIQUE", "Split", "rows_of", "split_of", "standardised"]

SETS = tuple(UCI)
UNIQUE = "wine-unique"
"""Wine with each row once: a quarter of its test rows stand in the training rows otherwise."""


@final
@dataclass(frozen=True)
class Split:
    """Training and test rows; the target has mean 0 and deviation 1 on the training rows.

    Attributes
    ----------
    X, y, X_test, y_test : arrays
    scale : float
        Deviation of the training target in original units: an NLL in those is larger by its log.
    """

    X: Array
    y: Array
    X_test: Array
    y_test: Array
    scale: float


def split_of(name: str, split: int, data: str | Path | None = None) -> Split:
    """The authors' split: a tenth of the rows for the test, ``random_state=split``."""
    return standardised(*rows_of(name, split, data))


def rows_of(
    name: str, split: int, data: str | Path | None = None
) -> tuple[Array, Array, Array, Array]:
    """`split_of` in the units of the table: X, X_test, y, y_test."""
    X, y, _ = load_uci(name.removesuffix("-unique"), data)
    if name == UNIQUE:
        once = np.sort(np.unique(np.column_stack([X, y]), axis=0, return_index=True)[1])
        X, y = X[once], y[once]
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.1, random_state=split)
    return X, X_test, y, y_test


def standardised(X: Array, X_test: Array, y: Array, y_test: Array) -> Split:
    """Scale the target by its training rows.

    >>> import numpy as np
    >>> X = np.zeros((2, 1))
    >>> split = standardised(X, X, np.array([1.0, 5.0]), np.array([3.0, 7.0]))
    >>> split.y, split.y_test, split.scale
    (array([-1.,  1.]), array([0., 2.]), 2.0)
    """
    location, scale = float(np.mean(y)), float(np.std(y))
    return Split(X, (y - location) / scale, X_test, (y_test - location) / scale, scale)
