"""Data and records that several tests of the laboratory share."""

import numpy as np
import pytest

from tensorlace_lab.datasets import UCI, UciSet, checksum
from tensorlace_lab.measuring.cells import Cell, Records
from tensorlace_lab.measuring.data import standardised
from tensorlace_lab.measuring.scores import LEVELS


@pytest.fixture(scope="session")
def small():
    """A set of two columns, 80 training rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    y = X[:, 0] * X[:, 1] + 0.5 * X[:, 0] ** 2 + 0.1 * rng.standard_normal(100)
    return standardised(X[:80], X[80:], y[:80], y[80:])


@pytest.fixture
def directory(tmp_path, monkeypatch):
    """A data directory with a tiny "yacht", which is taken for the real one."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 2))
    table = np.column_stack([X, X[:, 0] * X[:, 1] + 0.1 * rng.standard_normal(40)])
    file = {"delimiter": ",", "fmt": "%.17g", "header": "x1,x2,y", "comments": ""}
    np.savetxt(tmp_path / "yacht.csv", table, **file)
    monkeypatch.setitem(UCI, "yacht", UciSet(("x1", "x2"), 40, checksum(table), ()))
    return tmp_path


@pytest.fixture
def made_up(tmp_path):
    """Records of three protocols on three sets and splits; each is one nat better than the last."""
    records = Records(tmp_path / "uci")
    rng = np.random.default_rng(0)
    for name in ("yacht", "wine", "energy"):
        for split in (1, 2, 3):
            for k, protocol in enumerate(("published", "corrected", "default")):
                scores = {"nll": -k + 0.01 * rng.standard_normal(), "rmse": 0.1, "rce": 0.1}
                scores |= {"ecp95": 0.95, "wcpi95": 1.0, "coverages": list(LEVELS)}
                about = {"metrics": scores, "seconds": 1.0, "peak_mb": 2.0, "date": "2026-01-01"}
                cell = Cell("uci", name, split, "tnkm", protocol)
                records.add(cell, {**about, "versions": {"python": "3"}, "scale": 10.0})
    return records
