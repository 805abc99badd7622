"""Fitting one network: MAP steps and precision updates in turn, then the posterior at the end."""

import math
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any, final

import numpy as np
import numpy.typing as npt

from tensorlace.als import core_step, core_system
from tensorlace.bases.basis import Array
from tensorlace.checkpoints import Checkpointer
from tensorlace.curvature import BlockDiagonal, Curvature, Evaluated, Last
from tensorlace.linalg import Solution
from tensorlace.networks import Cores, from_vector, to_vector
from tensorlace.posterior import Posterior
from tensorlace.precision import Groups, Moments, log_evidence
from tensorlace.rows import Rows
from tensorlace.settings import Settings
from tensorlace.solver import Info, State
from tensorlace.truncation import Truncation

__all__ = ["Fitted", "Progress", "infer"]

Progress = Callable[[int, Info, float], None]
"""Called with the number of steps made, what the last one saw, and the noise precision."""

Indices = npt.NDArray[np.intp]

FIRST_NOISE_PRECISION, FIRST_PRIOR_PRECISION = 10.0, 1.0
WARM_UP_STEPS = 10
LEARNING_SHARE = 0.7
"""Part of the steps in which precisions may still change; the rest is for the MAP to settle."""


@final
@dataclass(frozen=True)
class Fitted:
    """A fitted network: MAP cores, precisions, posterior, and how the fit went."""

    cores: Cores
    beta: float
    gamma: Cores
    curvature: Curvature
    posterior: Posterior
    log_evidence: float
    determined: float
    rss: float
    n_steps: int
    gradient: float
    rcond: float
    history: tuple[float, ...]

    @property
    def bayesian_cores(self) -> tuple[int, ...]:
        """Cores that have a distribution."""
        return self.curvature.bayesian_cores(len(self.cores))


def infer(
    rows: Rows,
    settings: Settings,
    cores: Cores,
    progress: Progress | None = None,
    checkpointer: Checkpointer | None = None,
) -> Fitted:
    """Fit from the given starting cores. Pure but for ``progress`` and ``checkpointer``.

    Parameters
    ----------
    rows : Rows
    settings : Settings
    cores : D arrays (R, I_d)
        Starting point, see `networks.initialise`.
    progress : callable, optional
    checkpointer : Checkpointer, optional
        Called after every step; what it has saved before is resumed, to the same bits.

    Returns
    -------
    Fitted
    """
    sizes = [V.shape[1] for V in cores]
    groups = settings.groups(sizes, settings.rank)
    run = _Run(rows, settings, groups, settings.solver.start(rows, cores))
    saved = checkpointer.load() if checkpointer is not None else None
    if saved is not None:
        run.restore(saved)
    while run.advance():
        if checkpointer is not None:
            checkpointer.save(run.snapshot())
        if progress is not None:
            progress(run.n_steps, run.info, run.beta)
    return run.finish()


