"""How the time of an ALS sweep and the memory of a streamed fit grow with N, I, R and D.

Against N the rows are streamed from .npy files, by the same path for ten thousand rows and for ten
million; each point is a process of its own, whose peak memory is noted. Against I, R and D they are
in memory, and against D also streamed: there every pass computes the features of all columns again.
Exponents are least-squares slopes of log time on log size.
"""

import argparse
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np

from tensorlace.columns.bases import Cosine
from tensorlace.columns.columns import Column, Columns
from tensorlace.columns.warps import MinMax, Standardise
from tensorlace.networks.cpd import initialise
from tensorlace.networks.gram import block_rows
from tensorlace.rows.memory import MemoryRows, Rows
from tensorlace.rows.streamed import StreamedRows
from tensorlace.solvers.als import sweep
from tensorlace.sources import NpySource
from tensorlace_lab.measuring.bench_record import Finished, Row, isolated

SEED, BETA, GAMMA, THREADS = 0, 10.0, 1.0, 2
STREAMED, MEMORY = "streamed", "in memory"
SMALL = {"N": 50_000, "D": 8, "I": 8, "R": 8}
BASE = {**SMALL, "I": 16, "R": 16}
AXES = {
    ("N", STREAMED): (
        SMALL,
        (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000),
    ),
    ("I", MEMORY): (BASE, (8, 16, 32, 64)),
    ("R", MEMORY): (BASE, (8, 16, 32, 64)),
    ("D", MEMORY): (BASE, (4, 8, 16, 32)),
    ("D", STREAMED): (SMALL, (4, 8, 16, 32)),
}
PAPER = {"N": 1, "I": 2, "R": 2, "D": 1}
"""Exponents of a sweep in the paper's table of complexities, O(N D I² R²)."""


def table(directory: Path, N: int, D: int) -> tuple[Path, Path]:
    """Files of X (N, D) and y (N,), written once and in blocks."""
    X, y = (directory / f"{name}_{N}_{D}.npy" for name in ("X", "y"))
    if not y.exists():
        rng = np.random.default_rng(SEED)
        features = np.lib.format.open_memmap(X, "w+", np.float64, (N, D))
        target = np.empty(N)
        for start in range(0, N, 1 << 16):
            block = rng.uniform(0, 1, (min(1 << 16, N - start), D))
            features[start : start + len(block)] = block
            wave = np.sin(6 * block[:, 0]) * block[:, 1] + block[:, 2] ** 2
            target[start : start + len(block)] = wave + 0.1 * rng.standard_normal(len(block))
        features.flush()
        np.save(y, target)
    return X, y


def sweep_seconds(directory: str, where: str, N: int, D: int, I: int, R: int, repeats: int) -> Row:
    """Least seconds of a sweep; called in a process of its own."""
    source = NpySource(*table(Path(directory), N, D))
    unit = np.array([0.0, 1.0])
    columns = Columns(
        tuple(Column(MinMax.fit(unit), Cosine(I, lengthscale=0.1), f"x{d}") for d in range(D))
    )
    target = Standardise.fit(source.read(0, min(N, 1 << 16)).y)
    bases = [column.basis for column in columns.columns]
    cores = initialise([b.constant() for b in bases], R, np.random.default_rng(SEED))
    gamma = tuple(np.full(V.shape, GAMMA) for V in cores)
    block = block_rows(R)
    if where == STREAMED:
        rows: Rows = StreamedRows(
            source, columns, target, float(N), block_rows=block, threads=THREADS
        )
    else:
        chunk = source.read(0, N)
        u, y = columns.variables(chunk.X), target(chunk.y)
        rows = MemoryRows(
            u, y, None, bases, block_rows=block, threads=THREADS, memory_budget=8 << 30
        )
    seconds = []
    with rows:
        for _ in range(repeats):
            start = perf_counter()
            sweep(rows, cores, BETA, gamma)
            seconds.append(perf_counter() - start)
    return {"sweep_s": min(seconds)}


def exponents(rows: list[Row]) -> list[Row]:
    """Slopes of log time on log size, one row per axis with two sizes or more."""
    out = []
    for axis, where in AXES:
        found = [row for row in rows if (row["axis"], row["where"]) == (axis, where)]
        if len(found) < 2:
            continue
        x = np.log([row[axis] for row in found])
        y = np.log([row["sweep_s"] for row in found])
        out.append(
            {
                "axis": f"exponent of {axis}",
                "where": where,
                "exponent": float(np.polyfit(x, y, 1)[0]),
                "last_step": float((y[-1] - y[-2]) / (x[-1] - x[-2])),
                "paper": PAPER[axis],
            }
        )
    return out


def cells(divide: int) -> list[Row]:
    """All tables to measure; ``divide`` makes them smaller, for a try."""
    out = []
    for (axis, where), (base, sizes) in AXES.items():
        for size in sizes if divide == 1 else sizes[:3]:
            cell = {"axis": axis, "where": where, **base, axis: size}
            out.append({**cell, "N": max(64, cell["N"] // divide)})
    return out


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks scaling")
    parser.add_argument("--fresh", action="store_true", help="forget finished rows")
    parser.add_argument("--dir", help="where the tables go, 1 GB; by default they are temporary")
    parser.add_argument("--divide", type=int, default=1, help="divide the rows, for a try")
    options, _ = parser.parse_known_args()
    given = () if options.divide == 1 else (f"--divide {options.divide}",)
    keys = ("axis", "where", "N", "D", "I", "R")
    done = Finished("scaling", SEED, keys, ("numpy", "scipy"), options.fresh, given)
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(options.dir or temporary)
        directory.mkdir(parents=True, exist_ok=True)
        for cell in cells(options.divide):
            if cell not in done:
                done.add({**cell, **_measure(directory, cell)})
    for row in exponents(done.rows):
        print(f"{row['axis']}, {row['where']}: {row['exponent']:.2f}, paper {row['paper']}")
        done.add({**dict.fromkeys("NDIR", 0), **row})


def _measure(directory: Path, cell: Row) -> Row:
    size = {k: cell[k] for k in "NDIR"}
    table(directory, cell["N"], cell["D"])
    row = isolated(
        "benchmarks.scaling:sweep_seconds",
        directory=str(directory),
        where=cell["where"],
        **size,
        repeats=1 if cell["N"] > 1_000_000 else 3,
    )
    print(f"{cell['where']:9s} {size} {row['sweep_s']:9.3f} s {row['peak_mb']:7.0f} MB", flush=True)
    return row
