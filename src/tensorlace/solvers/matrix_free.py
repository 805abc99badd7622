"""Gauss-Newton without its matrix: conjugate gradients, one pass over the rows per product.

The model of the objective at the cores v is quadratic,

    q(δ) = ½ δᵀ(β AᵀA + Γ)δ - δᵀ(β Aᵀ(y - f) - Γ v),

and its products need neither A nor AᵀA (`linearisation.product`). The preconditioner M is the block
curvature: its D Gram matrices come from one pass and serve as long as they help.

Steps are kept inside a trust region in the norm of M instead of being damped as in `gauss_newton`:
a region that was too large needs no new products, for the shorter step lies on the path that
conjugate gradients took. Where the gradient is large a quadratic model of products of D factors
says little; there a sweep of alternating least squares does more in D passes, and is made instead.
The two help each other: sweeps are slow along the valleys that the other steps follow.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from tensorlace._types import Array
from tensorlace.networks.network import Cores, Network, to_vector
from tensorlace.rows.memory import Rows
from tensorlace.solvers.als import sweep
from tensorlace.solvers.products import Point, block_grams, point, product
from tensorlace.solvers.solver import Info, Solver, State
from tensorlace.solvers.trust_region import Metric, follow

__all__ = ["MatrixFree"]

_SWEEP_ABOVE = 1e-3
"""Relative gradient above which a step is a sweep: of 1e-2, 1e-3, 3e-4 and 1e-4 the best on most of
a few problems."""

_FIRST_RADIUS = 0.02
"""First radius of the trust region, in units of the norm of the weights."""

_NEWTON_BELOW = 1e-5
"""Relative gradient below which products have the residual part of the Hessian."""

_FORCING = 0.3
"""Largest relative residual at which conjugate gradients stop."""

_FORCING_END = 30.0
"""Relative residual at which they stop, in units of the square root of the relative gradient: it
takes over where the gradient is below 1e-4."""

_POOR_GAIN = 0.25
"""Share of the promised gain below which the radius is halved."""

_GOOD_GAIN = 0.75
"""Share of the promised gain above which the radius is doubled."""

_ROUNDING = 1e-13
"""Relative change of the objective that is rounding error."""

_TRIES = 25
"""Radii that a step tries, each a quarter of the last, before the solver counts as stalled."""


@final
@dataclass(frozen=True)
class _Memo:
    """Sums at the weights of a state and Gram matrices at its anchor."""

    point: Point
    grams: tuple[Array, ...] | None


@final
@dataclass(frozen=True)
class MatrixFree(Solver):
    """Inexact Gauss-Newton in a trust region; the radius is doubled or halved by what a step gains.

    Attributes
    ----------
    second_order : bool
        As in `GaussNewton`: the Hessian itself once the gradient is small.
    products : int
        Most products per step.
    patience : int
        Products of a step above which the preconditioner is summed anew.
    """

    steps_per_round: int = 3
    second_order: bool = True
    products: int = 60
    patience: int = 8

    def numbers(self, weights: Sequence[int], n_rows: int, block_rows: int) -> int:
        """The preconditioner, and the path of conjugate gradients."""
        return 3 * sum(n * n for n in weights) + 2 * sum(weights) * self.products

    def start(self, rows: Rows, network: Network) -> State:
        """Begin at the given weights with a small trust region."""
        return State(network, damping=_FIRST_RADIUS)

    def prepare(self, rows: Rows, state: State, gamma: Cores) -> State:
        """Nothing to prepare: curvatures are sums of their own."""
        return state

    def step(self, rows: Rows, state: State, beta: float, gamma: Cores) -> tuple[State, Info]:
        """One sweep or accepted step, or a stalled state when nothing lowers the objective."""
        memo = state.memo
        if not isinstance(memo, _Memo) or memo.point.network is not state.network:
            memo = _Memo(point(rows, state.network), None)
        at, g, v = memo.point, to_vector(gamma), state.network.vector
        slope = beta * at.slope - g * v
        scale = float(np.hypot(beta * np.linalg.norm(at.target), np.linalg.norm(g * v)))
        here = 0.5 * (beta * at.rss + float(g @ (v * v)))
        # an objective of zero is the minimum: a target of zeros has no other scale
        gradient = float(np.linalg.norm(slope)) / scale if scale > 0 and here > 0 else 0.0
        if gradient > _SWEEP_ABOVE and rows.likelihood.squared:
            network, info = sweep(rows, state.network, beta, gamma)
            return State(network, state.damping), replace(info, gradient=gradient)
        stalled = Info(here, gradient, at.rss, stalled=True)
        if gradient == 0.0:
            return state, stalled

        anchor = state.network if state.anchor is None else state.anchor
        grams = block_grams(rows, anchor) if memo.grams is None else memo.grams
        exact = self.second_order and gradient < _NEWTON_BELOW
        metric = Metric(grams, beta, g)
        size = metric.norm(v)
        path = follow(
            lambda p: beta * product(rows, at, p, exact=exact) + g * p,
            metric,
            slope,
            radius=state.damping * size,
            reduction=min(_FORCING, _FORCING_END * float(np.sqrt(gradient))),
            most=self.products,
        )
        x, promised, norm = path.end()
        for k in range(_TRIES):
            trial = point(rows, at.network.with_vector(v + x).balanced(gamma))
            t = trial.network.vector
            objective = 0.5 * (beta * trial.rss + float(g @ (t * t)))
            # near the optimum the gain drowns in the rounding of the objective: trust the model
            drowned = promised < _ROUNDING * here
            if objective < here or (drowned and objective <= here * (1.0 + _ROUNDING)):
                gain = 1.0 if drowned else (here - objective) / promised
                radius = norm / size if k or not path.inside else state.damping
                if gain < _POOR_GAIN:
                    radius = 0.5 * norm / size
                elif gain > _GOOD_GAIN and not (k or path.inside):
                    radius *= 2.0
                stale = len(path.legs) > self.patience
                after = State(
                    trial.network,
                    radius,
                    anchor=None if stale else anchor,
                    memo=_Memo(trial, None if stale else grams),
                )
                return after, Info(objective, gradient, trial.rss)
            x, promised, norm = path.within(0.25 * norm)
        return replace(state, damping=_FIRST_RADIUS), stalled
