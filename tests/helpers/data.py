"""Real data for the tests: the directory named by TENSORLACE_DATA, or ../shared/data.

A user's checkout has none; tests that need it are then skipped, and say why.
"""

import csv
import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
DIRECTORY = Path(os.environ.get("TENSORLACE_DATA") or ROOT.parent / "shared" / "data")

requires_data = pytest.mark.skipif(
    not DIRECTORY.is_dir(),
    reason=f"no data in {DIRECTORY}: set TENSORLACE_DATA to a directory with nist/ and uci/",
)


def uci(name):
    """A regression set of the paper: ``X`` (N, D), ``y`` (N,)."""
    table = np.loadtxt(DIRECTORY / "uci" / f"{name}.csv", delimiter=",", skiprows=1)
    return table[:, :-1], table[:, -1]


def nist(name):
    """A NIST StRD set as exact rationals: rows of predictors, and responses."""
    with (DIRECTORY / "nist" / f"{name}.csv").open(newline="") as file:
        header, *lines = csv.reader(file)
    assert header[0] == "y"
    rows = [[Fraction(cell) for cell in line] for line in lines]
    return [row[1:] for row in rows], [row[0] for row in rows]
