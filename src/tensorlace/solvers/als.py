"""Alternating least squares: the cores in turn, each a linear problem (eq. wk_update_specs).

Each core is solved in correction form, ``(A^T A + Γ/β) δ = A^T (y - f) - (Γ/β) v``. The right-hand
side is the gradient, so a sweep measures its own distance from stationarity, and repeated sweeps
refine away the rounding of the normal equations.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from tensorlace._types import Array
from tensorlace.linalg.symmetric import Solution, solve
from tensorlace.networks.network import Cores, Network, Surroundings
from tensorlace.rows.memory import Block, Rows, Statistic
from tensorlace.solvers.linearisation import loss
from tensorlace.solvers.solver import Info, Solver, State

__all__ = ["ALS", "CoreSystem", "core_step", "core_system", "sweep"]


@final
@dataclass(frozen=True)
class CoreSystem:
    """The least-squares problem of one core with the others held.

    Attributes
    ----------
    gram : (R·I, R·I) array
        ``A^T A``.
    residual : (R, I) array
        ``A^T (y - f)`` at the present core.
    rss : float
        Weighted residual sum of squares at the present core.
    """

    gram: Array
    residual: Array
    rss: float


def core_system(
    rows: Rows, network: Network, d: int, around: Surroundings | None = None
) -> CoreSystem:
    """Sum the least-squares problem of core ``d`` over the rows with the structured Gram."""
    products = around or network.surroundings(keep=False)

    def kernel(block: Block) -> Statistic:
        return network.core_sums(block, d, products)

    light = network.light(d, rows.engine, rows.bases)
    M, residual, rss = rows.at(network).reduce(kernel, light=light)
    if not rows.likelihood.squared:
        rss = np.array(loss(rows, network))
    return CoreSystem(network.gram(d, M, rows.bases), residual, float(rss))


def core_step(system: CoreSystem, core: Array, ridge: Array) -> tuple[Solution, Array]:
    """Correction of a core (R, I) under the ridge Γ/β (R, I), and its slope (R·I,).

    The new core solves the first line of eq. (wk_update_specs).
    """
    slope = (system.residual - ridge * core).ravel()
    H = system.gram.copy()
    H.flat[:: len(H) + 1] += ridge.ravel()
    return solve(H, slope), slope


def sweep(rows: Rows, network: Network, beta: float, gamma: Cores) -> tuple[Network, Info]:
    """One pass over all cores, then balancing. The objective never rises.

    Parameters
    ----------
    rows : Rows
    network : Network
    beta : float
        Noise precision.
    gamma : tuple of (K_d, I_d) arrays
        Prior precision of each weight.

    Returns
    -------
    network, info
        With new cores; objective after the sweep and relative gradient met during it.
    """
    size = 8 * rows.n_rows * network.kept_per_row
    around = network.surroundings(keep=rows.keeps_blocks and size <= rows.memory_budget)
    gradient = scale = 0.0
    rcond, rss = 1.0, 0.0
    for d, core in enumerate(network.cores):
        system = core_system(rows, network, d, around)
        ridge = gamma[d] / beta
        solution, slope = core_step(system, core, ridge)
        step = solution.x
        gradient += float(np.sum(slope**2))
        target = system.residual.ravel() + system.gram @ core.ravel()  # A^T y
        scale += float(target @ target + np.sum((ridge * core) ** 2))
        rcond = min(rcond, solution.rcond)
        # the residual is quadratic in this core, so its new size needs no pass over the rows
        rss = system.rss - float(step @ (2.0 * system.residual.ravel() - system.gram @ step))
        network = network.with_core(d, core + step.reshape(core.shape))
    network = network.balanced(gamma)
    penalty = sum(float(np.sum(g * V * V)) for g, V in zip(gamma, network.cores, strict=True))
    info = Info(
        objective=0.5 * (beta * max(rss, 0.0) + penalty),
        gradient=float(np.sqrt(gradient / scale)) if scale > 0 else 0.0,
        rss=max(rss, 0.0),
        rcond=rcond,
    )
    return network, info


@final
@dataclass(frozen=True)
class ALS(Solver):
    """Alternating least squares with balancing; a step is a sweep over all cores."""

    steps_per_round: int = 10
    least_squares: ClassVar[bool] = True

    def numbers(self, weights: Sequence[int], n_rows: int, block_rows: int) -> int:
        """None beside the Gram matrix of a core."""
        return 0

    def start(self, rows: Rows, network: Network) -> State:
        """Begin at the given weights."""
        return State(network)

    def prepare(self, rows: Rows, state: State, gamma: Cores) -> State:
        """Nothing to prepare."""
        return state

    def step(self, rows: Rows, state: State, beta: float, gamma: Cores) -> tuple[State, Info]:
        """One sweep."""
        network, info = sweep(rows, state.network, beta, gamma)
        return State(network), info
