"""Alternating least squares: the cores in turn, each a linear problem (eq. wk_update_specs).

Each core is solved in correction form, ``(A^T A + Γ/β) δ = A^T (y - f) - (Γ/β) v``. The right-hand
side is the gradient, so a sweep measures its own distance from stationarity, and repeated sweeps
refine away the rounding of the normal equations.
"""

from dataclasses import dataclass
from typing import final

import numpy as np

from tensorlace._types import Array
from tensorlace.linalg.symmetric import Solution, solve
from tensorlace.networks.cpd import Cores, additive_response, balance, predict
from tensorlace.networks.gram import expand
from tensorlace.rows.memory import Block, Rows, Statistic
from tensorlace.solvers.products import additive_gram
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


class Environments:
    """What surrounds one core after another: products of the factors to its left and right.

    Kept products take N·D·R numbers; if not kept they are recomputed in the same order, which gives
    the same bits.
    """

    def __init__(self, keep: bool) -> None:
        self._keep = keep
        self._left: dict[int, Array | None] = {}
        self._right: dict[int, list[Array | None]] = {}

    def around(self, block: Block, cores: Cores, d: int) -> tuple[Array | None, Array | None]:
        """Products (R, n) to the left and right of core d. In turn for d = 0, 1, ... if kept."""
        if self._keep and d > 0:
            left = self._left[block.index]
            self._left[block.index] = block.factor(d - 1, cores[d - 1], left)
            return self._left[block.index], self._right[block.index][d]
        left = None
        for k in range(d):
            left = block.factor(k, cores[k], left)
        right: list[Array | None] = [None]
        for k in range(len(cores) - 1, d, -1):
            right.append(block.factor(k, cores[k], right[-1]))
        if self._keep:
            self._left[block.index], self._right[block.index] = None, right[::-1]
        return left, right[-1]


def core_system(
    rows: Rows, cores: Cores, d: int, environments: Environments | None = None
) -> CoreSystem:
    """Sum the least-squares problem of core ``d`` over the rows with the structured Gram."""
    D, engine = len(rows.bases), rows.engine
    environments = environments or Environments(keep=False)
    additive = cores[D] if len(cores) > D else None
    if d == D:
        return _additive_system(rows, cores)

    def kernel(block: Block) -> Statistic:
        left, right = environments.around(block, cores[:D], d)
        y = block.y
        if additive is not None:
            y = y - additive_response(additive, block.features())
        return engine.core(left, right, cores[d], block.phi(d), block.psi(d), y, block.weight)

    light = engine.light(cores[d].shape[0], rows.bases[d].closure().shape[2])
    M, residual, rss = rows.reduce(kernel, light=light)
    gram = expand(M, rows.bases[d].closure(), cores[d].shape[0])
    return CoreSystem(gram, residual, float(rss))


def _additive_system(rows: Rows, cores: Cores) -> CoreSystem:
    """The same of the additive part, whose design matrix is the features of all columns."""

    def kernel(block: Block) -> Statistic:
        phi = block.features()
        residual = block.y - predict(cores, phi)
        weighted = block.weighted(residual)
        slope = np.concatenate([p @ weighted for p in phi])[None]
        return additive_gram(block, phi), slope, np.array(weighted @ residual)

    gram, slope, rss = rows.reduce(kernel)
    return CoreSystem(gram, slope, float(rss))


def core_step(system: CoreSystem, core: Array, ridge: Array) -> tuple[Solution, Array]:
    """Correction of a core (R, I) under the ridge Γ/β (R, I), and its slope (R·I,).

    The new core solves the first line of eq. (wk_update_specs).
    """
    slope = (system.residual - ridge * core).ravel()
    H = system.gram.copy()
    H.flat[:: len(H) + 1] += ridge.ravel()
    return solve(H, slope), slope


def sweep(rows: Rows, cores: Cores, beta: float, gamma: Cores) -> tuple[Cores, Info]:
    """One pass over all cores, then balancing. The objective never rises.

    Parameters
    ----------
    rows : Rows
    cores : D arrays (R, I_d)
    beta : float
        Noise precision.
    gamma : D arrays (R, I_d)
        Prior precision of each weight.

    Returns
    -------
    cores, info
        New cores; objective after the sweep and relative gradient met during it.
    """
    size = 8 * rows.n_rows * cores[0].shape[0] * len(cores)
    kept = Environments(keep=rows.keeps_blocks and size <= rows.memory_budget)
    gradient = scale = 0.0
    rcond, rss = 1.0, 0.0
    for d in range(len(cores)):
        system = core_system(rows, cores, d, kept)
        ridge = gamma[d] / beta
        solution, slope = core_step(system, cores[d], ridge)
        step = solution.x
        gradient += float(np.sum(slope**2))
        target = system.residual.ravel() + system.gram @ cores[d].ravel()  # A^T y
        scale += float(target @ target + np.sum((ridge * cores[d]) ** 2))
        rcond = min(rcond, solution.rcond)
        # the residual is quadratic in this core, so its new size needs no pass over the rows
        rss = system.rss - float(step @ (2.0 * system.residual.ravel() - system.gram @ step))
        cores = (*cores[:d], cores[d] + step.reshape(cores[d].shape), *cores[d + 1 :])
    cores = balance(cores, gamma, len(rows.bases))
    penalty = sum(float(np.sum(g * V * V)) for g, V in zip(gamma, cores, strict=True))
    info = Info(
        objective=0.5 * (beta * max(rss, 0.0) + penalty),
        gradient=float(np.sqrt(gradient / scale)) if scale > 0 else 0.0,
        rss=max(rss, 0.0),
        rcond=rcond,
    )
    return cores, info


@final
@dataclass(frozen=True)
class ALS(Solver):
    """Alternating least squares with balancing; a step is a sweep over all cores."""

    steps_per_round: int = 10

    def start(self, rows: Rows, cores: Cores) -> State:
        """Begin at the given cores."""
        return State(cores)

    def prepare(self, rows: Rows, state: State, gamma: Cores) -> State:
        """Nothing to prepare."""
        return state

    def step(self, rows: Rows, state: State, beta: float, gamma: Cores) -> tuple[State, Info]:
        """One sweep."""
        cores, info = sweep(rows, state.cores, beta, gamma)
        return State(cores), info
