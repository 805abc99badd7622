"""A fit under way: MAP steps and precision updates in turn."""

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
import numpy.typing as npt

from tensorlace._types import Array
from tensorlace.fitting.config import Config
from tensorlace.laplace.curvature import BlockDiagonal, Curvature, Evaluated
from tensorlace.laplace.evidence import log_evidence
from tensorlace.laplace.factorisation import Truncation
from tensorlace.laplace.posterior import Posterior
from tensorlace.laplace.precision import Moments
from tensorlace.laplace.prior_groups import LARGEST_PRIOR, SMALLEST_PRIOR
from tensorlace.networks.network import Cores, Network, from_vector, to_vector
from tensorlace.rows.memory import Block, Rows, Statistic
from tensorlace.solvers.solver import Info, State

__all__ = ["Run", "Start", "weights_of"]

Indices = npt.NDArray[np.intp]

FIRST_NOISE_PRECISION = 10.0
"""Noise precision that a fit begins with, for a target of unit variance."""

FIRST_PRIOR_PRECISION = 1.0
"""Prior precision that a fit begins with."""

WARM_UP_STEPS = 10
"""Solver steps before the first update of precisions."""

LEARNING_SHARE = 0.7
"""Part of the steps in which precisions may still change; the rest is for the MAP to settle."""


@final
@dataclass(frozen=True)
class Start:
    """Where a fit begins.

    Attributes
    ----------
    network : Network
    beta : float or None
        Noise precision found on part of the rows.
    gamma : tuple of (K_d, I_d) arrays or None
        Prior precisions found there.
    """

    network: Network
    beta: float | None = None
    gamma: Cores | None = None


