"""One ALS sweep against PyPI's tnkm (JAX, float64, compiled) and a plain dense NumPy ALS.

Times are taken in one process; the memory of a sweep is the peak of a process of its own, less what
it held with the data and the libraries loaded (for tnkm that includes what compiling takes).
"""

import os
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import Any, final

import numpy as np
from threadpoolctl import ThreadpoolController

from tensorlace._types import Array
from tensorlace.columns.bases import UnitPolynomial
from tensorlace.networks.cpd import CPD
from tensorlace.networks.engine import NUMPY, Engine
from tensorlace.networks.network import Cores, Network
from tensorlace.rows.memory import MemoryRows
from tensorlace.solvers.als import sweep
from tensorlace.solvers.linearisation import loss
from tensorlace_lab.measuring.cells import Cell, Record, size_name, size_of
from tensorlace_lab.measuring.processes import best_of, isolated, memory_mb
from tensorlace_lab.measuring.runner import Experiment, Options
from tensorlace_lab.writing.markdown import markdown, seconds_text, size_text, times_text

__all__ = ["EXPERIMENT", "Sweep"]

SEED, BETA, GAMMA = 0, 1.0, 1e-2
SIZES = [
    (300, 6, 8, 8),
    (8_000, 8, 4, 8),
    (40_000, 9, 8, 16),
    (100_000, 8, 16, 20),
    (100_000, 8, 40, 20),
]
"""N, D, I and R."""

TITLES = {
    "tensorlace": "tensorlace",
    "tensorlace_compiled": "tensorlace, compiled",
    "tnkm": "tnkm",
    "dense_numpy": "dense NumPy",
}


def dense_sweep(phi: list[Array], y: Array, cores: Cores) -> Cores:
    """Textbook ALS: the whole design matrix of a core, its Gram matrix, a solve."""
    out = list(cores)
    F = [V @ p for V, p in zip(out, phi, strict=True)]
    for d in range(len(out)):
        Z = np.prod([f for k, f in enumerate(F) if k != d], axis=0)
        A = (Z[:, None, :] * phi[d][None, :, :]).reshape(-1, len(y))
        G = A @ A.T + GAMMA / BETA * np.eye(len(A))
        out[d] = np.linalg.solve(G, A @ y).reshape(out[d].shape)
        F[d] = out[d] @ phi[d]
    return tuple(out)


class Peer:
    """tnkm's CPKM on the same data from the same cores."""

    def __init__(self, x: Array, y: Array, n_basis: int, cores: Cores) -> None:
        os.environ["JAX_ENABLE_X64"] = "1"
        import jax.numpy as jnp
        from tnkm.features import PolyNormFeature, ProductFeatures
        from tnkm.models import CPKM

        D = len(x)
        features = ProductFeatures(tuple(PolyNormFeature(n_basis, k_col=d) for d in range(D)))
        self._model = CPKM(features, rank=len(cores[0]), seed=0, dtype=jnp.float64)
        self._x, self._y = jnp.asarray(x.T), jnp.asarray(y)
        self._jnp = jnp
        self.restart(cores)

    def restart(self, cores: Cores) -> None:
        """Go back to the given cores."""
        from tnkm.optim.als import prepare_state

        self._model.tn.w_ten = [self._jnp.asarray(V.T) for V in cores]
        self._state: Any = prepare_state(self._model, self._x)
        self._state["buf"].block_until_ready()

    def sweep(self) -> None:
        """One sweep, waited for."""
        from tnkm.optim.als import als_step

        als_step(self._state, self._model, self._x, self._y, GAMMA, BETA, None)
        self._model.params[-1].block_until_ready()

    def cores(self) -> Cores:
        """Cores as NumPy arrays in our layout."""
        return tuple(np.asarray(V).T.copy() for V in self._model.params)


def objective(rows: MemoryRows, network: Network) -> float:
    penalty = sum(float(np.sum(V * V)) for V in network.cores)
    return 0.5 * (BETA * loss(rows, network) + GAMMA * penalty)


def problem(N: int, D: int, I: int, R: int) -> tuple[Array, Array, CPD, Cores]:
    """Variables (D, N), target, network to start from and prior precisions."""
    rng = np.random.default_rng(SEED)
    x = rng.uniform(-1.5, 1.5, (D, N))
    y = np.sin(2 * x[0]) * x[1] + x[2] ** 2 + 0.1 * rng.standard_normal(N)
    y = (y - y.mean()) / y.std()
    network = CPD.initialise([UnitPolynomial(I).constant()] * D, R, rng)
    return x, y, network, tuple(np.full(V.shape, GAMMA) for V in network.cores)


def our_rows(x: Array, y: Array, I: int, R: int, engine: Engine) -> MemoryRows:
    return MemoryRows(
        x,
        y,
        None,
        [UnitPolynomial(I)] * len(x),
        block_rows=engine.block_rows(R),
        threads=2,
        memory_budget=8 << 30,
        engine=engine,
    )


def engines() -> dict[str, Engine]:
    """Tensorlace's ways of summing a Gram matrix: column of the result, and who does it."""
    try:
        from tensorlace.networks.native.engine import CompiledEngine
    except ImportError:
        return {"tensorlace": NUMPY}
    return {"tensorlace": NUMPY, "tensorlace_compiled": CompiledEngine()}


