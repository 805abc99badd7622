"""What a test on rows held back says of itself."""

from dataclasses import replace

import numpy as np

from tensorlace.predictive.held_back import HeldBackTest

TEST = HeldBackTest(
    *(1000, 2, 1.5, 0.75, np.nan, 0.5, 0.95, 0.9, 6.0),
    contradicted=True,
    message="intervals too narrow: 95 % intervals hold 90 % of 1000 rows",
)


def test_the_sentence_says_each_number_once():
    want = f"1,000 rows held back for a test; {TEST.message}; RMSE 1.5, R² 0.75, CRPS 0.5"
    assert str(TEST) == want
    one = replace(TEST, n_rows=1, n_unlike=0, message="", coverage=1.0)
    assert str(one).startswith("1 row held back for a test; RMSE")
    assert str(one).endswith("CRPS 0.5, 100 % of targets in 95 % intervals")


def test_plain_data_has_no_numbers_that_json_has_not():
    assert TEST.plain()["nll"] is None
    assert TEST.plain()["rmse"] == 1.5
    assert TEST.valid
    assert not replace(TEST, n_unlike=1001).valid
