"""The structured Gram against the dense way (form A, SYRK), one thread."""

from collections.abc import Sequence
from functools import partial
from typing import final

import numpy as np
from threadpoolctl import threadpool_limits

from tensorlace._types import Array
from tensorlace.columns.bases import Chebyshev
from tensorlace.networks.cpd import CPD
from tensorlace.networks.gram import block_rows, expand, moments
from tensorlace.networks.native.engine import CompiledEngine
from tensorlace.networks.network import Surroundings, design
from tensorlace.rows.memory import Block, MemoryRows, Rows, Statistic
from tensorlace.solvers.als import core_system
from tensorlace_lab.measuring.cells import Cell, Record, size_name, size_of
from tensorlace_lab.measuring.processes import best_of
from tensorlace_lab.measuring.runner import Experiment, Options
from tensorlace_lab.writing.markdown import goal_text, markdown, times_text

__all__ = ["EXPERIMENT", "StructuredGram"]

SEED = 0
SIZES = [(100_000, 8, 16), (100_000, 16, 20), (100_000, 32, 20), (100_000, 40, 20)]
"""N, I and R."""

DENSE_BLOCK = 1024


def problem(N: int, D: int, I: int, R: int, block: int) -> tuple[MemoryRows, CPD]:
    rng = np.random.default_rng(SEED)
    bases = [Chebyshev(I)] * D
    u, y = rng.uniform(-1, 1, (D, N)), rng.standard_normal(N)
    network = CPD.initialise([b.constant() for b in bases], R, rng)
    return MemoryRows(u, y, None, bases, block_rows=block, memory_budget=8 << 30), network


def environment(surroundings: Surroundings, block: Block, network: CPD) -> Array:
    """Environment of the first core: all that is to its right."""
    Z = surroundings.around(block, 0, network.cores)[1]
    assert Z is not None
    return Z


def structured_gram(rows: Rows, Z: list[Array], rank: int) -> Array:
    """Products, matrix product and expansion, as the library does it."""
    (M,) = rows.reduce(lambda block: (moments(block.psi(0), Z[block.index]),))
    return expand(M, rows.bases[0].closure(), rank)


def compiled_gram(rows: MemoryRows, Z: list[Array], rank: int) -> Array:
    """The same by the compiled engine."""
    engine = CompiledEngine()
    (M,) = rows.reduce(lambda block: (engine.moments(block.psi(0), Z[block.index]),))
    return expand(M, rows.bases[0].closure(), rank)


def matrix_rate() -> float:
    """Multiplications and additions per second of NumPy's DGEMM on a large square product."""
    A = np.random.default_rng(SEED).standard_normal((2000, 2000))
    (seconds,) = best_of(5, lambda: A @ A)
    return float(2 * 2000**3 / seconds)


def dense_gram(rows: Rows, Z: list[Array]) -> Array:
    """The textbook way: the design matrix of each block, then SYRK (NumPy's choice for A @ A.T)."""

    def kernel(block: Block) -> Statistic:
        A = design(Z[block.index], block.phi(0))
        return (A @ A.T,)

    return rows.reduce(kernel)[0]


def dense_update(rows: Rows, network: CPD, surroundings: Surroundings) -> Statistic:
    """All of a core's least-squares problem, with the dense Gram matrix."""

    def kernel(block: Block) -> Statistic:
        Z, phi = environment(surroundings, block, network), block.phi(0)
        residual = block.y - np.einsum("rn,rn->n", Z, network.cores[0] @ phi)
        A = design(Z, phi)
        return A @ A.T, A @ residual

    return rows.reduce(kernel)