def measure(N: int, D: int, I: int, R: int) -> dict[str, Any]:
    x, y, network, gamma = problem(N, D, I, R)
    repeats = 9 if N * D * I * I * R * R < 1e11 else 3
    peer = Peer(x, y, I, network.cores)
    start = perf_counter()
    peer.sweep()
    compile_and_sweep = perf_counter() - start
    theirs = CPD(peer.cores()).balanced(gamma)
    phi = [UnitPolynomial(I).phi(u) for u in x]
    rows = {name: our_rows(x, y, I, R, engine) for name, engine in engines().items()}
    ours, _ = sweep(rows["tensorlace"], network, BETA, gamma)
    difference = objective(rows["tensorlace"], ours) / objective(rows["tensorlace"], theirs) - 1.0
    systems: dict[str, tuple[int, Callable[[], Any]]] = {  # with threads of BLAS
        **{name: (1, partial(sweep, table, network, BETA, gamma)) for name, table in rows.items()},
        "tnkm": (2, peer.sweep),
        "dense_numpy": (2, partial(dense_sweep, phi, y, network.cores)),
    }
    seconds = in_turns(repeats, systems)
    for table in rows.values():
        table.close()
    return {
        **{f"{name}_s": s for name, s in seconds.items()},
        "tnkm_first_s": compile_and_sweep,
        "ratio_tnkm": seconds["tnkm"] / seconds["tensorlace"],
        "ratio_dense": seconds["dense_numpy"] / seconds["tensorlace"],
        "objective_difference": abs(difference),
    }


def in_turns(repeats: int, systems: dict[str, tuple[int, Callable[[], Any]]]) -> dict[str, float]:
    """Least seconds of each system, taking turns, each with its own number of BLAS threads."""
    blas, seconds = ThreadpoolController(), dict.fromkeys(systems, float("inf"))
    for _ in range(repeats):
        for name, (threads, function) in systems.items():
            with blas.limit(limits=threads, user_api="blas"):
                (once,) = best_of(1, function)
            seconds[name] = min(seconds[name], once)
    return seconds


def memory(system: str, N: int, D: int, I: int, R: int) -> dict[str, Any]:
    """What one sweep adds to the memory of a process of its own."""
    x, y, network, gamma = problem(N, D, I, R)
    if system == "tnkm":
        small = problem(64, D, I, R)
        Peer(small[0], small[1], I, small[2].cores).sweep()  # loads and starts the library
    with our_rows(*problem(64, D, I, R)[:2], I, R, NUMPY) as rows:
        sweep(rows, network, BETA, gamma)
    before = memory_mb() or np.nan
    if system == "tnkm":
        Peer(x, y, I, network.cores).sweep()
    elif system == "dense_numpy":
        dense_sweep([UnitPolynomial(I).phi(u) for u in x], y, network.cores)
    else:
        with our_rows(x, y, I, R, engines()[system]) as rows:
            sweep(rows, network, BETA, gamma)
    return {"added_mb": (memory_mb("VmHWM") or np.nan) - before}


@final
class Sweep(Experiment):
    """A cell is a size, at which all systems take turns."""

    name = "sweep"
    title = "A sweep, beside other code"
    packages = ("numpy", "scipy", "tnkm", "jax")
    jobs, local = 0, True

    def cells(self, options: Options) -> list[Cell]:
        """Sizes from small to large."""
        sizes = SIZES[:1] if options.quick else SIZES
        names = (size_name(N=N, D=D, I=I, R=R) for N, D, I, R in sizes)
        return [Cell(self.name, name, SEED, "all") for name in names]

    def run(self, cell: Cell, data: str | None) -> Record:
        """Seconds in this process, memory each in one of its own."""
        size = size_of(cell.set)
        row = measure(**size)
        for system in (*engines(), "tnkm", "dense_numpy"):
            found = isolated(f"{__name__}:memory", system=system, **size)
            row[f"{system}_mb"] = found["added_mb"]
        return {"metrics": row}

    def markdown(self, records: Sequence[Record]) -> str:
        """Seconds and ratios, and memory."""
        found = {size_text(**size_of(r["set"])): r["metrics"] for r in records}
        systems = [s for s in TITLES if all(f"{s}_s" in m for m in found.values())]
        header = ["N × D, I, R", *(TITLES[s] for s in systems)]
        rows = [[size, *(_over(m, s) for s in systems)] for size, m in found.items()]
        text = (
            "One ALS sweep in double precision from the same start to the same objective; in "
            "brackets the time relative to tensorlace's.\n\n" + markdown(header, rows)
        )
        slower = [s for s, m in found.items() if min(m["ratio_tnkm"], m["ratio_dense"]) < 1.0]
        if slower:
            text += f"\n\nAnother system is faster at {'; '.join(slower)}."
        rows = [[size, *(f"{m[f'{s}_mb']:,.0f} MB" for s in systems)] for size, m in found.items()]
        text += "\n\nMemory that a sweep adds to a process that holds the data:\n\n"
        return text + markdown(header, rows)


def _over(metrics: dict[str, float], system: str) -> str:
    seconds = seconds_text(metrics[f"{system}_s"])
    if system == "tensorlace":
        return seconds
    return f"{seconds} ({times_text(metrics[f'{system}_s'] / metrics['tensorlace_s'])})"


EXPERIMENT = Sweep()
