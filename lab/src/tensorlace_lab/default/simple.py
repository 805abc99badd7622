"""Data with little to find, and the default on them: ``python -m benchmarks simple``.

Noise alone beside the constant with its variance, a line beside Bayesian ridge regression, and a
handful of rows. Every finished cell is a line of results/simple/tensorlace.jsonl; a run that was
stopped goes on where it was.
"""

import argparse
import os
import warnings
from pathlib import Path
from time import perf_counter

import numpy as np
from scipy.stats import norm
from sklearn.linear_model import BayesianRidge

from tensorlace import TNKMRegressor
from tensorlace._types import Array
from tensorlace_lab.measuring.bench_cells import finished, measure_missing
from tensorlace_lab.measuring.bench_record import ROOT, Row

ROWS = {"noise": (200, 1_000), "line": (300, 1_000), "few": (5, 10, 20)}
SEEDS, N_TEST = 5, 5_000
PACKAGES = ("numpy", "scipy", "scikit-learn")

ABOUT = f"""# Data with little to find

`python -m benchmarks simple` makes this page: `TNKMRegressor(random_state=s)`, s = 1, ..., {SEEDS},
tested on {N_TEST:,} rows. *noise*: a target that has nothing to do with its 4 columns, beside the
constant that predicts the mean and variance of the training rows. *line*: 5 columns and noise of
standard deviation 0.5, beside scikit-learn's BayesianRidge. *few*: a wave in one column times
another, one column of no use and noise of 0.1, beside BayesianRidge. NLL in nats per row; the
largest share of the variance that a column explains; coverage and mean width of 90 % intervals, the
width in standard deviations of the target.

"""


def draw(task: str, rows: int, seed: int) -> tuple[Array, Array]:
    """Table (rows + N_TEST, D) and its target."""
    rng = np.random.default_rng(seed)
    n = rows + N_TEST
    if task == "noise":
        return rng.uniform(size=(n, 4)), rng.standard_normal(n)
    if task == "line":
        X = rng.standard_normal((n, 5))
        return X, X @ rng.standard_normal(5) + 0.5 * rng.standard_normal(n)
    X = rng.uniform(-1, 1, (n, 3))
    return X, np.sin(3 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(n)


def peer(task: str, X: Array, y: Array, X_test: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of what the task is held against."""
    if task == "noise":
        return np.full(len(X_test), y.mean()), np.full(len(X_test), y.std())
    mean, std = BayesianRidge().fit(X, y).predict(X_test, return_std=True)
    return mean, std


def cell(_: str, task: str, rows: int, seed: int) -> Row:
    X, y = draw(task, rows, seed)
    X, X_test, y, y_test = X[:rows], X[rows:], y[:rows], y[rows:]
    start = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = TNKMRegressor(random_state=seed).fit(X, y)
        dist = model.predict_dist(X_test)
    seconds = perf_counter() - start
    lower, upper = dist.interval(0.9)
    mean, std = peer(task, X, y, X_test)
    found = {
        "nll": -np.mean(dist.logpdf(y_test)),
        "peer_nll": -np.mean(norm.logpdf(y_test, mean, std)),
        "relevance": np.max(model.relevance_),
        "coverage90": np.mean((lower <= y_test) & (y_test <= upper)),
        "width90": np.mean(upper - lower) / np.std(y_test),
    }
    found = {k: float(f"{v:.5g}") for k, v in found.items()}
    return {**found, "seconds": round(seconds, 1)}


def page(directory: Path) -> str:
    """What the program writes: means over the finished seeds, and the worst beside the peer."""
    done = finished(directory, "tensorlace")
    lines = [
        "| task | rows | seeds | NLL | peer | difference (worst) | relevance | coverage | width "
        "| seconds |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for task, sizes in ROWS.items():
        for n in sizes:
            rows = [row for row in done if (row["task"], row["rows"]) == (task, n)]
            if not rows:
                continue
            keys = ("nll", "peer_nll", "relevance", "coverage90", "width90", "seconds")
            a, b, *rest = (np.mean([row[k] for row in rows]) for k in keys)
            worst = max(row["nll"] - row["peer_nll"] for row in rows)
            cells = [task, n, len(rows), f"{a:.3f}", f"{b:.3f}", f"{a - b:+.3f} ({worst:+.3f})"]
            lines.append("| " + " | ".join(map(str, [*cells, *(f"{v:.3g}" for v in rest)])) + " |")
    return ABOUT + "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks simple")
    parser.add_argument("--tasks", default=",".join(ROWS))
    parser.add_argument("--seeds", type=int, default=SEEDS)
    options, _ = parser.parse_known_args()
    redirected = os.environ.get("SIMPLE_RESULTS")
    directory = Path(redirected or ROOT / "results" / "simple")
    cells = (
        ("tensorlace", {"task": task, "rows": rows, "seed": seed})
        for seed in range(1, options.seeds + 1)
        for task in options.tasks.split(",")
        for rows in ROWS[task]
    )
    measure_missing(directory, cells, cell, say, "python -m benchmarks simple", PACKAGES)
    text = page(directory)
    print(text)
    target = directory / "simple.md" if redirected else ROOT / "docs" / "simple.md"
    target.write_text(text)


def say(_: str, row: Row) -> str:
    return (
        f"{row['task']:6s} {row['rows']:5d} rows  seed {row['seed']}  nll {row['nll']:7.3f}  peer "
        f"{row['peer_nll']:7.3f}  relevance {row['relevance']:.3f}  {row['seconds']:6.1f} s"
    )
