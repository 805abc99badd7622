"""One ALS sweep against PyPI's tnkm (JAX, float64, compiled) and a plain dense NumPy ALS."""

import os
from time import perf_counter
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.record import best_of, save
from tensorlace.als import sweep
from tensorlace.bases import Array, UnitPolynomial
from tensorlace.gram import block_rows
from tensorlace.linearisation import residual_squares
from tensorlace.networks import Cores, balance, initialise
from tensorlace.rows import MemoryRows

SEED, BETA, GAMMA = 0, 1.0, 1e-2
SIZES = [
    (300, 6, 8, 8),
    (8_000, 8, 4, 8),
    (40_000, 9, 8, 16),
    (100_000, 8, 16, 20),
    (100_000, 8, 40, 20),
]


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


def objective(rows: MemoryRows, cores: Cores) -> float:
    penalty = sum(float(np.sum(V * V)) for V in cores)
    return 0.5 * (BETA * residual_squares(rows, cores) + GAMMA * penalty)


def measure(N: int, D: int, I: int, R: int) -> dict[str, Any]:
    rng = np.random.default_rng(SEED)
    bases = [UnitPolynomial(I)] * D
    x = rng.uniform(-1.5, 1.5, (D, N))
    y = np.sin(2 * x[0]) * x[1] + x[2] ** 2 + 0.1 * rng.standard_normal(N)
    y = (y - y.mean()) / y.std()
    cores = initialise([b.constant() for b in bases], R, rng)
    gamma = tuple(np.full(V.shape, GAMMA) for V in cores)
    rows = MemoryRows(x, y, None, bases, block_rows=block_rows(R), threads=2, memory_budget=8 << 30)
    repeats = 9 if N * D * I * I * R * R < 1e11 else 3
    peer = Peer(x, y, I, cores)
    start = perf_counter()
    peer.sweep()
    compile_and_sweep = perf_counter() - start
    with rows:
        ours, _ = sweep(rows, cores, BETA, gamma)
        theirs = balance(peer.cores(), gamma)
        difference = abs(objective(rows, ours) / objective(rows, theirs) - 1.0)
        (mine,) = best_of(repeats, lambda: sweep(rows, cores, BETA, gamma))
    phi = [b.phi(u) for b, u in zip(bases, x, strict=True)]
    (dense,) = best_of(max(1, repeats // 3), lambda: dense_sweep(phi, y, cores))
    (peers,) = best_of(repeats, peer.sweep)
    return {
        "N": N,
        "D": D,
        "I": I,
        "R": R,
        "tensorlace_s": mine,
        "tnkm_s": peers,
        "tnkm_first_s": compile_and_sweep,
        "dense_numpy_s": dense,
        "ratio_tnkm": peers / mine,
        "ratio_dense": dense / mine,
        "objective_difference": difference,
    }


def main() -> None:
    results = []
    print(
        f"{'N':>7s} {'D':>2s} {'I':>3s} {'R':>3s}{'ours':>11s}{'tnkm':>11s}{'ratio':>7s}"
        f"{'dense':>11s}{'ratio':>7s}  same objective to"
    )
    for size in SIZES:
        with threadpool_limits(2):
            row = measure(*size)
        print(
            f"{row['N']:7d} {row['D']:2d} {row['I']:3d} {row['R']:3d}"
            f"{row['tensorlace_s'] * 1e3:8.2f} ms{row['tnkm_s'] * 1e3:8.2f} ms"
            f"{row['ratio_tnkm']:7.2f}{row['dense_numpy_s'] * 1e3:8.2f} ms"
            f"{row['ratio_dense']:7.2f}  {row['objective_difference']:.0e}",
            flush=True,
        )
        results.append(
            {k: float(f"{v:.4g}") if isinstance(v, float) else v for k, v in row.items()}
        )
    save("sweep", SEED, results, ("numpy", "scipy", "tnkm", "jax"))