def measure(N: int, I: int, R: int) -> dict[str, float]:
    """Seconds of all ways to sum a Gram matrix, taking turns, and the rate of DGEMM."""
    rows, network = problem(N, 2, I, R, block_rows(R))
    dense_rows, _ = problem(N, 2, I, R, DENSE_BLOCK)
    kept, dense_kept = network.surroundings(keep=True), network.surroundings(keep=True)
    Z = [environment(kept, block, network) for block in rows.blocks]
    dense_Z = [environment(dense_kept, block, network) for block in dense_rows.blocks]
    G, H = structured_gram(rows, Z, R), dense_gram(dense_rows, dense_Z)
    compiled_rows, _ = problem(N, 2, I, R, CompiledEngine().block_rows(R))
    fresh = network.surroundings(keep=False)
    right = [environment(fresh, block, network) for block in compiled_rows.blocks]
    seconds = best_of(
        15,
        partial(structured_gram, rows, Z, R),
        partial(compiled_gram, compiled_rows, right, R),
        partial(dense_gram, dense_rows, dense_Z),
        partial(core_system, rows, network, 0, kept),
        partial(dense_update, dense_rows, network, dense_kept),
    )
    gram, compiled, syrk, update, dense = (s / N * 1e6 for s in seconds)
    rate = matrix_rate()
    work = R * (R + 1) * (2 * I - 1) * 1e6  # of the moments alone, per row
    return {
        "gram_us_per_row": gram,
        "compiled_us_per_row": compiled,
        "dgemm_gflops": rate / 1e9,
        "share_of_dgemm": work / gram / rate,
        "compiled_share_of_dgemm": work / compiled / rate,
        "syrk_us_per_row": syrk,
        "gram_ratio": syrk / gram,
        "update_us_per_row": update,
        "dense_update_us_per_row": dense,
        "update_ratio": dense / update,
        "relative_difference": float(np.abs(G - H).max() / np.abs(H).max()),
    }


@final
class StructuredGram(Experiment):
    """A cell is a size, at which all ways take turns."""

    name = "gram"
    title = "The structured Gram matrix"
    packages = ("numpy", "scipy")
    jobs, local = 0, True

    def cells(self, options: Options) -> list[Cell]:
        """Sizes from small to large."""
        sizes = [(2_000, 8, 4)] if options.quick else SIZES
        return [Cell(self.name, size_name(N=N, I=I, R=R), SEED, "all") for N, I, R in sizes]

    def run(self, cell: Cell, data: str | None) -> Record:
        """Measure with one thread of BLAS."""
        with threadpool_limits(1):
            return {"metrics": measure(**size_of(cell.set))}

    def markdown(self, records: Sequence[Record]) -> str:
        """Microseconds per row, ratios, shares of DGEMM's rate."""
        found = [(size_of(r["set"]), r["metrics"]) for r in records]
        rows = [
            [
                f"{size['N']:,}, {size['I']}, {size['R']}",
                f"{m['gram_us_per_row']:.3g} µs",
                f"{m['syrk_us_per_row']:.3g} µs",
                times_text(m["gram_ratio"]),
                times_text(m["update_ratio"]),
                f"{m['share_of_dgemm']:.0%}",
                f"{m['compiled_us_per_row']:.3g} µs",
                f"{m['compiled_share_of_dgemm']:.0%}",
            ]
            for size, m in found
        ]
        header = ["N, I, R", "structured, per row", "dense SYRK, per row", "Gram", "whole update"]
        header += ["share of DGEMM", "compiled, per row", "share of DGEMM"]
        large = [
            m["compiled_share_of_dgemm"] for size, m in found if size["I"] >= 16 and size["R"] >= 20
        ]
        text = (
            "The Gram matrix of one core from products of basis functions, against forming the "
            "design matrix and multiplying; one thread. The share is of the rate at which NumPy "
            "multiplies two matrices of 2000 × 2000 in the same run; pair products, matrix product "
            "and expansion are timed, the operations of the matrix product counted.\n\n"
            + markdown(header, rows)
        )
        goal = "half of DGEMM's rate for I ≥ 16, R ≥ 20"
        return f"{text}\n\n{goal_text(min(large) >= 0.5, goal)}" if large else text


EXPERIMENT = StructuredGram()
