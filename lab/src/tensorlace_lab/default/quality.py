"""The default that chooses itself on the nine sets of the paper: ``python -m benchmarks quality``.

One call ``TNKMRegressor(random_state=s)`` for all, test share 0.1, y standardised by
the training rows. Every finished cell is a line of results/quality/<system>.jsonl; a run that was
stopped goes on where it was.
"""

import argparse
import os
import warnings
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from tensorlace import Normal, TNKMRegressor, metrics
from tensorlace.predictive.distributions import Distribution
from tensorlace_lab.measuring.bench_cells import finished, measure_missing
from tensorlace_lab.measuring.bench_record import ROOT, Row
from tensorlace_lab.pages.quality_page import GOALS, UNIQUE, pages, table
from tensorlace_lab.systems import ExactGP

SETS = tuple(GOALS)
FEW_SPLITS = {"naval": 3, "protein": 3}
GP_HYPER_ROWS, GP_MOST_ROWS = 2_000, 12_000
PACKAGES = ("numpy", "scipy", "scikit-learn")


def load(name: str) -> tuple[Any, Any]:
    """One of the nine sets, or `UNIQUE`, from TENSORLACE_DATA or ../shared/data."""
    directory = Path(os.environ.get("TENSORLACE_DATA") or ROOT.parent / "shared" / "data")
    path = directory / "uci" / f"{name.removesuffix('-unique')}.csv"
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    if name == UNIQUE:
        table = table[np.sort(np.unique(table, axis=0, return_index=True)[1])]
    return table[:, :-1], table[:, -1]


def ours(
    X: Any, y: Any, X_test: Any, split: int, **settings: Any
) -> tuple[Distribution, dict[str, Any]]:
    model = TNKMRegressor(random_state=split, **settings).fit(X, y)
    best = model.search_results_.iloc[0].to_dict()
    best = {k: None if v != v else v for k, v in best.items()}  # JSON has no NaN
    about = {k: best[k] for k in ("rank", "n_basis", "warp", "lengthscale", "additive", "rotate")}
    return model.predict_dist(X_test), {
        "best": about,
        "members": len(model.machines_),
        "noise": model.noise_.kind,
    }


def in_ten_seconds(X: Any, y: Any, X_test: Any, split: int) -> tuple[Distribution, dict[str, Any]]:
    return ours(X, y, X_test, split, time_budget=10)


def scikit_learn_gp(X: Any, y: Any, X_test: Any, split: int) -> tuple[Distribution, dict[str, Any]]:
    """scikit-learn's exact GP with a length scale per column, from where its kernels start.

    Hyperparameters on at most 2000 rows, posterior on all. One thread: small matrices are slower
    on two.
    """
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)
    kernel = ConstantKernel() * RBF(np.ones(X.shape[1])) + WhiteKernel()
    some = np.random.default_rng(split).permutation(len(X))[:GP_HYPER_ROWS]
    with threadpool_limits(1):
        model = GaussianProcessRegressor(kernel).fit(X[some], y[some])
        if len(X) > len(some):
            model = GaussianProcessRegressor(model.kernel_, optimizer=None).fit(X, y)
        mean, std = model.predict(X_test, return_std=True)
    return Normal(mean, np.zeros_like(std), std), {"kernel": str(model.kernel_)}


def gaussian_process(
    X: Any, y: Any, X_test: Any, split: int
) -> tuple[Distribution, dict[str, Any]]:
    """The same model by a search from two starts, all noise and next to none: the better end.

    Its marginal likelihood and posterior are tested to be scikit-learn's.
    """
    model = ExactGP(GP_HYPER_ROWS, exact_rows=GP_MOST_ROWS, random_state=split)
    return model.fit(X, y).predict_dist(X_test), {}


SYSTEMS = {
    "tensorlace": ours,
    "scikit_learn_gp": scikit_learn_gp,
    "gp": gaussian_process,
    "ten_seconds": in_ten_seconds,
}


def cell(system: str, set: str, split: int) -> Row:  # noqa: A002
    X, y = load(set)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.1, random_state=split)
    location, scale = y_train.mean(), y_train.std()
    y_train, y_test = (y_train - location) / scale, (y_test - location) / scale
    start = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dist, about = SYSTEMS[system](X_train, y_train, X_test, split)
    scores = {k: float(f"{v:.5g}") for k, v in metrics.summary(y_test, dist).items()}
    return {
        "n_train": len(y_train),
        **scores,
        "seconds": round(perf_counter() - start, 1),
        **about,
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks quality")
    parser.add_argument("--sets", default=",".join((*SETS, UNIQUE)))
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--first", type=int, default=1, help="first split")
    options, _ = parser.parse_known_args()
    directory = Path(os.environ.get("QUALITY_RESULTS") or ROOT / "results" / "quality")
    cells = (
        (system, {"set": name, "split": split})
        for split in range(options.first, options.splits + 1)
        for name in options.sets.split(",")
        for system in options.systems.split(",")
        if split <= FEW_SPLITS.get(name, 10)
        and not (system.endswith("gp") and len(load(name)[1]) > GP_MOST_ROWS)
    )
    measure_missing(directory, cells, cell, say, "python -m benchmarks quality", PACKAGES)
    done = {system: finished(directory, system) for system in SYSTEMS}
    print(table(done))
    if "QUALITY_RESULTS" not in os.environ:
        for path, text in pages(done).items():
            path.write_text(text)


def say(system: str, row: Row) -> str:
    return (
        f"{system:10s} {row['set']:9s} split {row['split']:2d}  nll {row['nll']:7.3f}  rmse "
        f"{row['rmse']:.3f}  rce {row['rce']:.3f}  {row['seconds']:6.1f} s"
    )
