"""One core update with the structured Gram against the dense way (form A, SYRK), one thread."""

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.record import best_of, save
from tensorlace.als import Environments, core_system
from tensorlace.bases import Chebyshev
from tensorlace.gram import block_rows
from tensorlace.networks import Cores, design, initialise
from tensorlace.rows import Block, Rows, Statistic

SEED = 0
SIZES = [(100_000, 8, 16), (100_000, 16, 20), (100_000, 32, 20)]
DENSE_BLOCK = 1024


def problem(N: int, D: int, I: int, R: int, block: int) -> tuple[Rows, Cores]:
    rng = np.random.default_rng(SEED)
    bases = [Chebyshev(I)] * D
    u, y = rng.uniform(-1, 1, (D, N)), rng.standard_normal(N)
    cores = initialise([b.constant() for b in bases], R, rng)
    return Rows(u, y, None, bases, block_rows=block, memory_budget=8 << 30), cores


def dense_system(rows: Rows, cores: Cores, d: int, environments: Environments) -> Statistic:
    """The textbook update: the design matrix of each block, then its Gram matrix by SYRK."""

    def kernel(block: Block) -> Statistic:
        Z, phi = environments.at(block, cores, d), block.phi(d)
        residual = block.y - np.einsum("rn,rn->n", Z, cores[d] @ phi)
        A = design(Z, phi)
        return A @ A.T, A @ residual  # NumPy calls SYRK for A @ A.T

    return rows.reduce(kernel)


def main() -> None:
    results = []
    print(f"{'N':>8s} {'I':>3s} {'R':>3s} {'structured':>11s} {'dense SYRK':>11s} {'ratio':>6s}")
    with threadpool_limits(1):
        for N, I, R in SIZES:
            rows, cores = problem(N, 2, I, R, block_rows(R))
            dense_rows, _ = problem(N, 2, I, R, DENSE_BLOCK)
            kept, dense_kept = Environments(keep=True), Environments(keep=True)
            G = core_system(rows, cores, 0, kept).gram
            H = dense_system(dense_rows, cores, 0, dense_kept)[0]
            error = float(np.abs(G - H).max() / np.abs(H).max())
            structured, dense = best_of(
                5,
                lambda rows=rows, cores=cores, kept=kept: core_system(rows, cores, 0, kept),
                lambda rows=dense_rows, cores=cores, kept=dense_kept: dense_system(
                    rows, cores, 0, kept
                ),
            )
            print(
                f"{N:8d} {I:3d} {R:3d} {structured / N * 1e6:8.3f} µs {dense / N * 1e6:8.3f} µs "
                f"{dense / structured:6.2f}"
            )
            results.append(
                {
                    "N": N,
                    "I": I,
                    "R": R,
                    "structured_us_per_row": round(structured / N * 1e6, 4),
                    "dense_us_per_row": round(dense / N * 1e6, 4),
                    "ratio": round(dense / structured, 3),
                    "relative_difference": error,
                }
            )
    growth = results[2]["structured_us_per_row"] / results[1]["structured_us_per_row"]
    print(f"structured, I = 16 → 32: × {growth:.2f}")
    save("gram", SEED, results, ("numpy", "scipy"))
