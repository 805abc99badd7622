"""Seconds and passes over the rows until the MAP objective is reached: solvers, cold and grown.

Precisions are held, so this is about the solver alone. What ``solver="auto"`` and
``grow_rows="auto"`` would do is marked.
"""

import sys
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from tensorlace import TNKMRegressor
from tensorlace._types import Array
from tensorlace.columns.bases import Cosine
from tensorlace.fitting.config import Config
from tensorlace.fitting.fit_network import warm_start
from tensorlace.fitting.run import Start
from tensorlace.laplace.curvature import Last
from tensorlace.laplace.precision import Fixed
from tensorlace.networks.cpd import Cores, initialise
from tensorlace.networks.gram import block_rows
from tensorlace.rows.memory import Block, MemoryRows, Rows, Statistic
from tensorlace.rows.stages import stages
from tensorlace.solvers.als import ALS
from tensorlace.solvers.gauss_newton import GaussNewton
from tensorlace.solvers.matrix_free import MatrixFree
from tensorlace.solvers.solver import Solver
from tensorlace.sources.sampling import hashes
from tensorlace_lab.measuring.bench_record import save

SEED, NOISE, BETA, GAMMA = 0, 0.3, 1 / 0.3**2, 1.0
SIZES = [
    (4_000, 8, 6, 4, 4.0),
    (8_000, 8, 8, 8, 8.0),
    (20_000, 8, 8, 8, 10.0),
    (100_000, 8, 8, 16, 16.0),
    (100_000, 8, 16, 20, 18.0),
    (500_000, 8, 8, 8, 18.0),
]
"""N, D, I, R, and seconds that each solver may take."""

SOLVERS: dict[str, Solver] = {
    "als": ALS(),
    "gauss_newton": GaussNewton(),
    "matrix_free": MatrixFree(),
}
DENSE_WORK = 3e10
"""Multiplications per step up to which dense Gauss-Newton takes part."""

LEVELS = {"1e-2": 1e-2, "1e-3": 1e-3}
"""Distances from the best objective found, relative to it."""

TOL = 1e-5


class Counted(Rows):
    """Rows that count how often they are gone through."""

    keeps_blocks = True

    def __init__(self, rows: MemoryRows) -> None:
        self._rows, self.passes = rows, 0
        self.bases, self.n_rows, self.engine = rows.bases, rows.n_rows, rows.engine
        self.total_weight, self.memory_budget = rows.total_weight, rows.memory_budget

    def reduce(self, kernel: Callable[[Block], Statistic], *, light: bool = False) -> Statistic:
        """Count, and pass on."""
        self.passes += 1
        return self._rows.reduce(kernel, light=light)

    def close(self) -> None:
        """Stop the threads."""
        self._rows.close()


def table(N: int, D: int) -> tuple[Array, Array]:
    """Smooth interactions of two and three columns, and noise."""
    rng = np.random.default_rng(SEED)
    u = rng.uniform(0.0, 1.0, (D, N))
    f = np.sin(6 * u[0]) * u[1] + np.exp(-4 * (u[2] - 0.5) ** 2 - 4 * (u[3] - 0.5) ** 2)
    f += u[4] * u[5] ** 2 * np.cos(3 * u[6]) + 0.3 * np.sin(9 * u[7] * u[0])
    return u, (f - f.mean()) / f.std() + NOISE * rng.standard_normal(N)


def run(
    solver: Solver, rows: Counted, parts: list[Counted], cores: Cores, seconds: float
) -> list[tuple[float, float, float]]:
    """Seconds, passes (those over a part by its share) and objective after each step."""
    settings = Config(
        cores[0].shape[0],
        solver=solver,
        curvature=Last(0),
        noise=Fixed(BETA),
        prior=Fixed(GAMMA),
    )
    gamma = tuple(np.full(V.shape, GAMMA) for V in cores)
    for part in (rows, *parts):
        part.passes = 0
    start = perf_counter()
    state = solver.start(rows, warm_start(parts, settings, Start(cores)).cores)
    # gathering the largest part is a pass
    before = bool(parts) + sum(part.passes * part.n_rows / rows.n_rows for part in parts)
    way = []
    while perf_counter() - start < seconds:
        state, info = solver.step(rows, state, BETA, gamma)
        way.append((perf_counter() - start, before + rows.passes, info.objective))
        if info.gradient < TOL or info.stalled:
            break
    return way


def automatic(N: int, D: int, I: int, R: int) -> tuple[type[Solver], bool]:
    """What the estimator would choose: a solver, and whether it begins on a part."""
    model = TNKMRegressor(rank=R, n_basis=I, curvature="last")
    config = Config.of(model.get_params(), D)
    solver = config.for_table([I] * D, N, 1.0).solver
    return type(solver), bool(config.stages(N, D * I * R, D))


def measure(N: int, D: int, I: int, R: int, seconds: float) -> list[dict[str, Any]]:
    u, y = table(N, D)
    bases = [Cosine(I, lengthscale=0.5)] * D
    make = partial(
        MemoryRows, weight=None, bases=bases, block_rows=block_rows(R), threads=2,
        memory_budget=4 << 30,
    )  # fmt: skip
    cores = initialise([b.constant() for b in bases], R, np.random.default_rng(SEED))
    keys = hashes(0, N)
    sizes = stages(N, D * I * R, D)
    chosen = [keys <= np.uint64((size << 64) // N) for size in sizes]
    parts = [Counted(make(np.ascontiguousarray(u[:, c]), y[c])) for c in chosen]
    ways = {}
    with Counted(make(u, y)) as rows:
        for name, solver in SOLVERS.items():
            if name == "gauss_newton" and N * (D * I * R) ** 2 > DENSE_WORK:
                continue
            for grown in (False, True) if parts else (False,):
                ways[name, grown] = run(solver, rows, parts if grown else [], cores, seconds)
    best = min(objective for way in ways.values() for *_, objective in way)
    results, auto = [], automatic(N, D, I, R)
    for (name, grown), way in ways.items():
        row: dict[str, Any] = {"N": N, "D": D, "I": I, "R": R, "solver": name, "grown": grown}
        row |= {"stages": list(sizes) if grown else [], "final": way[-1][2] / best - 1.0}
        row["auto"] = (type(SOLVERS[name]), grown) == auto
        for level, distance in LEVELS.items():
            there = [w for w in way if w[2] <= best * (1.0 + distance)]
            row[f"seconds_{level}"] = round(there[0][0], 3) if there else None
            row[f"passes_{level}"] = round(there[0][1], 1) if there else None
        results.append(row)
        shown = "".join(
            f"{row[f'seconds_{k}'] or np.nan:10.2f} s{row[f'passes_{k}'] or np.nan:8.0f}"
            for k in LEVELS
        )
        print(
            f"{N:7d} {D:2d} {I:3d} {R:3d} {name:>13s} {'grown' if grown else 'cold':>6s}{shown}"
            f"   ends {row['final']:.1e} above{', auto' if row['auto'] else ''}",
            flush=True,
        )
        row["final"] = float(f"{row['final']:.3g}")
    return results


def main() -> None:
    header = "".join(f"{k:>10s}  {'passes':>8s}" for k in LEVELS)
    print(f"{'N':>7s} {'D':>2s} {'I':>3s} {'R':>3s} {'solver':>13s} {'':6s}{header}")
    results = [row for size in SIZES for row in measure(*size)]
    save("passes", SEED, results, ("numpy", "scipy"))


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        measure(*(float(x) if k == 4 else int(x) for k, x in enumerate(argument.split(","))))  # type: ignore[arg-type]
