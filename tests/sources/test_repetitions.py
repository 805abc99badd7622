"""Repeated rows and whole weights are the same table."""

import numpy as np
import pytest

from tensorlace.sources import ArraySource
from tensorlace.sources.repetitions import distinct_rows


def table(n, seed, *, weighted):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (n, 2)).astype(float)
    X[rng.random((n, 2)) < 0.2] = np.nan
    weight = rng.integers(0, 4, n).astype(float) if weighted else None
    return ArraySource(X, rng.integers(0, 2, n).astype(float), weight, missing=True)


@pytest.mark.parametrize("weighted", [False, True])
def test_each_row_stands_once_with_its_weight(weighted):
    given = table(200, 1, weighted=weighted).whole(0)
    expected = {}
    for k in range(200):
        weight = 1.0 if given.weight is None else given.weight[k]
        key = (*np.nan_to_num(given.X[k], nan=-1.0), given.y[k])
        expected[key] = expected.get(key, 0.0) + weight
    expected = {key: weight for key, weight in expected.items() if weight > 0.0}
    found = distinct_rows(table(200, 1, weighted=weighted)).whole(0)
    keys = [(*np.nan_to_num(x, nan=-1.0), y) for x, y in zip(found.X, found.y, strict=True)]
    assert len(set(keys)) == len(keys)
    assert dict(zip(keys, found.weight, strict=True)) == expected


def test_the_order_is_that_of_first_appearance():
    rows = ArraySource([[2.0], [1.0], [2.0], [3.0]], [0.0, 0.0, 0.0, 0.0])
    found = distinct_rows(rows).whole(0)
    assert found.X.ravel().tolist() == [2.0, 1.0, 3.0]
    assert found.weight.tolist() == [2.0, 1.0, 1.0]


def test_weights_of_one_are_no_weights():
    rows = ArraySource([[1.0], [2.0]], [0.0, 1.0], [1.0, 1.0])
    assert distinct_rows(rows).whole(0).weight is None


def test_rows_without_weight_are_not_there():
    rows = ArraySource([[1.0], [2.0], [3.0]], [0.0, 1.0, 2.0], [2.0, 0.0, 1.0])
    found = distinct_rows(rows).whole(0)
    assert found.X.ravel().tolist() == [1.0, 3.0]
    assert found.weight.tolist() == [2.0, 1.0]


def test_a_table_with_nothing_to_merge_is_the_same_object():
    rows = ArraySource([[1.0], [2.0]], [0.0, 1.0])
    assert distinct_rows(rows) is rows
    zeros = ArraySource([[0.0], [-0.0]], [1.0, 1.0])
    assert distinct_rows(zeros).whole(0).weight.tolist() == [2.0]
