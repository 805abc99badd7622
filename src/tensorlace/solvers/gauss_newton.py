"""Damped Gauss-Newton on all cores at once.

    (β AᵀA + (1 + μ)Γ) δ = β Aᵀ(y - f) - Γ v,

solved in P dimensions when P ≤ N and in N dimensions (Woodbury) otherwise. Damping in units of the
prior knows the scale of each weight, which μI does not. With the second derivative f'' of the
responses along δ the same matrix gives the turn of the step, -½ (…)⁻¹ β Aᵀf''.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from tensorlace._types import Array
from tensorlace.linalg.symmetric import Solution, solver
from tensorlace.networks.network import Cores, Network, to_vector
from tensorlace.rows.memory import Rows
from tensorlace.solvers.linearisation import (
    Linearisation,
    bend,
    linearise,
    loss,
    residual_curvature,
)
from tensorlace.solvers.solver import Info, Solver, State

__all__ = ["GaussNewton"]

_TRIES = 25
"""Dampings that a step tries, each four times the last, before the solver counts as stalled."""

_NEWTON_BELOW = 1e-5
"""Relative gradient below which the residual part of the Hessian is added."""

_SMALLEST_DAMPING = 1e-12
"""Least damping: below it a step is a Gauss-Newton step to the last digit."""

_ROUNDING = 1e-13
"""Relative change of the objective that is rounding error."""

_POOR_GAIN = 0.25
"""Share of the gain promised by the model below which the damping rises."""

_LARGEST_TURN = 0.375
"""Length of the turn of a step, in units of its straight part, above which the curve is not
followed and the damping rises instead."""


def _directions(
    linear: Linearisation, E: Array | None, beta: float, ridge: Array
) -> Callable[[Array], Solution]:
    """Function that solves ``(β (AᵀA + E) + diag(ridge)) δ = slope``."""
    if linear.gram is not None or E is not None:
        H = beta * (linear.dense_gram() if E is None else linear.dense_gram() + E)
        H[np.diag_indices_from(H)] += ridge
        return solver(H)
    assert linear.rows is not None
    scaled = linear.rows / ridge[:, None]
    K = linear.rows.T @ scaled
    K[np.diag_indices_from(K)] += 1.0 / beta
    inside = solver(K)

    def direction(slope: Array) -> Solution:
        inner = inside(scaled.T @ slope)
        return Solution(slope / ridge - scaled @ inner.x, inner.rcond)

    return direction


@final
class _Dual:
    """More weights than rows and damping in units of the prior: one product serves all dampings.

    With ``ridge = (1 + μ) Γ`` the system of N equations is ``J Γ⁻¹ Jᵀ / (1 + μ) + I / β``.
    """

    def __init__(self, J: Array, g: Array) -> None:
        self._root = 1.0 / np.sqrt(g)
        self._J = J * self._root[:, None]  # (P, N)
        self._K = self._J.T @ self._J

    def directions(self, beta: float, damping: float) -> Callable[[Array], Solution]:
        share = 1.0 / (1.0 + damping)
        K = self._K * share
        K[np.diag_indices_from(K)] += 1.0 / beta
        inside = solver(K)

        def direction(slope: Array) -> Solution:
            b = share * (self._root * slope)
            inner = inside(self._J.T @ b)
            return Solution(self._root * (b - share * (self._J @ inner.x)), inner.rcond)

        return direction


def _damping_unit(linear: Linearisation, beta: float, g: Array) -> Array:
    """Scale of each weight: its prior precision or, under a flat prior, what the rows say of it."""
    if np.all(g > 0):
        return g
    J = linear.rows
    squares = np.diagonal(linear.dense_gram()) if J is None else np.einsum("pn,pn->p", J, J)
    return np.where(g > 0, g, np.where(squares > 0, 1e-3 * beta * squares, 1.0))


@final
@dataclass(frozen=True)
class GaussNewton(Solver):
    """Levenberg-Marquardt: damping divided by 3 after a good step, times 4 after a poor or bad one.

    Attributes
    ----------
    second_order : bool
        Once the gradient is small, add the residual part of the Hessian where the sum is positive
        definite (Newton's method): directions the rows hardly determine are ruled by it, and
        without it the last digits come slowly. Further away it only delays.
    bends : bool
        Follow the curve that the step begins, not its tangent (geodesic acceleration, Transtrum &
        Sethna 2012), at the price of one pass over the rows: products of many columns have valleys
        that are narrow and bent, where straight steps have to be short.
    """

    steps_per_round: int = 1
    second_order: bool = True
    bends: bool = False

    def numbers(self, weights: Sequence[int], n_rows: int, block_rows: int) -> int:
        """The system, primal or dual, twice, and a block of the Jacobian."""
        P = sum(weights)
        return 2 * P * min(P, n_rows) + P * min(n_rows, block_rows)

    def start(self, rows: Rows, network: Network) -> State:
        """Begin at the given weights, damped as strongly as a unit prior."""
        return State(network, damping=1.0)

    def prepare(self, rows: Rows, state: State, gamma: Cores) -> State:
        """Balance the cores and linearise there; precision updates share the result."""
        network = state.network.balanced(gamma)
        return State(network, state.damping, linearise(rows, network))

    def step(self, rows: Rows, state: State, beta: float, gamma: Cores) -> tuple[State, Info]:
        """One accepted step, or a stalled state when no damping lowers the objective."""
        state = state if state.linear is not None else self.prepare(rows, state, gamma)
        linear = state.linear
        assert linear is not None
        network, g = state.network, to_vector(gamma)
        v = network.vector
        slope = beta * linear.slope - g * v
        scale = float(np.hypot(beta * np.linalg.norm(linear.target), np.linalg.norm(g * v)))
        here = 0.5 * (beta * linear.rss + float(g @ (v * v)))
        # an objective of zero is the minimum: a target of zeros has no other scale
        gradient = float(np.linalg.norm(slope)) / scale if scale > 0 and here > 0 else 0.0
        E = (
            residual_curvature(rows, network)
            if self.second_order and gradient < _NEWTON_BELOW
            else None
        )
        damping, rcond = max(state.damping, _SMALLEST_DAMPING), 1.0
        unit = _damping_unit(linear, beta, g)
        dual = None
        if linear.rows is not None and E is None and np.all(g > 0):
            dual = _Dual(linear.rows, g)
        for _ in range(_TRIES):
            if dual is not None:
                ahead = dual.directions(beta, damping)
            else:
                ahead = _directions(linear, E, beta, g + damping * unit)
            solution = ahead(slope)
            if E is not None and solution.rcond == 0.0:  # not positive definite after all
                E = None
                continue
            rcond = min(rcond, solution.rcond)
            x = solution.x
            if self.bends and E is None:
                turn = ahead(-0.5 * beta * bend(rows, network, x)).x
                if float(unit @ (turn * turn)) > _LARGEST_TURN**2 * float(unit @ (x * x)):
                    damping *= 4.0
                    continue
                x = x + turn
            trial = network.with_vector(v + x).balanced(gamma)
            rss = loss(rows, trial)
            t = trial.vector
            objective = 0.5 * (beta * rss + float(g @ (t * t)))
            # near the optimum the gain drowns in the rounding of the objective: trust the model
            drowned = float(solution.x @ slope) < _ROUNDING * here
            if objective < here or (drowned and objective <= here * (1.0 + _ROUNDING)):
                # a step that overshoots gains a little too, and would zigzag for ever undamped
                promised = 0.5 * float(solution.x @ (slope + damping * unit * solution.x))
                poor = not drowned and here - objective < _POOR_GAIN * promised
                damping *= 4.0 if poor else 1.0 / 3.0
                return State(trial, damping), Info(objective, gradient, rss, rcond)
            damping *= 4.0
        return replace(state, damping=1.0), Info(here, gradient, linear.rss, rcond, stalled=True)
