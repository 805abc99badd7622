"""Whether a search keeps to the seconds it was given: processor time of whole fits.

A budget is seconds on so many threads, so the promise is that many seconds of each of them. What is
measured is processor time, of this process and of those that it starts, from a table in memory to a
fitted estimator; a busy machine changes little of it.
"""

from collections.abc import Sequence
from typing import Any, final

from tensorlace_lab.measuring.cells import Cell, Record, size_name, size_of
from tensorlace_lab.measuring.processes import isolated
from tensorlace_lab.measuring.runner import Experiment, Options
from tensorlace_lab.writing.markdown import goal_text, markdown

__all__ = ["EXPERIMENT", "KeepsBudget", "measure"]

SEED, THREADS, PROMISE = 0, 2, 1.5
TABLES = (
    {"N": 300, "D": 6, "levels": 0},
    {"N": 1_000, "D": 12, "levels": 50},
    {"N": 5_000, "D": 10, "levels": 0},
    {"N": 40_000, "D": 8, "levels": 0},
    {"N": 200_000, "D": 8, "levels": 0},
)
"""Rows, columns, and levels of two columns among them, a fifth of them in the first."""

BUDGETS = (2, 10, 30)


def table(N: int, D: int, levels: int) -> tuple[Any, Any]:
    """Products and bends of a few columns, categories if there are levels, and noise."""
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(SEED)
    n_numbers = D - 2 * bool(levels)
    X = rng.uniform(-1.0, 1.0, (N, n_numbers))
    f = np.sin(3.0 * X[:, 0]) * X[:, 1] + X[:, 2] ** 2 + np.exp(-4.0 * X[:, 3] ** 2) * X[:, 4]
    frame = pd.DataFrame(X, columns=[f"x{d}" for d in range(n_numbers)])
    for name, n in (("few", levels // 5), ("many", levels - levels // 5)) if levels else ():
        code = rng.integers(n, size=N)
        f = f + 0.5 * rng.standard_normal(n)[code]
        frame[name] = [f"level {k}" for k in code]
    return frame, f / f.std() + 0.3 * (1.0 + 0.5 * X[:, 0]) * rng.standard_normal(N)


def measure(N: int, D: int, levels: int, seconds: float, threads: int) -> dict[str, float]:
    """Processor seconds of a fit with a budget, and what came of it; for a fresh process."""
    import warnings
    from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage

    import numpy as np
    from joblib.externals.loky import get_reusable_executor

    from tensorlace import TimeBudgetWarning, TNKMRegressor
    from tensorlace.search.speed import ProbeSettings, machine_speed

    def used() -> float:
        return sum(
            u.ru_utime + u.ru_stime for u in (getrusage(RUSAGE_SELF), getrusage(RUSAGE_CHILDREN))
        )

    X, y = table(N, D, levels)
    TNKMRegressor(rank=1, n_jobs=1, tol=1.0).fit(X[["x0"]][:50], y[:50])  # imports are no part
    model = TNKMRegressor(time_budget=seconds, random_state=SEED, n_jobs=threads)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        before = used()
        model.fit(X, y)
        get_reusable_executor().shutdown(wait=True)  # children count when they have ended
        after = used()
    results = model.search_results_
    tail = slice(0, min(N, 5_000))
    return {
        "used_s": after - before,
        "candidates": len(results),
        "members": len(model.machines_),
        "rmse": float(np.sqrt(np.mean((model.predict(X[tail]) - y[tail]) ** 2))),
        "speed": machine_speed(ProbeSettings()),
        "warned": sum(issubclass(w.category, TimeBudgetWarning) for w in said),
    }


@final
class KeepsBudget(Experiment):
    """A cell is a table, on which all budgets are tried."""

    name = "budget"
    title = "Budgets"
    packages = ("numpy", "scipy", "scikit-learn", "joblib")
    jobs, local = 0, True

    def cells(self, options: Options) -> list[Cell]:
        """Small tables first."""
        tables = TABLES[:1] if options.quick else TABLES
        return [Cell(self.name, size_name(**size), SEED, "all") for size in tables]

    def run(self, cell: Cell, data: str | None) -> Record:
        """A fresh process for each budget."""
        where, size = f"{__name__}:measure", size_of(cell.set)
        found = {
            str(seconds): isolated(where, **size, seconds=seconds, threads=THREADS)
            for seconds in BUDGETS
        }
        return {"metrics": found}

    def markdown(self, records: Sequence[Record]) -> str:
        """Promised and used seconds, and how far the worst is from the promise."""
        rows, worst = [], 0.0
        for record in records:
            for seconds, r in record["metrics"].items():
                promised = THREADS * float(seconds)
                share = r["used_s"] / promised
                worst = max(worst, share)
                rows.append(
                    [
                        _words(**size_of(record["set"])),
                        seconds,
                        f"{promised:g}",
                        f"{r['used_s']:.1f}",
                        f"{share:.2f}",
                        f"{r['candidates']:.0f}",
                        f"{r['members']:.0f}",
                    ]
                )
        header = ["table", "`time_budget`", "promised, s", "used, s", "share", "tried", "members"]
        return (
            f"Processor seconds of whole fits on {THREADS} threads, those of worker processes "
            "included, beside the budget times the threads. A search that has tried all that the "
            "rows justify ends early.\n\n"
            + markdown(header, rows)
            + f"\n\n{goal_text(worst <= PROMISE, f'at most {PROMISE:g} times the budget')} "
            f"The largest share is {worst:.2f}."
        )


def _words(N: int, D: int, levels: int) -> str:
    """Size of a table in words.

    >>> _words(1000, 12, 50)
    '1,000 × 12, 50 levels'
    """
    return f"{N:,} × {D}" + (f", {levels} levels" if levels else "")


EXPERIMENT = KeepsBudget()
