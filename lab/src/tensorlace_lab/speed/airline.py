"""A fit to six million rows of a Parquet file on two cores: seconds and peak memory.

The table has the size of the airline-delay data (5,929,413 × 8) and is synthetic.
"""

import argparse
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np

from tensorlace_lab.measuring.bench_record import Row, isolated, rounded, save

SEED, D, ROWS, GROUP = 0, 8, 5_929_413, 131_072
MODEL = {"rank": 20, "n_basis": 40, "max_sweeps": 10}
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


def fit(path: str, engine: str) -> Row:
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


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks airline")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--dir", help="where the file goes, 0.4 GB; by default it is temporary")
    parser.add_argument("--engine", default="compiled")
    options, _ = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(options.dir or temporary)
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / "airline.parquet"
        table(path, options.rows)
        print(f"{options.rows} rows written, {path.stat().st_size / 1e6:.0f} MB", flush=True)
        row = isolated("benchmarks.airline:fit", path=str(path), engine=options.engine)
    print(
        f"{row['fit_s']:.1f} s, {row['s_per_sweep']:.2f} s per sweep (all passes), "
        f"peak {row['peak_mb']:.0f} MB, residual {row['noise_std']:.3f} for noise {NOISE_STD}"
    )
    sizes = {"N": options.rows, "D": D, "I": MODEL["n_basis"], "R": MODEL["rank"]}
    sizes["engine"] = options.engine
    given = () if options.rows == ROWS else (f"--rows {options.rows}",)
    packages = ("numpy", "scipy", "pyarrow")
    save("airline", SEED, [rounded({**sizes, **row})], packages, given)
