"""What weights mean, against sums by hand; tables with scaled weights against scaled arrays."""

import pickle

import numpy as np
import pytest

from tensorlace.errors import InputError
from tensorlace.sources import ArraySource, BlockSource
from tensorlace.sources.table import PIECE_ROWS
from tensorlace.sources.weighting import (
    MEANINGS,
    USUAL_MEAN,
    RescaledTable,
    WeightSums,
    weight_sums,
)

RNG = np.random.default_rng(0)
N = 2 * PIECE_ROWS + 77
X, Y = RNG.normal(size=(N, 1)), RNG.normal(size=N)
W = RNG.exponential(size=N) * (RNG.random(N) < 0.9)


def blocks():
    for start in range(0, N, 50_000):
        cut = slice(start, start + 50_000)
        yield X[cut], Y[cut], W[cut]


def sums_of(chunk):
    assert chunk.weight is not None
    return np.array([chunk.weight @ chunk.y, chunk.weight.sum()])


def test_sums_are_those_of_the_array():
    found = weight_sums(ArraySource(X, Y, W))
    assert found.n_rows == np.count_nonzero(W)
    assert found.total == pytest.approx(W.sum(), rel=1e-13)
    assert not found.whole
    assert weight_sums(ArraySource(X, Y, np.round(W))).whole
    assert found == weight_sums(BlockSource(blocks)) == weight_sums(ArraySource(X, Y, W), threads=2)


def test_a_scaled_table_is_the_table_of_scaled_weights_to_the_bit():
    scaled = RescaledTable(ArraySource(X, Y, W), 0.3)
    by_hand = ArraySource(X, Y, 0.3 * W)
    np.testing.assert_array_equal(scaled.reduce(sums_of, np.add), by_hand.reduce(sums_of, np.add))
    streamed = RescaledTable(BlockSource(blocks), 0.3)
    np.testing.assert_array_equal(
        streamed.reduce(sums_of, np.add, threads=2), by_hand.reduce(sums_of, np.add)
    )
    assert streamed.whole(1 << 40) is None
    assert not streamed.in_memory
    whole = pickle.loads(pickle.dumps(scaled)).whole(0)
    np.testing.assert_array_equal(whole.weight, 0.3 * W)
    assert scaled.in_memory
    assert (scaled.names, scaled.n_rows, scaled.weight) == (("column 0",), N, "weight")


@pytest.mark.parametrize("mean", [0.4, *USUAL_MEAN, 2.1])
def test_auto_scales_what_is_far_from_one(mean):
    sums = WeightSums.of(mean * np.array([0.5, 1.5, 0.75, 1.25]))
    usual = USUAL_MEAN[0] <= mean <= USUAL_MEAN[1]
    assert MEANINGS["auto"](sums) == (1.0 if usual else pytest.approx(1.0 / mean, rel=1e-15))
    assert MEANINGS["relative"](sums) == pytest.approx(1.0 / mean, rel=1e-15)
    if sums.total >= 2.0:
        assert MEANINGS["repetitions"](sums) == 1.0


def test_whole_numbers_are_repetitions_and_zeros_no_rows():
    sums = WeightSums.of(np.array([0.0, 5.0, 7.0, 0.0]))
    assert MEANINGS["auto"](sums) == MEANINGS["repetitions"](sums) == 1.0
    assert MEANINGS["relative"](sums) == 2.0 / 12.0


@pytest.mark.parametrize(
    ("weight", "what"),
    [
        ([1.0, np.nan], "sample_weight is nan in row 8"),
        ([1.0, np.inf], "sample_weight is inf in row 8"),
        ([-0.5, 1.0], "sample_weight is -0.5 in row 7"),
    ],
)
def test_impossible_weights(weight, what):
    with pytest.raises(InputError, match=what):
        WeightSums.of(np.array(weight), first_row=7)


@pytest.mark.parametrize(
    "weight", [np.zeros(3), np.full(3, 1e-320), np.array([1e308, 1e308, 1e-9])]
)
@pytest.mark.parametrize("meaning", ["auto", "relative"])
def test_sums_that_no_factor_mends(weight, meaning):
    with pytest.raises(InputError, match=r"sums to .*: the sum must be above 0 and finite"):
        MEANINGS[meaning](WeightSums.of(np.array(weight)))


def test_too_few_repetitions():
    with pytest.raises(InputError, match=r"sums to 0\.003 repetitions.*weights='relative'"):
        MEANINGS["repetitions"](WeightSums.of(np.full(3, 1e-3)))
