"""``tensorlace demo``: two data sets, three models, one table and one figure."""

import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import ShuffleSplit
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from threadpoolctl import threadpool_limits

from tensorlace._types import Array
from tensorlace.cli.rivals import EXACT_GP, from_laboratory
from tensorlace.errors import InputError
from tensorlace.estimators.regressor import TNKMRegressor
from tensorlace.metrics import summary
from tensorlace.predictive.distributions import Distribution, Normal

__all__ = ["demo"]

METRICS = ("rmse", "nll", "crps", "ecp95", "wcpi95", "rce")
NOISE_STD = 3.0
Split = tuple[Array, Array, Array, Array]
Systems = Mapping[str, Any]
"""Classes of the compared systems by name."""


def cubic(seed: int) -> Split:
    """The paper's synthetic task: 20 points of x³ + N(0, 3²) on [-4, 4], tested on [-5, 5]."""
    rng = np.random.default_rng(seed)
    x, t = rng.uniform(-4, 4, 20), rng.uniform(-5, 5, 100)
    return (
        x[:, None],
        x**3 + NOISE_STD * rng.standard_normal(20),
        t[:, None],
        t**3 + NOISE_STD * rng.standard_normal(100),
    )


def cubic_splits() -> Iterator[Split]:
    """Ten draws of the cubic task."""
    for seed in range(10):
        yield cubic(seed)


def diabetes_splits() -> Iterator[Split]:
    """Three random 80/20 splits of scikit-learn's diabetes table."""
    X, y = load_diabetes(return_X_y=True)
    for train, test in ShuffleSplit(3, test_size=0.2, random_state=0).split(X):
        yield X[train], y[train], X[test], y[test]


def cubic_models(systems: Systems) -> dict[str, Any]:
    """All but the line know the noise, as in the paper."""
    line = systems["BayesianRidge"]()
    return {
        "tensorlace": TNKMRegressor(
            rank=2,
            n_basis=4,
            basis="polynomial",
            warp="standardise",
            curvature="last",
            core=-1,
            noise_precision=NOISE_STD**-2,
            extrapolation="plain",  # the paper's model goes on as the polynomial that it is
            random_state=0,
        ),
        "exact GP": systems["polynomial GP"](degree=3, noise_std=NOISE_STD),
        "BayesianRidge": make_pipeline(PolynomialFeatures(3), StandardScaler(), line),
    }


def diabetes_models(systems: Systems) -> dict[str, Any]:
    """The default against an ARD Gaussian process and a linear model."""
    return {
        "tensorlace": TNKMRegressor(time_budget=4, random_state=0),
        "exact GP": systems["scikit-learn GP"](**EXACT_GP, random_state=0),
        "BayesianRidge": make_pipeline(StandardScaler(), systems["BayesianRidge"]()),
    }


def predictive(model: Any, X: Array) -> Distribution:
    """Predictive distribution of a new y under any of the models."""
    if isinstance(model, Pipeline):
        mean, std = model.predict(X, return_std=True)
        return Normal(mean, std, 0.0)
    found: Distribution = model.predict_dist(X)
    return found


def compare(title: str, models: dict[str, Any], splits: Iterator[Split]) -> None:
    """Fit each model on each split and print mean metrics."""
    rows: dict[str, list[dict[str, float]]] = {name: [] for name in models}
    seconds = dict.fromkeys(models, 0.0)
    for X, y, Xt, yt in splits:
        for name, model in models.items():
            start = perf_counter()
            fitted = clone(model).fit(X, y)
            dist = predictive(fitted, Xt)
            seconds[name] += perf_counter() - start
            rows[name].append(summary(yt, dist))
    print(f"\n{title}")
    print(f"{'':14s}" + "".join(f"{m:>9s}" for m in METRICS) + f"{'s / fit':>9s}")
    for name, scores in rows.items():
        means = "".join(f"{np.mean([s[m] for s in scores]):9.3f}" for m in METRICS)
        print(f"{name:14s}{means}{seconds[name] / len(scores):9.2f}")


def figure(path: Path, systems: Systems) -> None:
    """Predictive bands on the cubic task, and predicted against observed on diabetes."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 4), constrained_layout=True)
    X, y, _, _ = cubic(3)
    grid = np.linspace(-5.5, 5.5, 300)[:, None]
    truth, models = grid[:, 0] ** 3, cubic_models(systems)
    for ax, name in ((left, "tensorlace"), (middle, "exact GP")):
        dist = predictive(models[name].fit(X, y), grid)
        for coverage, alpha in ((0.95, 0.2), (0.5, 0.4)):
            lower, upper = (edge - truth for edge in dist.interval(coverage))
            ax.fill_between(
                grid[:, 0], lower, upper, alpha=alpha, color="C0", lw=0, label=f"{coverage:.0%}"
            )
        ax.plot(grid, dist.mean - truth, color="C0", label="mean")
        ax.axhline(0, color="k", lw=1, ls="--", label="truth")
        ax.plot(X[:, 0], y - X[:, 0] ** 3, "k.", label="20 rows")
        ax.set(title=f"cubic, {name}", xlabel="x", ylabel="y − x³", ylim=(-32, 32))
    left.legend(loc="lower center", ncols=3, frameon=False, fontsize=9)

    X, y, Xt, yt = next(diabetes_splits())
    dist = diabetes_models(systems)["tensorlace"].fit(X, y).predict_dist(Xt)
    lower, upper = dist.interval(0.9)
    inside = (lower <= yt) & (yt <= upper)
    for mask, color in ((inside, "C0"), (~inside, "C3")):
        bars = np.abs(np.stack([lower, upper]) - dist.mean)[:, mask]
        right.errorbar(yt[mask], dist.mean[mask], bars, fmt=".", color=color, elinewidth=0.5)
    right.axline((150, 150), slope=1, color="k", lw=1, ls="--")
    right.set(
        title=f"diabetes: {inside.mean():.0%} of rows in 90 % bands",
        xlabel="observed",
        ylabel="predicted",
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(path, dpi=110)


def demo() -> None:
    """Fit two data sets, print a table of scores and save a figure in out/.

    Example:

    tensorlace demo
    """
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise InputError(
            "the demo draws with matplotlib: pip install 'tensorlace[plots]'"
        ) from error
    systems: Systems = from_laboratory("systems").SYSTEMS
    warnings.simplefilter("ignore", ConvergenceWarning)
    cubes = "x³ + noise, 20 rows, mean of 10 draws (units of y)"
    diabetes = "diabetes, 442 rows, 10 columns, mean of 3 splits (units of y)"
    with threadpool_limits(1, user_api="blas"):  # on small matrices threads wait for each other
        compare(cubes, cubic_models(systems), cubic_splits())
        compare(diabetes, diabetes_models(systems), diabetes_splits())
    path = Path("out/demo.png")
    figure(path, systems)
    print(f"\nfigure with predictive bands: {path}")
