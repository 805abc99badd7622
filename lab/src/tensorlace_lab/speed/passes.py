"""Seconds and passes over the rows until the MAP objective is reached: solvers, cold and grown.

Precisions are held, so this is about the solver alone. What ``solver="auto"`` and
``grow_rows="auto"`` would do is marked.
"""

from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import Any, final

import numpy as np

from tensorlace import TNKMRegressor
from tensorlace._types import Array
from tensorlace.columns.bases import Cosine
from tensorlace.fitting.config import Config
from tensorlace.fitting.fit_network import warm_start
from tensorlace.fitting.run import Start
from tensorlace.laplace.curvature import Last
from tensorlace.laplace.precision import Fixed
from tensorlace.networks.cpd import CPD
from tensorlace.networks.gram import block_rows
from tensorlace.rows.memory import Block, MemoryRows, Rows, Statistic
from tensorlace.rows.stages import stages
from tensorlace.solvers.als import ALS
from tensorlace.solvers.gauss_newton import GaussNewton
from tensorlace.solvers.matrix_free import MatrixFree
from tensorlace.solvers.solver import Solver
from tensorlace.sources.sampling import hashes
from tensorlace_lab.measuring.cells import Cell, Record, size_name, size_of
from tensorlace_lab.measuring.runner import Experiment, Options
from tensorlace_lab.writing.markdown import markdown, seconds_text, size_text, times_text

__all__ = ["EXPERIMENT", "Passes"]

SEED, NOISE, BETA, GAMMA = 0, 0.3, 1 / 0.3**2, 1.0
SIZES = {
    size_name(N=4_000, D=8, I=6, R=4): 4.0,
    size_name(N=8_000, D=8, I=8, R=8): 8.0,
    size_name(N=20_000, D=8, I=8, R=8): 10.0,
    size_name(N=100_000, D=8, I=8, R=16): 16.0,
    size_name(N=100_000, D=8, I=16, R=20): 18.0,
    size_name(N=500_000, D=8, I=8, R=8): 18.0,
}
"""Seconds that each solver may take, by size."""

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
        self.likelihood = rows.likelihood

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
    solver: Solver, rows: Counted, parts: list[Counted], network: CPD, seconds: float
) -> list[tuple[float, float, float]]:
    """Seconds, passes (those over a part by its share) and objective after each step."""
    settings = Config(
        network.rank,
        solver=solver,
        curvature=Last(0),
        noise=Fixed(BETA),
        prior=Fixed(GAMMA),
    )
    gamma = tuple(np.full(V.shape, GAMMA) for V in network.cores)
    for part in (rows, *parts):
        part.passes = 0
    start = perf_counter()
    state = solver.start(rows, warm_start(parts, settings, Start(network)).network)
    # gathering the largest part is a pass
    before = bool(parts) + sum(part.passes * part.n_rows / rows.n_rows for part in parts)
    way = []
    while perf_counter() - start < seconds:
        state, info = solver.step(rows, state, BETA, gamma)
        way.append((perf_counter() - start, before + rows.passes, info.objective))
        if info.gradient < TOL or info.stalled:
            break
    return way


def automatic(N: int, D: int, I: int, R: int) -> tuple[type[Any], bool]:
    """What the estimator would choose: a solver, and whether it begins on a part."""
    model = TNKMRegressor(rank=R, n_basis=I, curvature="last")
    config = Config.of(model.get_params(), D)
    solver = config.for_table([I] * D, N, 1.0).solver
    assert solver is not None
    return type(solver), bool(config.stages(N, D * I * R, D))


def measure(N: int, D: int, I: int, R: int, seconds: float) -> list[dict[str, Any]]:
    u, y = table(N, D)
    bases = [Cosine(I, lengthscale=0.5)] * D
    make = partial(
        MemoryRows, weight=None, bases=bases, block_rows=block_rows(R), threads=2,
        memory_budget=4 << 30,
    )  # fmt: skip
    network = CPD.initialise([b.constant() for b in bases], R, np.random.default_rng(SEED))
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
                ways[name, grown] = run(solver, rows, parts if grown else [], network, seconds)
    best = min(objective for way in ways.values() for *_, objective in way)
    results, auto = [], automatic(N, D, I, R)
    for (name, grown), way in ways.items():
        row: dict[str, Any] = {"solver": name, "grown": grown}
        row |= {"stages": list(sizes) if grown else [], "final": way[-1][2] / best - 1.0}
        row["auto"] = (type(SOLVERS[name]), grown) == auto
        for level, distance in LEVELS.items():
            there = [w for w in way if w[2] <= best * (1.0 + distance)]
            row[f"seconds_{level}"] = round(there[0][0], 3) if there else None
            row[f"passes_{level}"] = round(there[0][1], 1) if there else None
        results.append(row)
    return results


@final
class Passes(Experiment):
    """A cell is a size, at which all solvers look for the same objective."""

    name = "passes"
    title = "Solvers"
    packages = ("numpy", "scipy")
    jobs, local = 0, True

    def cells(self, options: Options) -> list[Cell]:
        """Sizes from small to large."""
        sizes = list(SIZES)[:1] if options.quick else list(SIZES)
        return [Cell(self.name, size, SEED, "all") for size in sizes]

    def run(self, cell: Cell, data: str | None) -> Record:
        """Go until each has found it, or its time is over."""
        return {"metrics": {"ways": measure(**size_of(cell.set), seconds=SIZES[cell.set])}}

    def markdown(self, records: Sequence[Record]) -> str:
        """Seconds and passes to 1 % and 0.1 %, and what `auto` costs beside the quickest."""
        rows, verdicts = [], []
        for record in records:
            size, ways = size_text(**size_of(record["set"])), record["metrics"]["ways"]
            for r in ways:
                name = f"{r['solver'].replace('_', '-')}, {'grown' if r['grown'] else 'all rows'}"
                cells = [size, f"**{name}**" if r.get("auto") else name]
                for level in LEVELS:
                    seconds, passes = r[f"seconds_{level}"], r[f"passes_{level}"]
                    done = seconds is not None
                    cells += [seconds_text(seconds), f"{passes:,.0f}"] if done else ["", ""]
                rows.append([*cells, f"{r['final']:.2g}"])
            there = [r for r in ways if r["seconds_1e-2"]]
            own = next((r for r in there if r.get("auto")), None)
            if own is not None:
                least = min(r["seconds_1e-2"] for r in there)
                verdicts.append(f"{times_text(own['seconds_1e-2'] / least)} at {size}")
        header = ["N × D, I, R", "solver", "to 1 %", "passes", "to 0.1 %", "passes", "ends above"]
        text = (
            "Until the objective is within 1 % and 0.1 % of the best that any solver found there; "
            "precisions are held. *Grown* fits begin on a part of the rows. What `auto` stands for "
            "is bold.\n\n" + markdown(header, rows)
        )
        if verdicts:
            text += f"\n\n`auto` takes {'; '.join(verdicts)} the time of the quickest to 1 %."
        return text


EXPERIMENT = Passes()
