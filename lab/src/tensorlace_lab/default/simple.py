"""Data with little to find, and the default on them.

Noise alone beside the constant with its variance, a line beside Bayesian ridge regression, and a
handful of rows.
"""

from collections.abc import Sequence
from time import perf_counter
from typing import final

import numpy as np
from scipy.stats import norm

from tensorlace import TNKMRegressor
from tensorlace._types import Array
from tensorlace_lab.measuring.cells import Cell, Record
from tensorlace_lab.measuring.runner import Experiment, Options
from tensorlace_lab.measuring.scores import OURS
from tensorlace_lab.systems import SYSTEMS

__all__ = ["EXPERIMENT", "Simple", "draw"]

ROWS = {"noise": (200, 1_000), "line": (300, 1_000), "few": (5, 10, 20)}
SETS = {f"{task}, {rows} rows": (task, rows) for task, sizes in ROWS.items() for rows in sizes}
SEEDS, N_TEST = 5, 5_000

ABOUT = f"""`python -m tensorlace_lab simple` makes this page: `TNKMRegressor(random_state=s)`,
s = 1, ..., {SEEDS}, tested on {N_TEST:,} rows. *noise*: a target that has nothing to do with its 4
columns, beside the constant that predicts the mean and variance of the training rows. *line*: 5
columns and noise of standard deviation 0.5, beside scikit-learn's BayesianRidge. *few*: a wave in
one column times another, one column of no use and noise of 0.1, beside BayesianRidge. NLL in nats
per row; the largest share of the variance that a column explains; coverage and mean width of 90 %
intervals, the width in standard deviations of the target.

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
    mean, std = SYSTEMS["BayesianRidge"]().fit(X, y).predict(X_test, return_std=True)
    return mean, std


@final
class Simple(Experiment):
    """A cell is a drawing of a task with so many rows; ``split`` is its seed."""

    name = "simple"
    title = "Data with little to find"
    sets = tuple(SETS)
    packages = ("numpy", "scipy", "scikit-learn")
    jobs = 0  # a fit uses all cores

    def cells(self, options: Options) -> list[Cell]:
        """Seed by seed."""
        seeds = options.splits or (range(1, 2) if options.quick else range(1, SEEDS + 1))
        return [
            Cell(self.name, name, seed, OURS)
            for seed in seeds
            for name in options.sets or (self.sets[-1:] if options.quick else self.sets)
        ]

    def run(self, cell: Cell, data: str | None) -> Record:
        """Fit ours and what it is held against."""
        task, rows = SETS[cell.set]
        X, y = draw(task, rows, cell.split)
        X, X_test, y, y_test = X[:rows], X[rows:], y[:rows], y[rows:]
        start = perf_counter()
        model = TNKMRegressor(random_state=cell.split).fit(X, y)
        dist = model.predict_dist(X_test)
        seconds = perf_counter() - start
        lower, upper = dist.interval(0.9)
        mean, std = peer(task, X, y, X_test)
        metrics = {
            "nll": -np.mean(dist.logpdf(y_test)),
            "peer_nll": -np.mean(norm.logpdf(y_test, mean, std)),
            "relevance": np.max(model.relevance_),
            "coverage90": np.mean((lower <= y_test) & (y_test <= upper)),
            "width90": np.mean(upper - lower) / np.std(y_test),
        }
        return {"metrics": metrics, "seconds": seconds}

    def markdown(self, records: Sequence[Record]) -> str:
        """Means over the finished seeds, and the worst beside the peer."""
        lines = [
            "| task | rows | seeds | NLL | peer | difference (worst) | relevance | coverage "
            "| width | seconds |",
            "|---|---|---|---|---|---|---|---|---|---|",
        ]
        for name, (task, n) in SETS.items():
            found = [{**r["metrics"], "seconds": r["seconds"]} for r in records if r["set"] == name]
            if not found:
                continue
            keys = ("nll", "peer_nll", "relevance", "coverage90", "width90", "seconds")
            a, b, *rest = (np.mean([row[k] for row in found]) for k in keys)
            worst = max(row["nll"] - row["peer_nll"] for row in found)
            cells = [task, n, len(found), f"{a:.3f}", f"{b:.3f}", f"{a - b:+.3f} ({worst:+.3f})"]
            lines.append("| " + " | ".join(map(str, [*cells, *(f"{v:.3g}" for v in rest)])) + " |")
        return ABOUT + "\n".join(lines)


EXPERIMENT = Simple()
