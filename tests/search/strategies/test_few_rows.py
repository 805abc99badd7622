"""Many small models: plain ones alone, shares of the constant, rows that can tell."""

import numpy as np
import pytest

from tests.helpers.searching import auto, table


@pytest.mark.parametrize(("slope", "expected"), [(0.0, 1), (1.0, 2), (3.0, None)])
def test_a_plain_model_stands_alone_unless_the_mixture_is_clearly_better(slope, expected):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 2))
    f = slope * X[:, 0] + (3.0 * np.sin(4 * X[:, 1]) if expected is None else 0.0)
    model = auto(n_jobs=1).fit(X, f + 0.5 * rng.standard_normal(300))
    chosen = model.search_results_.query("weight > 0")
    if expected is None:
        assert chosen["n_basis"].max() > 2
    else:
        rank = 1 if expected == 1 else 0  # a line has no products
        assert chosen[["rank", "n_basis", "basis"]].values.tolist() == [
            [rank, expected, "legendre"]
        ]
        groups = {1: "one for all weights", 2: "column"}[expected]
        assert ("prior precisions", groups) in model.summary().facts
        assert model.noise_.kind == "gaussian"


@pytest.mark.parametrize(
    "fixed",
    [{"curvature": "last"}, {"n_basis": 1, "additive": False}, {"additive": False}],
    ids=str,
)
def test_no_straight_line_where_there_can_be_none(fixed):
    X, y = table(60)
    model = auto(n_jobs=1, **fixed).fit(X, y)
    assert (model.search_results_["rank"] > 0).all()


def test_a_straight_line_is_tried_where_rows_can_tell():
    for n, tried in ((39, False), (40, True)):
        X, y = table(n)
        model = auto(n_jobs=1).fit(X, y)
        assert (model.search_results_["rank"] == 0).any() == tried


@pytest.mark.parametrize("n", [6, 18])
def test_of_few_rows_nobody_is_too_sure(n):
    """A wave that some members hit exactly: the constant keeps its share all the same."""
    X = np.linspace(-1, 1, n)[:, None]
    model = auto(n_jobs=1).fit(X, np.sin(2 * X[:, 0]))
    constant = model.search_results_.query("n_basis == 1")
    assert constant["weight"].sum() >= 1 / (n + 1) - 1e-12
    far = model.predict_dist([[3.0], [-3.0]])
    assert np.all(far.logpdf(np.array([1.5, -1.5])) > -10)
    assert not model.model_.ensemble.sharp
    repeated = auto(n_jobs=1).fit(np.repeat(X, 4, axis=0), np.repeat(np.sin(2 * X[:, 0]), 4))
    assert repeated.model_.ensemble.sharp
