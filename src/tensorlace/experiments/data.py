"""The nine sets, and how every experiment splits and scales them."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
from sklearn.model_selection import train_test_split

from tensorlace import datasets
from tensorlace.bases.basis import Array
from tensorlace.errors import InputError

__all__ = ["SETS", "Split", "load_uci", "split_of", "standardised"]

SETS = ("boston", "concrete", "energy", "kin8nm", "naval", "power", "protein", "wine", "yacht")


def load_uci(name: str, data: str | Path | None = None) -> tuple[Array, Array, list[str]]:
    """One of the nine sets of the paper.

    Parameters
    ----------
    name : str
        See `SETS`.
    data : path, optional
        Directory with ``<name>.csv`` or ``uci/<name>.csv``: columns x1 ... xD, y and a header. By
        default the environment variable TENSORLACE_DATA, or ``../shared/data``, or fetched.

    Returns
    -------
    X (N, D), y (N,), names of the columns of X
    """
    if name not in SETS:
        raise InputError(f"set {name!r} is not known: choose from {', '.join(SETS)}")
    directory = Path(data or os.environ.get("TENSORLACE_DATA") or "../shared/data")
    places = [directory / f"{name}.csv", directory / "uci" / f"{name}.csv"]
    path = next((place for place in places if place.is_file()), None)
    if path is None and not (data or os.environ.get("TENSORLACE_DATA")):
        X, y, columns = datasets.load_uci(name)
        return X, y, list(columns)
    if path is None:
        raise InputError(
            f"no file {name}.csv in {directory}: give the directory of the sets with --data or "
            "TENSORLACE_DATA"
        )
    with path.open() as file:
        names = file.readline().strip().split(",")
        table = np.loadtxt(file, delimiter=",")
    return table[:, :-1], table[:, -1], names[:-1]


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
    X, y, _ = load_uci(name, data)
    return standardised(*train_test_split(X, y, test_size=0.1, random_state=split))


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
