"""Processor seconds of two checkouts, in one run.

::

    python tools/same_speed.py BEFORE AFTER [--repeats 5] [--only NAME ...]

BEFORE and AFTER are paths of checkouts. Every measurement is a fresh process that imports one of
them, makes a small fit to have everything loaded, and then fits once with one thread of BLAS and
one of its own; the two checkouts take turns, so that a busy moment hits both. Printed are the least
processor seconds of each and their ratio. Measure on a quiet machine: processor seconds do not
count other programs, but caches that are shared with them do.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

ENVIRONMENT = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "SCIPY_ARRAY_API": "1",
    "PYTHONWARNINGS": "ignore",
}


def table(n: int, d: int) -> tuple[Any, Any]:
    """A smooth function of the first three of ``d`` columns, with noise."""
    import numpy as np

    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, d))
    f = np.sin(3 * X[:, 0]) * X[:, 1] + X[:, 2] ** 2
    return X, f + 0.1 * rng.standard_normal(n)


def fixed(**params: Any) -> Callable[[], Any]:
    """Fit of a given size: steps only, as many as ``max_sweeps``."""

    def fit() -> Any:
        from tensorlace import TNKMRegressor

        common = {"random_state": 0, "n_jobs": 1, "tol": 0.0}
        size = dict(params)
        X, y = table(size.pop("rows"), size.pop("columns"))
        return TNKMRegressor(**common, **size), X, y

    return fit


def default(rows: int, columns: int, budget: float) -> Callable[[], Any]:
    """The default within a budget."""

    def fit() -> Any:
        from tensorlace import TNKMRegressor

        X, y = table(rows, columns)
        return TNKMRegressor(random_state=0, n_jobs=1, time_budget=budget), X, y

    return fit


CASES: dict[str, Callable[[], Any]] = {
    "sweeps": fixed(
        rows=40_000, columns=9, rank=16, n_basis=8, solver="als", curvature="last", max_sweeps=8
    ),
    "sweeps_few_rows": fixed(
        rows=1000, columns=6, rank=8, n_basis=8, solver="als", curvature="last", max_sweeps=150
    ),
    "gauss_newton": fixed(rows=4000, columns=6, rank=8, n_basis=8, max_sweeps=60),
    "matrix_free": fixed(
        rows=8000, columns=8, rank=8, n_basis=6, solver="matrix_free", max_sweeps=120
    ),
    "default_few_rows": default(300, 6, 8.0),
    "default_many_rows": default(4000, 6, 8.0),
}
"""Fits by name."""


def measure(name: str) -> None:
    """In a process of its own: print the processor seconds of one fit."""
    warm, X, y = CASES[name]()
    warm.set_params(max_sweeps=2, **({"time_budget": 0.1} if warm.rank == "auto" else {}))
    warm.fit(X[:200], y[:200])
    model, X, y = CASES[name]()
    start = process_time()
    model.fit(X, y)
    print(json.dumps(process_time() - start))


def seconds(checkout: Path, name: str) -> float:
    """Of one fit in a fresh process that imports the checkout."""
    paths = [str(checkout / "src"), str(checkout / "lab" / "src")]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(Path(__file__).resolve()), "--measure", name],
        env={**os.environ, **ENVIRONMENT, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Take turns."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("before", type=Path, nargs="?")
    parser.add_argument("after", type=Path, nargs="?")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--measure", choices=CASES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.measure)
        return
    if arguments.before is None or arguments.after is None:
        parser.error("two checkouts are needed: BEFORE AFTER")
    print(f"{'fit':18s} {'before':>8s} {'after':>8s}  ratio")
    for name in arguments.only:
        least = [float("inf")] * 2
        for _ in range(arguments.repeats):
            for k, checkout in enumerate((arguments.before, arguments.after)):
                least[k] = min(least[k], seconds(checkout.resolve(), name))
        print(f"{name:18s} {least[0]:8.3f} {least[1]:8.3f}  {least[1] / least[0]:.3f}", flush=True)


if __name__ == "__main__":
    main()
