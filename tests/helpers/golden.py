"""Golden model files: made once per version of the format, to be read for ever.

``python -m tests.helpers.golden`` writes data/golden-VERSION-NAME.tlace, and what the models
predict into data/golden-VERSION.json. A file that a release could read is never made anew to repair
a test.
"""

import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from tensorlace import Periodic, TNKMRegressor, TNKMRegressorCV, save
from tensorlace.model_file.files import VERSION

DATA = Path(__file__).parents[1] / "data"
N, HELD = 150, 30


def table():
    """Rows with all that columns can be: numbers with gaps, categories, dates, hours."""
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "x": rng.uniform(-2, 2, N),
            "shop": np.array(["north", "süd", "=1+1"])[rng.integers(3, size=N)],
            "day": pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(N) % 30, unit="D"),
            "hour": rng.integers(24, size=N),
        }
    )
    frame.loc[::7, "x"] = np.nan
    y = np.sin(2.0 * frame["x"].fillna(1.0)) + (frame["shop"] == "north")
    y += np.exp(np.cos(frame["hour"] * np.pi / 12)) * 0.3 * rng.standard_t(4, size=N)
    return frame, y.to_numpy()


def rows():
    """Some rows of the table, and some unlike them."""
    frame = table()[0].iloc[:20]
    strange = frame[:6].copy()
    strange.loc[0, "x"], strange.loc[1, "shop"], strange.loc[2, "hour"] = 9.0, "west", 30
    strange.loc[3, ["shop", "day"]] = None
    return pd.concat([frame, strange])


def answers(model):
    """What a model says of the rows, as plain numbers."""
    asked = rows()
    dist = model.predict_dist(asked)
    out = {
        "mean": model.predict(asked).tolist(),
        "std": dist.std.tolist(),
        "epistemic_std": dist.epistemic_std.tolist(),
        "quantiles": dist.quantile([0.05, 0.5, 0.95]).tolist(),
        "extrapolated": model.extrapolated(asked).astype(float).tolist(),
        "draws": model.sample_y(asked, 2).tolist(),
        "log_evidence": model.log_evidence_,
    }
    if isinstance(model, TNKMRegressor):
        out["lower"] = model.predict_interval(asked, 0.8)[0].tolist()
        effect = model.partial_effects("x", n_points=5, method="alone")
        out["effect"] = effect.mean.tolist()
    return out


def models():
    """A calibrated mixture, one with more weights than rows, and one that folds chose."""
    frame, y = table()
    hours = {"columns": {"hour": Periodic(24)}, "random_state": 0}
    mixture = TNKMRegressor(
        **hours, n_basis=4, noise="varying_student", n_members=2, time_budget=1, n_jobs=2
    )
    mixture.fit(frame[HELD:], y[HELD:]).calibrate(frame[:HELD], y[:HELD])
    few = TNKMRegressor(**hours, rank=3, n_basis=4, additive=True, rotate=True).fit(
        frame[:24], y[:24]
    )
    chosen = TNKMRegressorCV(
        TNKMRegressor.paper(columns=hours["columns"], tol=1e-2),
        ranks=[1, 2],
        n_bases=[2, 3],
        thresholds=[1e-3, None],
        n_repeats=1,
        random_state=0,
    )
    return {"mixture": mixture, "few": few, "chosen": chosen.fit(frame[:60], y[:60])}


def main():
    DATA.mkdir(exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = models()
    for name, model in made.items():
        path = DATA / f"golden-{VERSION}-{name}.tlace"
        save(model, path, notes={"made by": "tests/golden.py"})
    expected = {name: answers(model) for name, model in made.items()}
    (DATA / f"golden-{VERSION}.json").write_text(json.dumps(expected) + "\n")


if __name__ == "__main__":
    main()