@final
class _Run:
    """The moving parts of one fit."""

    def __init__(
        self,
        rows: Rows,
        settings: Settings,
        groups: Groups,
        state: State,
    ) -> None:
        self.rows, self.settings, self.groups, self.state = rows, settings, groups, state
        self.learning = settings.noise.learns or settings.prior.learns
        self.learning_budget = max(1, int(LEARNING_SHARE * settings.max_steps))
        self.steps_until_update = min(WARM_UP_STEPS, self.learning_budget // 2)
        self.beta = settings.noise.start(FIRST_NOISE_PRECISION)
        self.group_gamma = np.full(len(groups.count), settings.prior.start(FIRST_PRIOR_PRECISION))
        self.info = Info(objective=math.inf, gradient=math.inf, rss=math.inf)
        self.n_steps = 0
        self.converging = False
        self.history: list[float] = []

    @property
    def gamma(self) -> Cores:
        """Prior precisions in the shape of the cores."""
        return from_vector(self.group_gamma[self.groups.index], self.state.cores)

    def advance(self) -> bool:
        """One more step of the solver, after a precision update if one is due; False at the end."""
        if self.learning and self.n_steps >= self.learning_budget:
            self.learning = False
        if self.learning and self.steps_until_update == 0:
            self.state = self.settings.solver.prepare(self.rows, self.state, self.gamma)
            self.learning = self.update_precisions() >= self.settings.precision_tol
            self.steps_until_update = self.settings.solver.steps_per_round
        arrived = self.info.gradient <= self.settings.tol or self.info.stalled
        if not self.learning and self.converging and arrived:
            return False
        if self.n_steps >= max(self.settings.max_steps, 1):
            return False
        self.converging = not self.learning
        self.state, self.info = self.settings.solver.step(
            self.rows, self.state, self.beta, self.gamma
        )
        self.n_steps += 1
        self.steps_until_update -= 1
        self.history.append(self.info.objective)
        return True

    def snapshot(self) -> dict[str, Any]:
        """Everything that the next step depends on, as arrays."""
        cores = {f"core{d}": V for d, V in enumerate(self.state.cores)}
        counters = [self.n_steps, self.steps_until_update, self.learning, self.converging]
        return {
            **cores,
            "counters": np.array(counters, dtype=np.int64),
            "numbers": np.array([self.state.damping, self.beta]),
            "info": np.array(astuple(self.info), dtype=np.float64),
            "group_gamma": self.group_gamma,
            "history": np.array(self.history),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go back to a snapshot."""
        cores = tuple(saved[f"core{d}"] for d in range(len(self.state.cores)))
        n_steps, until, learning, converging = (int(k) for k in saved["counters"])
        self.n_steps, self.steps_until_update = n_steps, until
        self.learning, self.converging = bool(learning), bool(converging)
        damping, self.beta = (float(x) for x in saved["numbers"])
        self.state = State(cores, damping)
        objective, gradient, rss, rcond, stalled = (float(x) for x in saved["info"])
        self.info = Info(objective, gradient, rss, rcond, bool(stalled))
        self.group_gamma = saved["group_gamma"]
        self.history = [float(x) for x in saved["history"]]

    def update_precisions(self) -> float:
        """One update of β and γ; the largest relative change."""
        settings, v = self.settings, to_vector(self.state.cores)
        gamma = self.group_gamma[self.groups.index]
        curvature, stat = self.evaluate()
        which = _weights(self.state.cores, curvature.bayesian_cores(len(self.state.cores)))
        posterior = stat.posterior(self.beta, gamma[which], settings.truncation)
        variances = np.zeros_like(v)
        variances[which] = posterior.variances()
        determined = np.clip(1.0 - gamma * variances, 0.0, 1.0)
        free = determined
        if len(which) < len(v) and settings.prior.learns:
            # point cores have no posterior of their own: each lends its conditional one
            free = self.conditional_determined(gamma)
        moments = Moments(
            n=self.rows.total_weight,
            rss=stat.rss,
            expected_rss=stat.expected_rss(posterior),
            determined=float(determined[which].sum()),
            count=self.groups.count,
            square=self.groups.total(v * v),
            spread=self.groups.total(variances),
            group_determined=self.groups.total(free),
        )
        beta = settings.noise.noise(moments, self.beta)
        group_gamma = self.group_gamma
        if settings.prior.learns:
            group_gamma = self.groups.pinned(settings.prior.prior(moments, group_gamma))
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
        stat = BlockDiagonal().evaluate(self.rows, self.state.cores, self.state.linear)
        variances = stat.posterior(self.beta, gamma, Truncation()).variances()
        return np.clip(1.0 - gamma * variances, 0.0, 1.0)

    def evaluate(self) -> tuple[Curvature, Evaluated]:
        """Curvature at the present cores; Last without a core gets that of highest evidence."""
        curvature, cores = self.settings.curvature, self.state.cores
        if curvature != Last(None):
            return curvature, curvature.evaluate(self.rows, cores, self.state.linear)
        gamma = self.group_gamma[self.groups.index]
        candidates = []
        for d in range(len(cores)):
            which = _weights(cores, (d,))
            stat = Last(d).evaluate(self.rows, cores, None)
            posterior = stat.posterior(self.beta, gamma[which], self.settings.truncation)
            candidates.append((self.evidence(stat, posterior, which), -d, stat))
        _, d, best = max(candidates, key=lambda c: c[:2])
        return Last(-d), best

    def evidence(self, stat: Evaluated, posterior: Posterior, which: Indices) -> float:
        """Laplace evidence of the Bayesian weights."""
        return log_evidence(
            self.rows.total_weight,
            stat.rss,
            self.beta,
            to_vector(self.state.cores)[which],
            self.group_gamma[self.groups.index][which],
            posterior.logdet,
            posterior.n_dropped,
        )

    def finish(self) -> Fitted:
        """Posterior at the last precisions and cores."""
        curvature, stat = self.evaluate()
        bayesian = curvature.bayesian_cores(len(self.state.cores))
        if isinstance(curvature, Last):
            # exact given the other cores: put the Bayesian core at its own posterior mean
            self.state = replace(
                self.state, cores=self.at_conditional_mean(bayesian[0]), linear=None
            )
            stat = curvature.evaluate(self.rows, self.state.cores, None)
        which = _weights(self.state.cores, bayesian)
        gamma = self.group_gamma[self.groups.index][which]
        posterior = stat.posterior(self.beta, gamma, self.settings.truncation)
        return Fitted(
            cores=self.state.cores,
            beta=self.beta,
            gamma=self.gamma,
            curvature=curvature,
            posterior=posterior,
            log_evidence=self.evidence(stat, posterior, which),
            determined=float(np.clip(1.0 - gamma * posterior.variances(), 0.0, 1.0).sum()),
            rss=stat.rss,
            n_steps=self.n_steps,
            gradient=self.info.gradient,
            rcond=self.info.rcond if np.all(self.group_gamma > 0) else self.core_rcond(),
            history=tuple(self.history),
        )

    def core_rcond(self) -> float:
        """Reciprocal condition of the worst core system; the damping of a step would hide it."""
        return min(self.solve_core(self.state.cores, d).rcond for d in range(len(self.gamma)))

    def at_conditional_mean(self, d: int, refinements: int = 2) -> Cores:
        """Cores with the d-th solved exactly for the others held."""
        cores = self.state.cores
        for _ in range(refinements):
            step = self.solve_core(cores, d).x
            cores = (*cores[:d], cores[d] + step.reshape(cores[d].shape), *cores[d + 1 :])
        return cores

    def solve_core(self, cores: Cores, d: int) -> Solution:
        """Correction of the d-th core for the others held."""
        system = core_system(self.rows, cores, d)
        return core_step(system, cores[d], self.gamma[d] / self.beta)[0]


def _weights(cores: Cores, which: Sequence[int]) -> Indices:
    """Positions in the weight vector of the weights of the cores ``which``."""
    starts = np.cumsum([0, *(V.size for V in cores)])
    return np.concatenate([np.arange(starts[d], starts[d + 1]) for d in which])
