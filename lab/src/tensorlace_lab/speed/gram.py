"""The structured Gram against the dense way (form A, SYRK), one thread."""

from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

from tensorlace._types import Array
from tensorlace.columns.bases import Chebyshev
from tensorlace.networks.cpd import Cores, design, initialise
from tensorlace.networks.gram import block_rows, expand, moments
from tensorlace.networks.native.engine import CompiledEngine
from tensorlace.rows.memory import Block, MemoryRows, Rows, Statistic
from tensorlace.solvers.als import Environments, core_system
from tensorlace_lab.measuring.bench_record import best_of, save

SEED = 0
SIZES = [(100_000, 8, 16), (100_000, 16, 20), (100_000, 32, 20), (100_000, 40, 20)]
DENSE_BLOCK = 1024


def problem(N: int, D: int, I: int, R: int, block: int) -> tuple[MemoryRows, Cores]:
    rng = np.random.default_rng(SEED)
    bases = [Chebyshev(I)] * D
    u, y = rng.uniform(-1, 1, (D, N)), rng.standard_normal(N)
    cores = initialise([b.constant() for b in bases], R, rng)
    return MemoryRows(u, y, None, bases, block_rows=block, memory_budget=8 << 30), cores


def environment(environments: Environments, block: Block, cores: Cores) -> Array:
    """Environment of the first core: all that is to its right."""
    Z = environments.around(block, cores, 0)[1]
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


def dense_update(rows: Rows, cores: Cores, environments: Environments) -> Statistic:
    """All of a core's least-squares problem, with the dense Gram matrix."""

    def kernel(block: Block) -> Statistic:
        Z, phi = environment(environments, block, cores), block.phi(0)
        residual = block.y - np.einsum("rn,rn->n", Z, cores[0] @ phi)
        A = design(Z, phi)
        return A @ A.T, A @ residual

    return rows.reduce(kernel)


def main() -> None:
    results: list[dict[str, float]] = []
    header = ("structured", "dense SYRK", "ratio", "update", "dense", "ratio")
    print(f"{'N':>8s} {'I':>3s} {'R':>3s}" + "".join(f"{h:>12s}" for h in header))
    with threadpool_limits(1):
        for N, I, R in SIZES:
            rows, cores = problem(N, 2, I, R, block_rows(R))
            dense_rows, _ = problem(N, 2, I, R, DENSE_BLOCK)
            kept, dense_kept = Environments(keep=True), Environments(keep=True)
            Z = [environment(kept, block, cores) for block in rows.blocks]
            dense_Z = [environment(dense_kept, block, cores) for block in dense_rows.blocks]
            G, H = structured_gram(rows, Z, R), dense_gram(dense_rows, dense_Z)
            compiled_rows, _ = problem(N, 2, I, R, CompiledEngine().block_rows(R))
            right = [environment(Environments(keep=False), b, cores) for b in compiled_rows.blocks]
            seconds = best_of(
                15,
                partial(structured_gram, rows, Z, R),
                partial(compiled_gram, compiled_rows, right, R),
                partial(dense_gram, dense_rows, dense_Z),
                partial(core_system, rows, cores, 0, kept),
                partial(dense_update, dense_rows, cores, dense_kept),
            )
            gram, compiled, syrk, update, dense = (s / N * 1e6 for s in seconds)
            rate = matrix_rate()
            work = R * (R + 1) * (2 * I - 1) * 1e6  # of the moments alone, per row
            shares = work / gram / rate, work / compiled / rate
            print(
                f"{N:8d} {I:3d} {R:3d}{gram:9.3f} µs{syrk:9.3f} µs{syrk / gram:12.2f}"
                f"{update:9.3f} µs{dense:9.3f} µs{dense / update:12.2f}"
                f"  DGEMM {rate / 1e9:.0f} GFlop/s: {shares[0]:.0%}, compiled {shares[1]:.0%}"
            )
            results.append(
                {
                    "N": N,
                    "I": I,
                    "R": R,
                    "gram_us_per_row": round(gram, 4),
                    "compiled_us_per_row": round(compiled, 4),
                    "dgemm_gflops": round(rate / 1e9, 1),
                    "share_of_dgemm": round(shares[0], 3),
                    "compiled_share_of_dgemm": round(shares[1], 3),
                    "syrk_us_per_row": round(syrk, 4),
                    "gram_ratio": round(syrk / gram, 3),
                    "update_us_per_row": round(update, 4),
                    "dense_update_us_per_row": round(dense, 4),
                    "update_ratio": round(dense / update, 3),
                    "relative_difference": float(np.abs(G - H).max() / np.abs(H).max()),
                }
            )
    growth = results[2]["gram_us_per_row"] / results[1]["gram_us_per_row"]
    print(f"structured Gram, I = 16 → 32: × {growth:.2f}")
    save("gram", SEED, results, ("numpy", "scipy"))
