"""The page computes what Python computes: every basis, warp, posterior and noise."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr
from sklearn.exceptions import ConvergenceWarning

from tensorlace import Categorical, Numeric, Periodic, TNKMRegressor
from tensorlace.columns.bases import Subset
from tensorlace.report.embed import LEVELS, embed
from tests.helpers.javascript import start_javascript  # noqa: F401
from tests.helpers.models import with_ensemble

RNG = np.random.default_rng(5)
N = 90
X = RNG.uniform(-2, 3, size=(N, 3))
Y = np.sin(X[:, 0]) * X[:, 1] + 0.3 * X[:, 2] ** 2 + 0.1 * RNG.standard_normal(N)
# rows of training, between them, at their ends and far beyond
ROWS = np.concatenate(
    [X[:6], RNG.uniform(-2.5, 3.5, (8, 3)), [X.min(0), X.max(0), [9.0, -7.0, 0.0]]]
)


def table():
    """Every kind of column, all but one with gaps."""
    frame = pd.DataFrame(
        {
            "size": X[:, 0],
            "shop": RNG.choice(["a", "b", "c"], N),
            "hour": RNG.integers(24, size=N),
            "day": pd.Timestamp("2026-01-01") + pd.to_timedelta(RNG.integers(300, size=N), "D"),
            "open": RNG.integers(2, size=N).astype(bool),
            "grade": RNG.choice(["low", "high"], N),
            "full": X[:, 1],
        }
    )
    frame.loc[::7, ["size", "day"]] = None
    frame.loc[::5, ["shop"]] = None
    frame["hour"] = frame["hour"].astype(float).mask(np.arange(N) % 9 == 0)
    return frame


FRAME = table()
KINDS = {"hour": Periodic(24)}
NEW = pd.concat([FRAME.head(12), FRAME.tail(3)], ignore_index=True)
NEW.loc[0, ["shop", "grade"]] = ["never", "seen"]
NEW.loc[1, ["full", "grade"]] = [np.nan, None]
NEW.loc[2, ["size", "hour"]] = [50.0, -3.0]
NEW.loc[3, "day"] = pd.Timestamp("2027-03-04 05:06:07")


def fit(X=X, y=Y, **params):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        params = {"rank": 2, "n_basis": 4, "random_state": 0, "max_sweeps": 20, **params}
        return TNKMRegressor(**params).fit(X, y)


def agree(javascript, model, rows, tolerance=1e-9):
    """Compare with Python; differences are relative to the value or the standard deviation."""
    found = javascript.predict(
        json.loads(json.dumps(embed(model))), model.fitted_model().encode(rows)
    )
    dist = model.predict_dist(rows)
    want = {
        "mean": dist.mean,
        "std": dist.std,
        "epistemic": dist.epistemic_std,
        "aleatoric": dist.aleatoric_std,
        "quantiles": model.predict_quantiles(rows, LEVELS),
    }
    for key, values in want.items():
        got = np.array([row[key] for row in found], dtype=float)
        # means and quantiles may be zero anywhere, a standard deviation only at a forced zero
        scale = np.abs(values.T) + dist.std * (1.0 if key in ("mean", "quantiles") else 1e-6)
        assert np.max(np.abs(got - values).T / scale) <= tolerance, key
    outside = [row["outside"] for row in found]
    assert outside == model.extrapolated(rows).tolist()


BASES = ("cosine", "sine", "fourier", "chebyshev", "legendre", "polynomial", "unit_polynomial")


@pytest.mark.parametrize("basis", [*BASES, "bspline"])
@pytest.mark.parametrize("n_basis", [5, 8])
def test_bases(javascript, basis, n_basis):
    agree(javascript, fit(basis=basis, n_basis=n_basis), ROWS)


@pytest.mark.parametrize("warp", ["minmax", "quantile", "mixed", "standardise", "identity"])
def test_warps(javascript, warp):
    agree(javascript, fit(basis="legendre", warp=warp), ROWS)


@pytest.mark.parametrize("curvature", ["ggn", "last", "block", "diag", "full"])
@pytest.mark.parametrize("n_rows", [30, N])
def test_posteriors(javascript, curvature, n_rows):
    params = {"rank": 3, "n_basis": 5, "curvature": curvature, "threshold": None}
    if curvature == "full":
        params |= {"threshold": 1e-2}
    agree(javascript, fit(X[:n_rows], Y[:n_rows], **params), ROWS)


@pytest.mark.parametrize(
    "params",
    [
        {"additive": True},
        {"rank": 0, "additive": True},
        {"rank": 0, "additive": True, "columns": {0: Categorical()}, "curvature": "block"},
        {"rotate": True},
        {"additive": True, "rotate": True, "prior_groups": "column_order"},
        {"n_members": 3},
        {"basis": "indicator", "n_basis": 3},
        {"prior_precision": 0.0, "rank": 1},
        {"columns": {0: Categorical()}},
    ],
    ids=str,
)
def test_structure(javascript, params):
    grid = np.round(X)
    model = fit(grid, Y, **params)
    agree(javascript, model, np.concatenate([grid[:10], [[9.0, 0.0, 1.0]]]))


@pytest.mark.parametrize("additive", [False, True])
def test_kinds_gaps_and_novel_values(javascript, additive):
    model = fit(FRAME, Y, columns=KINDS, additive=additive, n_members=2)
    agree(javascript, model, NEW)


def test_constant_and_empty_columns(javascript):
    table = np.column_stack([X[:, 0], np.full(N, 3.0), np.full(N, np.nan)])
    model = fit(table, Y, columns={1: Numeric()})
    agree(javascript, model, np.array([[0.0, 3.0, np.nan], [0.0, 4.0, 1.0]]))


@pytest.mark.parametrize("noise", ["auto", "student", "varying_student"])
def test_searched_mixture(javascript, noise):
    rng = np.random.default_rng(1)
    table = rng.uniform(-1, 1, (400, 2))
    y = table[:, 0] ** 2 + np.exp(table[:, 1]) * 0.2 * rng.standard_t(4, 400)
    model = TNKMRegressor(time_budget=0.3, noise=noise, random_state=0, n_jobs=1).fit(table, y)
    assert noise == "auto" or model.noise_.kind == noise
    agree(javascript, model, np.concatenate([table[:5], [[3.0, -4.0]]]))


def test_pruned_model(javascript):
    """Weights that were switched off leave a subset of a basis."""
    model = fit(np.column_stack([X[:, 0], X[:, 1]]), X[:, 0] ** 2, rank=2, n_basis=9)
    machine = model.machines_[0]
    which = tuple(range(0, 9, 2))
    columns = tuple(replace(c, basis=Subset(c.basis, which)) for c in machine.columns.columns)
    cores = tuple(np.ascontiguousarray(V[:, which]) for V in machine.fit.cores)
    gamma = tuple(np.ascontiguousarray(g[:, which]) for g in machine.fit.gamma)
    kept = np.concatenate(
        [np.arange(2 * 9).reshape(2, 9)[:, which].ravel() + 18 * d for d in (0, 1)]
    )
    posterior = replace(machine.fit.posterior, W=machine.fit.posterior.W[kept])
    fitted = replace(machine.fit, cores=cores, gamma=gamma, posterior=posterior)
    machine = replace(machine, columns=replace(machine.columns, columns=columns), fit=fitted)
    model = with_ensemble(model, machines=(machine,))
    agree(javascript, model, np.column_stack([ROWS[:, 0], ROWS[:, 1]]))


def test_calibrated(javascript):
    model = fit(X[:60], Y[:60]).calibrate(X[60:], Y[60:])
    model.calibration_.z[[0, -1]] = -6.0, 7.0  # beyond five standard deviations: a straight line
    with pytest.raises(ValueError, match="cannot calibrate"):
        model.predict_quantiles(ROWS, LEVELS)
    found = javascript.predict(json.loads(json.dumps(embed(model))), ROWS)
    middle = model.predict_quantiles(ROWS, LEVELS[1:-1])
    std = model.predict_dist(ROWS).std
    for row, want, s in zip(found, middle, std, strict=True):
        assert row["quantiles"][0] is row["quantiles"][-1] is None  # NaN in JSON
        np.testing.assert_allclose(row["quantiles"][1:-1], want, rtol=0, atol=1e-9 * s)
    model.calibrate(np.tile(X, (2, 1)), np.tile(Y, 2))
    model.calibration_.z[:5], model.calibration_.z[-5:] = -6.0, 7.0
    agree(javascript, model, ROWS)


def test_normal_distribution_function(javascript):
    x = np.concatenate([np.linspace(-37, 8, 400), [-3.0, 3.0, 0.0]])
    got = javascript.run("return input.map(tensorlace.ndtr)", x.tolist())
    np.testing.assert_allclose(got, ndtr(x), rtol=5e-13)
