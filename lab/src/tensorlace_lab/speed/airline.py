"""A fit to six million rows of a Parquet file on two cores: seconds and peak memory.

The table has the size of the airline-delay data (5,929,413 × 8) and is synthetic.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, final

import numpy as np

from tensorlace_lab.measuring.cells import Cell, Record, size_name, size_of
from tensorlace_lab.measuring.processes import isolated
from tensorlace_lab.measuring.runner import Experiment, Options
from tensorlace_lab.writing.markdown import goal_text, markdown, seconds_text

__all__ = ["EXPERIMENT", "Airline"]

SEED, D, ROWS, GROUP = 0, 8, 5_929_413, 131_072
MODEL: dict[str, Any] = {"rank": 20, "n_basis": 40, "max_sweeps": 10}
NOISE_STD, PRIOR, MEMORY_BUDGET = 0.5, 1.0, 256 << 20


def table(path: Path, n_rows: int) -> None:
    """Write the file in row groups, unless one of the right shape is there."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if path.exists():
        shape = pq.ParquetFile(path).metadata
        if (shape.num_rows, shape.num_columns) == (n_rows, D + 1):
            return
    rng = np.random.default_rng(SEED)
    names = [f"x{d}" for d in range(D)]
    schema = pa.schema([(name, pa.float64()) for name in (*names, "y")])
    part = path.with_suffix(".part")
    with pq.ParquetWriter(part, schema) as writer:
        for start in range(0, n_rows, GROUP):
            X = rng.uniform(0, 1, (min(GROUP, n_rows - start), D))
            X[:, 1] = np.round(X[:, 1] * 12)  # a month, a weekday: few values
            X[:, 2] = np.round(X[:, 2] * 7)
            X[:, 3] = rng.gamma(2.0, 400.0, len(X))  # a distance: a long tail
            wave = np.sin(6 * X[:, 0]) * np.cos(X[:, 1]) + 0.2 * X[:, 2] * X[:, 4]
            noise = NOISE_STD * rng.standard_normal(len(X))
            y = wave + np.log1p(X[:, 3] / 800) + np.sin(20 * X[:, 5] * X[:, 6]) + noise
            writer.write_table(pa.table([*X.T.copy(), y], schema=schema), row_group_size=GROUP)
    part.rename(path)


def fit(path: str, engine: str) -> dict[str, Any]:
    """The fit itself, called in a process of its own."""
    from tensorlace import TNKMRegressor

    model = TNKMRegressor(
        **MODEL,
        basis="cosine",
        solver="als",
        curvature="last",
        core=-1,
        noise_precision=NOISE_STD**-2,
        prior_precision=PRIOR,
        n_jobs=2,
        engine=engine,
        grow_rows=False,
        memory_budget=MEMORY_BUDGET,
        random_state=SEED,
        tol=1e-15,
        verbose=2,
    )
    start = perf_counter()
    model.fit_rows(path, "y")
    seconds = perf_counter() - start
    fitted = model.machines_[0].fit
    return {
        "fit_s": seconds,
        "sweeps": len(fitted.history),
        "s_per_sweep": seconds / len(fitted.history),
        "noise_std": model.machines_[0].target.scale * float(np.sqrt(fitted.rss / _rows(path))),
        "objective": [float(f"{value:.10g}") for value in fitted.history],
    }


def _rows(path: str) -> int:
    import pyarrow.parquet as pq

    return int(pq.ParquetFile(path).metadata.num_rows)


@final
class Airline(Experiment):
    """A cell is an engine."""

    name = "airline"
    title = "Six million rows on disk"
    packages = ("numpy", "scipy", "pyarrow")
    jobs, local = 0, True

    def cells(self, options: Options) -> list[Cell]:
        """By the compiled engine, if no other is asked for."""
        rows = 100_000 if options.quick else ROWS
        size = size_name(N=rows, D=D, I=MODEL["n_basis"], R=MODEL["rank"])
        return [Cell(self.name, size, SEED, engine) for engine in options.systems or ("compiled",)]

    def run(self, cell: Cell, data: str | None) -> Record:
        """Write the file, fit to it in a process of its own."""
        with tempfile.TemporaryDirectory() as temporary:
            directory = Path(data or temporary)
            directory.mkdir(parents=True, exist_ok=True)
            path = directory / "airline.parquet"
            table(path, size_of(cell.set)["N"])
            return {"metrics": isolated(f"{__name__}:fit", path=str(path), engine=cell.system)}

    def markdown(self, records: Sequence[Record]) -> str:
        """Seconds, memory and objective."""
        r, m = records[-1], records[-1]["metrics"]
        size = size_of(r["set"])
        first, last = m["objective"][0], m["objective"][-1]
        rows = [
            ["fit", seconds_text(m["fit_s"])],
            [f"per sweep, of {m['sweeps']}", seconds_text(m["s_per_sweep"])],
            ["peak memory of the process", f"{m['peak_mb']:,.0f} MB"],
            ["objective, first and last sweep", f"{first:.6g}, {last:.6g}"],
        ]
        goal = goal_text(m["fit_s"] < 900 and m["peak_mb"] < 2000, "15 minutes and 2 GB")
        return (
            f"A synthetic Parquet file of {size['N']:,} × {size['D']} rows, I = {size['I']}, "
            f"R = {size['R']}, read again in every pass; engine {r['system']}. The airline data "
            "that the size is taken from have 5,929,413.\n\n"
            + markdown(["", ""], rows)
            + (f"\n\n{goal}" if size["N"] == ROWS else "")
        )


EXPERIMENT = Airline()