@final
class Run:
    """The moving parts of one fit."""

    def __init__(self, rows: Rows, settings: Config, start: Start) -> None:
        if settings.solver is None:
            raise ValueError("the solver is still to be chosen: see Config.for_table")
        self.rows, self.settings, self.solver = rows, settings, settings.solver
        self.groups = settings.groups(start.network)
        self.state = self.solver.start(rows, start.network)
        # t̂ is for the posterior at the end: directions it calls certain are those that the rows
        # determine least, and here would count as determined. The full Hessian cannot do without:
        # its smallest positive eigenvalues are accidents
        self.truncation = Truncation() if settings.curvature.convex else settings.truncation
        self.learning = settings.noise.learns or settings.prior.learns
        self.learning_budget = max(1, int(LEARNING_SHARE * settings.max_steps))
        self.steps_until_update = min(WARM_UP_STEPS, self.learning_budget // 2)
        self.beta = settings.noise.start(FIRST_NOISE_PRECISION)
        n_groups = len(self.groups.count)
        self.group_gamma = np.full(n_groups, settings.prior.start(FIRST_PRIOR_PRECISION))
        if start.beta is not None and start.gamma is not None:
            self.beta = settings.noise.start(start.beta)
            if settings.prior.learns:
                self.group_gamma = self.groups.common(to_vector(start.gamma))
            self.steps_until_update = min(self.solver.steps_per_round, self.steps_until_update)
        self.info = Info(objective=math.inf, gradient=math.inf, rss=math.inf)
        self.n_steps = 0
        self.converging = False
        self.history: list[float] = []

    @cached_property
    def log_normaliser(self) -> float:
        """``Σ_n w_n log p`` at the best responses, less that of a Gaussian of unit precision."""
        likelihood = self.rows.likelihood
        if likelihood.squared:
            return 0.0

        def kernel(block: Block) -> Statistic:
            return (np.array(block.weighted(likelihood.log_saturated(block.y)).sum()),)

        (total,) = self.rows.reduce(kernel)
        return float(total) + 0.5 * self.rows.total_weight * math.log(2.0 * math.pi)

    @property
    def gamma(self) -> Cores:
        """Prior precisions in the shape of the cores."""
        return from_vector(self.group_gamma[self.groups.index], self.state.network.cores)

    def advance(self) -> bool:
        """One more step of the solver, after a precision update if one is due; False at the end."""
        if self.learning and self.n_steps >= self.learning_budget:
            self.learning = False
        if self.learning and self.steps_until_update == 0:
            self.state = self.solver.prepare(self.rows, self.state, self.gamma)
            self.learning = self.update_precisions() >= self.settings.precision_tol
            self.steps_until_update = self.solver.steps_per_round
        arrived = self.info.gradient <= self.settings.tol or self.info.stalled
        if not self.learning and self.converging and arrived:
            return False
        if self.n_steps >= max(self.settings.max_steps, 1):
            return False
        self.converging = not self.learning
        self.state, self.info = self.solver.step(self.rows, self.state, self.beta, self.gamma)
        self.n_steps += 1
        self.steps_until_update -= 1
        self.history.append(self.info.objective)
        return True

    def snapshot(self) -> dict[str, Any]:
        """Everything that the next step depends on, as arrays."""
        cores = {f"core{d}": V for d, V in enumerate(self.state.network.cores)}
        kept = () if self.state.anchor is None else self.state.anchor.cores
        anchor = {f"anchor{d}": V for d, V in enumerate(kept)}
        counters = [self.n_steps, self.steps_until_update, self.learning, self.converging]
        return {
            **cores,
            **anchor,
            "counters": np.array(counters, dtype=np.int64),
            "numbers": np.array([self.state.damping, self.beta]),
            "info": np.array(astuple(self.info), dtype=np.float64),
            "group_gamma": self.group_gamma,
            "history": np.array(self.history),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go back to a snapshot."""
        network, D = self.state.network, len(self.state.network.cores)
        anchor = None
        if "anchor0" in saved:
            anchor = network.with_cores(tuple(saved[f"anchor{d}"] for d in range(D)))
        network = network.with_cores(tuple(saved[f"core{d}"] for d in range(D)))
        n_steps, until, learning, converging = (int(k) for k in saved["counters"])
        self.n_steps, self.steps_until_update = n_steps, until
        self.learning, self.converging = bool(learning), bool(converging)
        damping, self.beta = (float(x) for x in saved["numbers"])
        self.state = State(network, damping, anchor=anchor)
        objective, gradient, rss, rcond, stalled = (float(x) for x in saved["info"])
        self.info = Info(objective, gradient, rss, rcond, bool(stalled))
        self.group_gamma = saved["group_gamma"]
        self.history = [float(x) for x in saved["history"]]

    def update_precisions(self) -> float:
        """One update of β and γ; the largest relative change."""
        settings, v = self.settings, self.state.network.vector
        gamma = self.group_gamma[self.groups.index]
        curvature, stat = self.evaluate()
        cores = self.state.network.cores
        which = weights_of(cores, curvature.bayesian_cores(len(cores)))
        variances, expected_rss = np.zeros_like(v), math.nan
        determined = np.zeros_like(v)
        rough = stat.determined(self.beta, gamma[which]) if settings.rough else None
        if rough is not None:
            determined[which] = np.clip(rough, 0.0, 1.0)
            variances[which] = (1.0 - determined[which]) / gamma[which]
        else:
            posterior = stat.posterior(self.beta, gamma[which], self.truncation)
            variances[which] = posterior.variances()
            determined = np.clip(1.0 - gamma * variances, 0.0, 1.0)
            if settings.noise.expects:
                expected_rss = stat.expected_rss(posterior)
        free = determined
        if len(which) < len(v) and settings.prior.learns:
            # point cores have no posterior of their own: each lends its conditional one
            free = self.conditional_determined(gamma)
        moments = Moments(
            n=self.rows.total_weight,
            rss=stat.rss,
            expected_rss=expected_rss,
            determined=float(determined[which].sum()),
            count=self.groups.count,
            square=self.groups.total(v * v),
            spread=self.groups.total(variances),
            group_determined=self.groups.total(free),
        )
        beta = settings.noise.noise(moments, self.beta)
        group_gamma = self.group_gamma
        if settings.prior.learns:
            alive = np.maximum(moments.group_determined, 1e-3 * moments.count)
            group_gamma = self.groups.pinned(settings.prior.prior(moments, group_gamma), alive)
            group_gamma = np.clip(group_gamma, SMALLEST_PRIOR, LARGEST_PRIOR)
        change = max(
            abs(math.log(beta / self.beta)),
            float(np.max(np.abs(np.log(group_gamma / self.group_gamma))))
            if settings.prior.learns
            else 0.0,
        )
        self.beta, self.group_gamma = beta, group_gamma
        return change

    def conditional_determined(self, gamma: Array) -> Array:
        """``1 - Γ_kk Σ_kk`` with each core's posterior given the others."""
        stat = BlockDiagonal().evaluate(self.rows, self.state.network, self.state.linear)
        variances = stat.posterior(self.beta, gamma, Truncation()).variances()
        return np.clip(1.0 - gamma * variances, 0.0, 1.0)

    def evaluate(self) -> tuple[Curvature, Evaluated]:
        """Curvature at the present weights; of several candidates, that of highest evidence."""
        curvature, network = self.settings.curvature, self.state.network
        n_cores = len(network.cores)
        candidates = curvature.candidates(n_cores)
        if len(candidates) == 1 and candidates[0] == curvature:
            return curvature, curvature.evaluate(self.rows, network, self.state.linear)
        gamma = self.group_gamma[self.groups.index]
        evaluated = []
        for k, candidate in enumerate(candidates):
            which = weights_of(network.cores, candidate.bayesian_cores(n_cores))
            stat = candidate.evaluate(self.rows, network, None)
            posterior = stat.posterior(self.beta, gamma[which], self.truncation)
            evaluated.append((self.evidence(stat, posterior, which), -k, stat))
        _, k, best = max(evaluated, key=lambda c: c[:2])
        return candidates[-k], best

    def evidence(self, stat: Evaluated, posterior: Posterior, which: Indices) -> float:
        """Laplace evidence of the Bayesian weights."""
        return self.log_normaliser + log_evidence(
            self.rows.total_weight,
            stat.rss,
            self.beta,
            self.state.network.vector[which],
            self.group_gamma[self.groups.index][which],
            posterior.logdet,
            posterior.n_dropped,
        )


def weights_of(cores: Cores, which: Sequence[int]) -> Indices:
    """Positions in the weight vector of the weights of the cores ``which``."""
    starts = np.cumsum([0, *(V.size for V in cores)])
    return np.concatenate([np.arange(starts[d], starts[d + 1]) for d in which])
