"""How far rows are from training rows, and why."""

from collections import Counter

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
    single = fitted.fitted_model().ensemble.columns.outside(fitted.fitted_model().encode(row))
    assert not single.any()
    found = fitted.novelty(row)
    assert found.measure[0] > 1.0
    assert found.reasons[0].startswith("combination of values, of which the model is ")
    assert found.causes == ("the combination of values",)
    assert fitted.extrapolated(row).all()


def test_extrapolated_is_where_the_measure_is_above_1(model):
    fitted, table = model
    rng = np.random.default_rng(3)
    mixed = table.assign(b=rng.permutation(table["b"]))
    measure = fitted.novelty(mixed).measure
    found = fitted.extrapolated(mixed)
    assert 0 < found.sum() < len(found)
    np.testing.assert_array_equal(found, measure > 1.0)
    assert not fitted.extrapolated(table).any()


def test_the_measure_is_the_bare_epistemic_std_beside_training_rows(model):
    """Recomputed from the predictions of members without support, one by one."""
    fitted, table = model
    inner = fitted.fitted_model()
    X = inner.encode(table.assign(b=table["b"].to_numpy()[::-1]))
    shares = inner.ensemble.shares(X)
    want = np.zeros(len(X))
    for machine, share in zip(inner.machines, shares, strict=True):
        bare = machine.without_support().linearized(X)
        std = np.sqrt(bare.std**2 - bare.aleatoric_std**2)
        want += share * std / machine.target.scale / machine.support.largest
    # the variance of the posterior is found again as a difference
    np.testing.assert_allclose(inner.novelty(X).measure, want, rtol=1e-9)


def test_predictions_and_novelty_at_once_are_those_alone(model):
    fitted, table = model
    inner = fitted.fitted_model()
    X = inner.encode(table.assign(a=2.0 * table["a"]))
    dist, found = inner.dist_and_novelty(X)
    alone, again = inner.dist(X), inner.novelty(X)
    for a, b in ((dist.mean, alone.mean), (dist.std, alone.std), (found.measure, again.measure)):
        assert a.tobytes() == b.tobytes()
    assert found.reasons == again.reasons
    cause = Counter(c for c in found.causes if c).most_common(1)[0]
    assert found.most_common == f"{cause[0]} ({cause[1]} rows)"
    assert fitted.novelty(table).most_common == ""


def test_a_bare_posterior_knows_single_values_alone():
    rng = np.random.default_rng(1)
    X, y = rng.uniform(-1, 1, (100, 2)), rng.standard_normal(100)
    bare = TNKMRegressor(rank=2, random_state=0, extrapolation="plain").fit(X, y)
    far = np.array([[0.0, 0.0], [3.0, 0.0]])
    measure = bare.novelty(far).measure
    assert measure[0] == 0.0
    assert measure[1] > 2.0
