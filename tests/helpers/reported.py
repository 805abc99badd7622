"""A table with every kind of column, fits to it, and the comparison of the page with Python."""

import json
import warnings

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from tensorlace import Periodic, TNKMRegressor
from tensorlace.report.embed import LEVELS, embed

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
    table = model.fitted_model().encode(rows)
    found = javascript.predict(json.loads(json.dumps(embed(model))), table)
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
    novelty = model.novelty(rows)
    measure = [row["novelty"]["measure"] for row in found]
    np.testing.assert_allclose(measure, novelty.measure, rtol=max(tolerance, 1e-9), atol=1e-12)
    assert [row["novelty"]["reason"] for row in found] == list(novelty.reasons)
