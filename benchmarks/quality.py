"""The default that chooses itself on the nine sets of the paper: ``python -m benchmarks quality``.

One call ``TNKMRegressor(random_state=s)`` for all, test share 0.1, y standardised by
the training rows. Every finished cell is a line of results/quality/<system>.jsonl; a run that was
stopped goes on where it was.
"""

import argparse
import os
import warnings
from collections import defaultdict
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks.cells import finished, measure_missing
from benchmarks.record import ROOT, Row
from tensorlace import TNKMRegressor, metrics
from tensorlace.predictive import Distribution, Normal

SETS = ("yacht", "boston", "energy", "concrete", "wine", "kin8nm", "power", "naval", "protein")
FEW_SPLITS = {"naval": 3, "protein": 3}
GOALS = {
    "boston": 0.05,
    "concrete": -0.18,
    "energy": -1.95,
    "kin8nm": 0.13,
    "naval": -3.5,
    "power": -0.15,
    "protein": 1.02,
    "wine": 1.07,
    "yacht": -3.0,
}
GP_ROWS, GP_MOST_ROWS = 2000, 12_000
GP_NOISE_STARTS = (1e-1, 1e-3)
PACKAGES = ("numpy", "scipy", "scikit-learn")


def load(name: str) -> tuple[Any, Any]:
    """One of the nine sets, from TENSORLACE_DATA or ../shared/data."""
    directory = Path(os.environ.get("TENSORLACE_DATA") or ROOT.parent / "shared" / "data")
    table = np.loadtxt(directory / "uci" / f"{name}.csv", delimiter=",", skiprows=1)
    return table[:, :-1], table[:, -1]


def ours(X: Any, y: Any, X_test: Any, split: int) -> tuple[Distribution, dict[str, Any]]:
    model = TNKMRegressor(random_state=split).fit(X, y)
    best = model.search_results_.iloc[0].to_dict()
    about = {k: best[k] for k in ("rank", "n_basis", "warp", "lengthscale", "additive", "rotate")}
    return model.predict_dist(X_test), {"best": about, "members": len(model.machines_)}


def gaussian_process(
    X: Any, y: Any, X_test: Any, split: int
) -> tuple[Distribution, dict[str, Any]]:
    """Exact GP with a length scale per column; hyperparameters on 2000 rows at most.

    The marginal likelihood has a mode where all is noise and one where little is, so the search
    begins near both and the better end counts.
    """
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)
    few = np.random.default_rng(split).permutation(len(X))[:GP_ROWS]
    found = []
    for noise in GP_NOISE_STARTS:
        smooth = RBF(np.ones(X.shape[1]), (1e-3, 1e5))
        kernel = ConstantKernel(1.0, (1e-4, 1e5)) * smooth + WhiteKernel(noise, (1e-8, 10.0))
        found.append(GaussianProcessRegressor(kernel, random_state=split).fit(X[few], y[few]))
    gp = max(found, key=lambda g: g.log_marginal_likelihood_value_)
    if len(X) > GP_ROWS:
        gp = GaussianProcessRegressor(gp.kernel_, optimizer=None).fit(X, y)
    mean, std = gp.predict(X_test, return_std=True)
    return Normal(mean, np.zeros_like(std), std), {
        "noise": float(f"{gp.kernel_.k2.noise_level:.4g}")
    }


SYSTEMS = {"tensorlace": ours, "gp": gaussian_process}


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


def table(directory: Path) -> str:
    """Means over the finished splits, beside the goals."""
    done: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for system in SYSTEMS:
        for row in finished(directory, system):
            done[system][row["set"]].append(row)
    lines = ["| set | splits | NLL | goal | GP | RMSE | GP | RCE | ECP-95 | seconds |"]
    lines.append("|---|---|---|---|---|---|---|---|---|---|")
    for name in SETS:
        rows, peers = done["tensorlace"][name], done["gp"][name]
        if not rows:
            continue

        def mean(key: str, rows: list[dict[str, Any]] = rows) -> float:
            return float(np.mean([row[key] for row in rows]))

        theirs = [f"{mean(k, peers):.3f}" if peers else "–" for k in ("nll", "rmse")]
        lines.append(
            f"| {name} | {len(rows)} | {mean('nll'):.3f} | {GOALS[name]:.2f} | {theirs[0]} | "
            f"{mean('rmse'):.3f} | {theirs[1]} | {mean('rce'):.3f} | {mean('ecp95'):.3f} | "
            f"{mean('seconds'):.0f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks quality")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    options, _ = parser.parse_known_args()
    directory = Path(os.environ.get("QUALITY_RESULTS") or ROOT / "results" / "quality")
    cells = (
        (system, {"set": name, "split": split})
        for split in range(1, options.splits + 1)
        for name in options.sets.split(",")
        for system in options.systems.split(",")
        if split <= FEW_SPLITS.get(name, 10)
        and not (system == "gp" and len(load(name)[1]) > GP_MOST_ROWS)
    )
    measure_missing(directory, cells, cell, say, "python -m benchmarks quality", PACKAGES)
    print(table(directory))


def say(system: str, row: Row) -> str:
    return (
        f"{system:10s} {row['set']:9s} split {row['split']:2d}  nll {row['nll']:7.3f}  rmse "
        f"{row['rmse']:.3f}  rce {row['rce']:.3f}  {row['seconds']:6.1f} s"
    )
