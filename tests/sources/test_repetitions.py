"""Repeated rows and whole weights are the same table."""

import numpy as np
import pytest

from tensorlace.sources import ArraySource
from tensorlace.sources.repetitions import written_out


def test_each_row_stands_as_often_as_its_weight_says():
    rng = np.random.default_rng(1)
    X, y, weight = rng.standard_normal((50, 2)), rng.standard_normal(50), rng.integers(0, 4, 50)
    X[3, 1] = np.nan
    table = ArraySource(X, y, weight.astype(float), missing=True)
    found = written_out(table, 1000)
    chunk = found.whole(0)
    assert chunk.weight is None
    assert found.missing
    assert found.names == table.names
    expected = [k for k in range(50) for _ in range(weight[k])]
    np.testing.assert_array_equal(chunk.X, X[expected])
    np.testing.assert_array_equal(chunk.y, y[expected])


@pytest.mark.parametrize("weight", [None, [1.5, 1.0], [0.0, 0.0], [8.0, 3.0]])
def test_other_tables_are_the_same_object(weight):
    rows = ArraySource([[1.0], [2.0]], [0.0, 1.0], weight)
    assert written_out(rows, 10) is rows
