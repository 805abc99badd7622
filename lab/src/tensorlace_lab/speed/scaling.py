"""How the time of an ALS sweep and the memory of a streamed fit grow with N, I, R and D.

Against N the rows are streamed from .npy files, by the same path for ten thousand rows and for ten
million; each point is a process of its own, whose peak memory is noted. Against I, R and D they are
in memory, and against D also streamed: there every pass computes the features of all columns again.
Exponents are least-squares slopes of log time on log size.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, final

import numpy as np

from tensorlace.columns.bases import Cosine
from tensorlace.columns.columns import Column, Columns
from tensorlace.columns.warps import MinMax, Standardise
from tensorlace.networks.cpd import CPD
from tensorlace.networks.gram import block_rows
from tensorlace.rows.memory import MemoryRows, Rows
from tensorlace.rows.streamed import StreamedRows
from tensorlace.solvers.als import sweep
from tensorlace.sources import NpySource
from tensorlace_lab.measuring.cells import Cell, Record, size_name, size_of
from tensorlace_lab.measuring.processes import isolated
from tensorlace_lab.measuring.runner import Experiment, Options
from tensorlace_lab.speed import figures
from tensorlace_lab.writing.markdown import goal_text, markdown, seconds_text

__all__ = ["EXPERIMENT", "Scaling", "exponents"]

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
GOALS = {
    "N": ("1.00 ± 0.05", 1.05),
    "I": ("at most 1.2", 1.2),
    "R": ("at most 2.1", 2.1),
    "D": ("at most 1.1", 1.1),
}
"""Exponents aimed at, in words and at most."""

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


def sweep_seconds(
    directory: str, where: str, N: int, D: int, I: int, R: int, repeats: int
) -> dict[str, float]:
    """Least seconds of a sweep; called in a process of its own."""
    source = NpySource(*table(Path(directory), N, D))
    unit = np.array([0.0, 1.0])
    columns = Columns(
        tuple(Column(MinMax.fit(unit), Cosine(I, lengthscale=0.1), f"x{d}") for d in range(D))
    )
    target = Standardise.fit(source.read(0, min(N, 1 << 16)).y)
    bases = [column.basis for column in columns.columns]
    constants = [basis.constant() for basis in bases]
    network = CPD.initialise(constants, R, np.random.default_rng(SEED))
    gamma = tuple(np.full(V.shape, GAMMA) for V in network.cores)
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
            sweep(rows, network, BETA, gamma)
            seconds.append(perf_counter() - start)
    return {"sweep_s": min(seconds)}


def exponents(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Slopes of log time on log size, one for each axis of two sizes or more; of four digits."""
    out = []
    for axis, where in AXES:
        found = [r for r in records if (r["protocol"], r["system"]) == (axis, where)]
        if len(found) < 2:
            continue
        x = np.log([size_of(r["set"])[axis] for r in found])
        y = np.log([r["metrics"]["sweep_s"] for r in found])
        out.append(
            {
                "axis": axis,
                "where": where,
                "exponent": float(f"{np.polyfit(x, y, 1)[0]:.4g}"),
                "last_step": float(f"{(y[-1] - y[-2]) / (x[-1] - x[-2]):.4g}"),
                "paper": PAPER[axis],
            }
        )
    return out


@final
class Scaling(Experiment):
    """A cell is a size on an axis (the protocol), streamed or in memory (the system)."""

    name = "scaling"
    title = "Growth with N, I, R and D"
    protocols = tuple(PAPER)
    packages = ("numpy", "scipy")
    jobs, local = 0, True

    def cells(self, options: Options) -> list[Cell]:
        """Axis by axis, from small to large."""
        out = []
        for (axis, where), (base, sizes) in AXES.items():
            for value in sizes[:3] if options.quick else sizes:
                size = {**base, axis: value}
                if options.quick:
                    size["N"] //= 100
                out.append(Cell(self.name, size_name(**size), SEED, where, axis))
        return [cell for cell in out if cell.protocol in (options.protocols or self.protocols)]

    def run(self, cell: Cell, data: str | None) -> Record:
        """Write the table, sweep in a process of its own."""
        size = size_of(cell.set)
        with tempfile.TemporaryDirectory() as temporary:
            directory = Path(data or temporary)
            directory.mkdir(parents=True, exist_ok=True)
            table(directory, size["N"], size["D"])
            repeats = 1 if size["N"] > 1_000_000 else 3
            how: dict[str, Any] = {"where": cell.system, **size, "repeats": repeats}
            found = isolated(f"{__name__}:sweep_seconds", directory=str(directory), **how)
        return {"metrics": found}

    def markdown(self, records: Sequence[Record]) -> str:
        """Exponents beside the paper's, and the memory of streamed fits."""
        records = _in_order(records)
        rows = []
        for r in exponents(records):
            aim, most = GOALS[r["axis"]]
            met = r["exponent"] <= most and (r["axis"] != "N" or r["exponent"] >= 0.95)
            fitted, last = f"{r['exponent']:.2f}", f"{r['last_step']:.2f}"
            reached = f"{aim}: {'reached' if met else '**not reached**'}"
            rows.append([f"{r['axis']}, {r['where']}", fitted, last, str(r["paper"]), reached])
        text = (
            "Seconds per ALS sweep, rows streamed from disk against N and in memory otherwise. The "
            "paper's count of operations is O(N D I² R²). Streamed, every core asks for the "
            "features of all columns again, a share of the work that is quadratic in D.\n\n"
            "![Time of a sweep against N, I, R and D](benchmarks/scaling.svg)\n\n"
            + markdown(["against", "fitted exponent", "last step", "paper", "aim"], rows)
        )
        streamed = {
            size_of(r["set"])["N"]: r["metrics"]
            for r in records
            if (r["protocol"], r["system"]) == ("N", STREAMED)
        }
        if len(streamed) > 1:
            memory = [
                [f"{N:,}", seconds_text(m["sweep_s"]), f"{m['peak_mb']:,.0f} MB"]
                for N, m in streamed.items()
            ]
            text += "\n\n" + markdown(["N, streamed", "sweep", "peak of the process"], memory)
        if {1_000_000, 10_000_000} <= set(streamed):
            more = streamed[10_000_000]["peak_mb"] / streamed[1_000_000]["peak_mb"] - 1.0
            text += f"\n\nTen times the rows take {more:+.1%} memory. "
            text += goal_text(more <= 0.05, "+5 %")
        return text

    def figures(self, records: Sequence[Record], directory: Path) -> list[Path]:
        """Seconds against each size."""
        records = _in_order(records)
        points = {
            (axis, where): [
                (size_of(r["set"])[axis], r["metrics"]["sweep_s"])
                for r in records
                if (r["protocol"], r["system"]) == (axis, where)
            ]
            for axis, where in AXES
        }
        slopes = {(r["axis"], r["where"]): r for r in exponents(records)}
        return [figures.scaling(points, slopes, directory / "scaling.svg")]


def _in_order(records: Sequence[Record]) -> list[Record]:
    """Axis by axis, from small to large."""
    axes = list(AXES)
    return sorted(
        records,
        key=lambda r: (
            axes.index((r["protocol"], r["system"])),
            size_of(r["set"])[r["protocol"]],
        ),
    )


EXPERIMENT = Scaling()
