"""The paper's table of memory and time, measured beside the formula."""

import tracemalloc
from collections.abc import Callable, Sequence
from time import process_time
from typing import Any, final

import numpy as np

from tensorlace.columns.bases import UnitPolynomial
from tensorlace.fitting.registry import CURVATURES
from tensorlace.laplace.curvature import Curvature, Last
from tensorlace.laplace.factorisation import Truncation
from tensorlace.laplace.posterior import Blocks, Diagonal, LowRank, Posterior, Root
from tensorlace.networks.cpd import CPD
from tensorlace.rows.memory import MemoryRows
from tensorlace.solvers.als import sweep
from tensorlace_lab.measuring.cells import Cell, Record, size_name, size_of
from tensorlace_lab.measuring.runner import Experiment, Options
from tensorlace_lab.writing.markdown import markdown

__all__ = ["EXPERIMENT", "Complexity", "measure", "problem", "stored_bytes"]

BASE = {"N": 20_000, "D": 4, "I": 8, "R": 8}
QUICK = {"N": 2_000, "D": 3, "I": 4, "R": 2}
FACTORS = (1, 2, 4)
REPEAT_SECONDS = 1.0
SYSTEMS = ("map", "last", "diag", "block", "ggn", "full")
FORMULAS = {
    "map": ("D I R", "(N + D) I R", "N D I² R²"),
    "last": ("I² R²", "N I R", "N I² R²"),
    "diag": ("D I R", "(N + D) I R", "N D I R"),
    "block": ("D I² R²", "N I R + D I² R²", "N D I² R²"),
    "ggn": ("(D I R)²", "N I R + (D I R)²", "N (D I R)²"),
    "full": ("(D I R)²", "N I R + (D I R)²", "N (D I R)²"),
}
"""Memory to keep, peak memory and time of the paper; MAP per sweep."""

TIME_EXPONENTS = {
    "map": {"N": 1, "D": 1, "I": 2, "R": 2},
    "last": {"N": 1, "D": 0, "I": 2, "R": 2},
    "diag": {"N": 1, "D": 1, "I": 1, "R": 1},
    "block": {"N": 1, "D": 1, "I": 2, "R": 2},
    "ggn": {"N": 1, "D": 2, "I": 2, "R": 2},
    "full": {"N": 1, "D": 2, "I": 2, "R": 2},
}


def problem(N: int, D: int, I: int, R: int, seed: int) -> tuple[MemoryRows, CPD]:
    """Random rows and a network of a size."""
    rng = np.random.default_rng(seed)
    bases = [UnitPolynomial(I)] * D
    u, y = rng.standard_normal((D, N)), rng.standard_normal(N)
    rows = MemoryRows(u, y, None, bases, block_rows=1024)
    return rows, CPD.initialise([b.constant() for b in bases], R, rng)


def measure(work: Callable[[], Any], least: float) -> tuple[float, int]:
    """Least processor seconds of a call, and peak bytes that one allocates.

    Calls are repeated, three times or more, until they have taken ``least`` seconds together: the
    first ones find caches and memory cold.
    """
    seconds: list[float] = []
    while len(seconds) < 3 or sum(seconds) < least:
        start = process_time()
        work()
        seconds.append(process_time() - start)
    tracemalloc.start()
    try:
        work()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return min(seconds), peak


def stored_bytes(posterior: Posterior) -> int:
    """Bytes that a posterior keeps.

    >>> import numpy as np
    >>> stored_bytes(Root(np.zeros((3, 2)), 0.0))
    48
    """
    if isinstance(posterior, Blocks):
        return sum(stored_bytes(part) for part in posterior.parts)
    if isinstance(posterior, Root):
        return posterior.W.nbytes
    if isinstance(posterior, LowRank):
        return posterior.U.nbytes + posterior.scale.nbytes + posterior.c.nbytes
    return posterior.variance.nbytes if isinstance(posterior, Diagonal) else 0


