"""How far rows are from training rows, and why."""

import numpy as np
import pandas as pd
import pytest

from tensorlace import TNKMRegressor


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    a = rng.uniform(-1, 1, 300)
    table = pd.DataFrame(
        {
            "a": a,
            "b": a + 0.05 * rng.standard_normal(300),
            "kind": rng.choice(["x", "y"], 300),
        }
    )
    y = np.sin(2 * a) + table["b"] * (table["kind"] == "x") + 0.1 * rng.standard_normal(300)
    return TNKMRegressor(rank=3, random_state=0).fit(table, y), table


def test_training_rows_are_not_novel(model):
    fitted, table = model
    found = fitted.novelty(table)
    assert len(found) == 300
    assert found.measure.max() <= 1.0
    assert set(found.reasons) == {""}


def test_single_values_are_named(model):
    fitted, table = model
    far = table[:3].copy()
    width = np.ptp(table["a"])
    far.loc[0, "a"] = table["a"].max() + 0.25 * width
    far.loc[1, "kind"] = "z"
    found = fitted.novelty(far)
    assert found.measure[0] >= 1.5 - 1e-9
    assert found.measure[1] >= 2.0
    assert found.reasons[1] == "kind has a value that no training row had"
    assert found.reasons[2] == ""
    assert found.reasons[0] == "a is 0.25 ranges beyond its training range"


def test_a_combination_that_no_row_had_is_novel(model):
    """Both values are within the ranges of two columns that rise together."""
    fitted, table = model
    row = table[:1].assign(a=0.95, b=-0.95)
    assert not fitted.extrapolated(row).any()
    found = fitted.novelty(row)
    assert found.measure[0] > 1.0
    assert found.reasons[0].startswith("combination of values: the model is ")


def test_a_bare_posterior_knows_single_values_alone():
    rng = np.random.default_rng(1)
    X, y = rng.uniform(-1, 1, (100, 2)), rng.standard_normal(100)
    bare = TNKMRegressor(rank=2, random_state=0, extrapolation="plain").fit(X, y)
    far = np.array([[0.0, 0.0], [3.0, 0.0]])
    measure = bare.novelty(far).measure
    assert measure[0] == 0.0
    assert measure[1] > 2.0
