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
from tensorlace.likelihoods.student import FIRST_DEGREES, information, shape_of
from tensorlace.networks.network import Cores, Network, from_vector, to_vector
from tensorlace.rows.memory import Block, Rows, Statistic
from tensorlace.rows.reweighted import ReweightedRows, Tails, counts_of_sizes, log_likelihood
from tensorlace.rows.stop import PassEndedError, guarded
from tensorlace.solvers.solver import Info, State

__all__ = ["Indices", "Run", "Start", "weights_of"]

Indices = npt.NDArray[np.intp]

FIRST_NOISE_PRECISION = 10.0
"""Noise precision that a fit begins with, for a target of unit variance."""

FIRST_PRIOR_PRECISION = 1.0
"""Prior precision that a fit begins with."""

SWITCHED_OFF = 1e-3
"""Effective weights per weight below which a group counts as switched off."""

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
    degrees : float
        Degrees of freedom found there; infinite without tails.
    """

    network: Network
    beta: float | None = None
    gamma: Cores | None = None
    degrees: float = math.inf


@final
class Run:
    """The moving parts of one fit.

    With tails (`Config.tails`), weights of rows are computed anew between steps, at the present
    network: expectation maximisation, whose steps are those of least squares. The gradient that a
    step meets right then is that of the objective with Student's t, so it says when to stop.
    """

    def __init__(self, rows: Rows, settings: Config, start: Start) -> None:
        if settings.solver is None:
            raise ValueError("the solver is still to be chosen: see Config.for_table")
        self.settings, self.solver = settings, settings.solver
        self.rows, self._unguarded, self.stopped = guarded(rows, settings.stop), rows, False
        self.plain_rows = self.rows  # with the weights they came with
        self.groups = settings.grouped(start.network)
        self.state = self.solver.start(rows, start.network)
        # t̂ is for the posterior at the end: directions it calls certain are those that the rows
        # determine least, and here would count as determined. The full Hessian cannot do without:
        # its smallest positive eigenvalues are accidents
        self.truncation = Truncation() if settings.curvature.convex else settings.truncation
        self.learning = settings.noise.learns or settings.prior.learns or settings.tails
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
        self._last_without_update = self.steps_until_update
        self.info = Info(objective=math.inf, gradient=math.inf, rss=math.inf)
        self._evaluated: tuple[State, tuple[Curvature, Evaluated]] | None = None
        self.n_steps = 0
        self.converging = self.arrived = False
        self.changes: Array | None = None  # relative, of precisions in the last update
        self.history: list[float] = []
        self.tails: Tails | None = None
        self.steps_with_weights = 0
        self.knows_noise = not settings.noise.learns or start.beta is not None
        if settings.tails:
            degrees = FIRST_DEGREES if math.isinf(start.degrees) else start.degrees
            self._reweight(Tails(start.network, self._core_precision(degrees), degrees))

    @property
    def degrees(self) -> float:
        """Degrees of freedom of the noise."""
        return math.inf if self.tails is None else self.tails.degrees

    @property
    def information(self) -> float:
        """Precision by which rows inform about the response: β, and with tails less."""
        return self.beta * information(self.degrees)

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
        return from_vector(self.groups.each(self.group_gamma), self.state.network.cores)

    def advance(self) -> bool:
        """One more step of the solver, after a precision update if one is due; False at the end.

        It is the end, too, when `Config.stop` is due: a step that is under way then is given up.
        """
        try:
            self.stopped = self.stopped or self.settings.stop.due
            goes_on = not self.stopped and self._advance()
        except PassEndedError:
            self.stopped, goes_on = True, False
        if not goes_on:
            # what is left to do is done whatever the time
            self.rows = self.plain_rows = self._unguarded
            if self.tails is not None:
                self.rows = ReweightedRows(self.plain_rows, self.tails)
                self._end()
        return goes_on

    def settle(self) -> None:
        """Update precisions that a stop came too early for: where they begin is no estimate."""
        if self.stopped and self.learning and self.n_steps <= self._last_without_update:
            self._evaluated = self.state, self.evaluate()  # for the posterior, too
            self.update_precisions()

    def _advance(self) -> bool:
        if self.learning and self.n_steps >= self.learning_budget:
            self.learning = False
        if self.learning and self.steps_until_update == 0:
            moved = self._move_weights()
            self.state = self.solver.prepare(self.rows, self.state, self.gamma)
            moved = max(moved, self.update_precisions())
            self.learning = moved >= self.settings.precision_tol
            self.steps_until_update = self.solver.steps_per_round
        arrived = self.info.gradient <= self.settings.tol or self.info.stalled
        exact = self.tails is None or self.steps_with_weights == 1
        if not self.learning and self.converging and arrived and exact:
            self.arrived = True
            return self._end()
        if self.n_steps >= max(self.settings.max_steps, 1):
            return self._end()
        if self.steps_with_weights >= (1 if arrived else self.solver.steps_per_round):
            self._move_weights()
        self.converging = not self.learning
        self.steps_with_weights += 1
        self.state, self.info = self.solver.step(self.rows, self.state, self.beta, self.gamma)
        self.n_steps += 1
        self.steps_until_update -= 1
        self.history.append(self.info.objective)
        return True

    def _end(self) -> bool:
        """No more steps: rows get the weights that the last network gives them."""
        if self.tails is not None and self.tails.network is not self.state.network:
            self._reweight(Tails(self.state.network, self.beta, self.degrees))
        return False

    def _move_weights(self) -> float:
        """Compute weights of rows at the present network; the change of log ν."""
        if self.tails is None:
            return 0.0
        before = degrees = self.tails.degrees
        if self.learning:
            counts = counts_of_sizes(self.plain_rows, self.state.network, self.beta)
            degrees = shape_of(counts).degrees
        precision = self._core_precision(degrees)
        self._reweight(Tails(self.state.network, precision, degrees))
        return abs(math.log(degrees / before))

    def _core_precision(self, degrees: float) -> float:
        """β; before the first update what residuals say, lest rows be distrusted too early."""
        if self.knows_noise or not self.learning:
            return self.beta
        counts = counts_of_sizes(self.plain_rows, self.state.network, self.beta)
        return self.beta * shape_of(counts, degrees).precision

    def _reweight(self, tails: Tails) -> None:
        """Let rows count by other tails; what was summed with the old weights is forgotten."""
        self.tails, self.rows = tails, ReweightedRows(self.plain_rows, tails)
        self.state = State(self.state.network, self.state.damping)
        self.steps_with_weights = 0

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
            **({} if self.changes is None else {"changes": self.changes}),
            **self._tails_snapshot(),
        }

    def _tails_snapshot(self) -> dict[str, Any]:
        if self.tails is None:
            return {}
        return {
            **{f"tails{d}": V for d, V in enumerate(self.tails.network.cores)},
            "tails": np.array([self.tails.precision, self.tails.degrees]),
            "tails_counters": np.array([self.steps_with_weights, self.knows_noise], dtype=np.int64),
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
        self.changes = saved.get("changes")
        if "tails" in saved:
            at = network.with_cores(tuple(saved[f"tails{d}"] for d in range(D)))
            precision, degrees = (float(x) for x in saved["tails"])
            self.tails = Tails(at, precision, degrees)
            self.rows = ReweightedRows(self.plain_rows, self.tails)
            since, knows = (int(k) for k in saved["tails_counters"])
            self.steps_with_weights, self.knows_noise = since, bool(knows)

    def update_precisions(self) -> float:
        """One update of β and γ; the largest relative change."""
        settings, v = self.settings, self.state.network.vector
        gamma = self.groups.each(self.group_gamma)
        curvature, stat = self.evaluate()
        cores = self.state.network.cores
        which = weights_of(cores, curvature.bayesian_cores(len(cores)))
        variances, expected_rss = np.zeros_like(v), math.nan
        determined = np.zeros_like(v)
        rough = stat.determined(self.information, gamma[which]) if settings.rough else None
        if rough is not None:
            determined[which] = np.clip(rough, 0.0, 1.0)
            variances[which] = (1.0 - determined[which]) / gamma[which]
        else:
            posterior = stat.posterior(self.information, gamma[which], self.truncation)
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
            square=self.groups.total(self.groups.scaled(v * v)),
            spread=self.groups.total(self.groups.scaled(variances)),
            group_determined=self.groups.total(free),
        )
        beta = settings.noise.noise(moments, self.beta)
        group_gamma = self.group_gamma
        counts = np.zeros(len(group_gamma), dtype=np.bool_)
        if settings.prior.learns:
            alive = np.maximum(moments.group_determined, SWITCHED_OFF * moments.count)
            group_gamma = self.groups.pinned(settings.prior.prior(moments, group_gamma), alive)
            group_gamma = np.clip(group_gamma, SMALLEST_PRIOR, LARGEST_PRIOR)
            inside = (group_gamma > SMALLEST_PRIOR) & (group_gamma < LARGEST_PRIOR)
            counts = inside & (moments.group_determined > SWITCHED_OFF * moments.count)
        change = max(
            abs(math.log(beta / self.beta)),
            float(np.max(np.abs(np.log(group_gamma / self.group_gamma))))
            if settings.prior.learns
            else 0.0,
        )
        ratios = group_gamma[counts] / self.group_gamma[counts]
        if settings.noise.learns:
            ratios = np.append(ratios, beta / self.beta)
        self.changes = np.expm1(np.abs(np.log(ratios)))
        self.beta, self.group_gamma = beta, group_gamma
        self.knows_noise = True
        return change

    def conditional_determined(self, gamma: Array) -> Array:
        """``1 - Γ_kk Σ_kk`` with each core's posterior given the others."""
        stat = BlockDiagonal().evaluate(self.rows, self.state.network, self.state.linear)
        variances = stat.posterior(self.information, gamma, Truncation()).variances()
        return np.clip(1.0 - gamma * variances, 0.0, 1.0)

    def evaluate(self) -> tuple[Curvature, Evaluated]:
        """Curvature at the present weights; of several candidates, that of highest evidence."""
        if self._evaluated is not None and self._evaluated[0] is self.state:
            return self._evaluated[1]
        curvature, network = self.settings.curvature, self.state.network
        n_cores = len(network.cores)
        candidates = curvature.candidates(n_cores)
        if len(candidates) == 1 and candidates[0] == curvature:
            return curvature, curvature.evaluate(self.rows, network, self.state.linear)
        gamma = self.groups.each(self.group_gamma)
        evaluated = []
        for k, candidate in enumerate(candidates):
            which = weights_of(network.cores, candidate.bayesian_cores(n_cores))
            stat = candidate.evaluate(self.rows, network, None)
            posterior = stat.posterior(self.information, gamma[which], self.truncation)
            evaluated.append((self.evidence(stat, posterior, which), -k, stat))
        _, k, best = max(evaluated, key=lambda c: c[:2])
        return candidates[-k], best

    def beyond_squares(self, rss: float) -> float:
        """Log likelihood less that of a normal with the same weighted residuals."""
        if self.tails is None:
            return self.log_normaliser
        student = log_likelihood(
            self.plain_rows, Tails(self.state.network, self.beta, self.degrees)
        )
        n = self.rows.total_weight
        return student - 0.5 * (n * math.log(self.beta / (2.0 * math.pi)) - self.beta * rss)

    def evidence(self, stat: Evaluated, posterior: Posterior, which: Indices) -> float:
        """Laplace evidence of the Bayesian weights."""
        return self.beyond_squares(stat.rss) + log_evidence(
            self.rows.total_weight,
            stat.rss,
            self.beta,
            self.state.network.vector[which],
            self.groups.each(self.group_gamma)[which],
            posterior.logdet,
            posterior.n_dropped,
        )


def weights_of(cores: Cores, which: Sequence[int]) -> Indices:
    """Positions in the weight vector of the weights of the cores ``which``."""
    starts = np.cumsum([0, *(V.size for V in cores)])
    return np.concatenate([np.arange(starts[d], starts[d + 1]) for d in which])