@final
class Complexity(Experiment):
    """A cell is a Hessian (or a sweep) at one size; ``set`` is the size."""

    name = "complexity"
    title = "Memory and time, measured beside the formula"

    def cells(self, options: Options) -> list[Cell]:
        """Around a base size, one of N, D, I and R is doubled and doubled again."""
        base = QUICK if options.quick else BASE
        sizes = [{**base, axis: f * base[axis]} for axis in base for f in FACTORS]
        names = dict.fromkeys(size_name(**size) for size in sizes)
        systems = options.systems or SYSTEMS
        return [Cell(self.name, name, 1, s, "default") for name in names for s in systems]

    def run(self, cell: Cell, data: str | None) -> Record:
        """Time and memory of one curvature, or of one sweep."""
        size = size_of(cell.set)
        rows, network = problem(**size, seed=cell.split)
        with rows:
            if cell.system == "map":
                gamma = tuple(np.ones_like(V) for V in network.cores)
                seconds, peak = measure(lambda: sweep(rows, network, 1.0, gamma), REPEAT_SECONDS)
                kept = sum(V.nbytes for V in network.cores)
            else:
                bend = Last(-1) if cell.system == "last" else CURVATURES[cell.system]
                seconds, peak = measure(lambda: _posterior(rows, network, bend), REPEAT_SECONDS)
                kept = stored_bytes(_posterior(rows, network, bend))
        return {"metrics": {"step_seconds": seconds, "peak_bytes": peak, "kept_bytes": kept}}

    def markdown(self, records: Sequence[Record]) -> str:
        """At the base size, then the exponents of time along each axis."""
        if not records:
            return "Nothing is finished yet."
        found = {(r["set"], r["system"]): r["metrics"] for r in records}
        sizes = list(dict.fromkeys(name for name, _ in found))
        base = sizes[0]
        systems = [s for s in SYSTEMS if (base, s) in found]
        rows = []
        for system in systems:
            m, (kept, peak, time) = found[base, system], FORMULAS[system]
            row = [system, f"O({kept})", _bytes(m["kept_bytes"]), f"O({peak})"]
            row += [_bytes(m["peak_bytes"]), f"O({time})", f"{1e3 * m['step_seconds']:.3g} ms"]
            rows.append(row)
        header = ["", "kept, paper", "measured", "peak, paper", "measured", "time, paper"]
        text = (
            f"At {base}: processor time; peak memory is what a step allocates beyond the features "
            "that rows keep between passes.\n\n" + markdown([*header, "measured"], rows)
        )
        rows = []
        for system in systems:
            row = [system]
            for axis, of in TIME_EXPONENTS[system].items():
                slope = _exponent(found, sizes, system, axis)
                row.append("–" if slope is None else f"{slope:.2f} ({of})")
            rows.append(row)
        return (
            text + "\n\nTime grows like a power of each size; the paper's power in brackets. The "
            "structured Gram of Last, Block and the sweep saves one power of I.\n\n"
            + markdown(["", "N", "D", "I", "R"], rows)
        )


def _posterior(rows: MemoryRows, network: CPD, curvature: Curvature) -> Posterior:
    cores = network.cores
    P = sum(cores[d].size for d in curvature.bayesian_cores(len(cores)))
    found = curvature.evaluate(rows, network, None)
    return found.posterior(1.0, np.ones(P), Truncation())


def _bytes(count: float) -> str:
    return f"{count / 1e3:,.1f} kB" if count < 1e6 else f"{count / 1e6:,.1f} MB"


def _exponent(
    found: dict[tuple[str, str], Any], sizes: Sequence[str], system: str, axis: str
) -> float | None:
    """Slope of log time over log size between the smallest and the largest along an axis."""
    base = size_of(sizes[0])
    along = [s for s in sizes if all(v == base[k] for k, v in size_of(s).items() if k != axis)]
    points = [
        (np.log(size_of(s)[axis]), np.log(found[s, system]["step_seconds"]))
        for s in along
        if (s, system) in found
    ]
    if len(points) < 2:
        return None
    x, y = np.array(points).T
    return float(np.polyfit(x, y, 1)[0])


EXPERIMENT = Complexity()
