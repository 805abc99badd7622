"""Fitting one network: from a start on part of the rows to the posterior on all of them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from tensorlace._types import Array
from tensorlace.fitting.checkpoint import Checkpointer
from tensorlace.fitting.config import Config
from tensorlace.fitting.rank_reduction import drop_surplus_terms
from tensorlace.fitting.run import Indices, Run, Start, weights_of
from tensorlace.laplace.curvature import Evaluated
from tensorlace.laplace.posterior import Posterior
from tensorlace.linalg.symmetric import Solution
from tensorlace.machines.fitted import Convergence, Fitted
from tensorlace.networks.network import Network
from tensorlace.rows.memory import Rows
from tensorlace.rows.stop import PassEndedError
from tensorlace.solvers.als import core_step, core_system
from tensorlace.solvers.products import point
from tensorlace.solvers.solver import Info

__all__ = ["Progress", "infer"]

Progress = Callable[[int, Info, float], None]
"""Called with the number of steps made, what the last one saw, and the noise precision."""

STAGE_STEPS = 60
"""Most solver steps on a part of the rows."""

STAGE_TOL = 1e-4
"""Relative gradient at which steps on a part of the rows end."""

STAGE_PRECISION_TOL = 1e-2
"""Relative change of a precision below which it is left alone on a part of the rows: all rows will
move it as much."""


def infer(
    rows: Rows,
    settings: Config,
    start: Start,
    progress: Progress | None = None,
    checkpointer: Checkpointer | None = None,
    stages: Sequence[Rows] = (),
) -> Fitted:
    """Fit from the given starting cores. Pure but for ``progress`` and ``checkpointer``.

    Parameters
    ----------
    rows : Rows
    settings : Config
        Settled for the table, see `Config.for_table`.
    start : Start
        See `networks.initialise`; one that knows precisions already needs no stages.
    progress : callable, optional
    checkpointer : Checkpointer, optional
        Called after every step; what it has saved before is resumed, to the same bits.
    stages : sequence of Rows
        Growing parts of the rows on which cores and precisions are brought near their end first.
        A checkpoint that exists was written after them.

    Returns
    -------
    Fitted

    Raises
    ------
    PassEndedError
        `Config.stop` has ended the fit, and what there is of it is of no use.
    """
    saved = checkpointer.load() if checkpointer is not None else None
    if saved is not None:
        run = Run(rows, settings, start)
        run.restore(saved)
    else:
        run = Run(rows, settings, warm_start(stages, settings, start))
    while run.advance():
        if checkpointer is not None:
            checkpointer.save(run.snapshot())
        if progress is not None:
            progress(run.n_steps, run.info, run.beta)
    stop = settings.stop
    if run.stopped and (stop.to_the_end or (stop.asked and not run.n_steps)):
        raise PassEndedError
    run.settle()
    return _finish(run if run.stopped else drop_surplus_terms(run))


def warm_start(stages: Sequence[Rows], settings: Config, start: Start) -> Start:
    """Where a fit of all rows should begin, from a few steps on each stage in turn.

    A precision found on a part of the rows is an estimate for all: β is a property of a row, and γ
    of the weights. Weights of rows stay what they are, so a stage has the prior count for more.
    """
    short = replace(
        settings,
        max_steps=min(settings.max_steps, STAGE_STEPS),
        tol=max(settings.tol, STAGE_TOL),
        precision_tol=max(settings.precision_tol, STAGE_PRECISION_TOL),
    )
    for rows in stages:
        run = Run(rows, short, start)
        while run.advance():
            pass
        start = Start(run.state.network, run.beta, run.gamma, run.degrees)
    return start


def _finish(run: Run) -> Fitted:
    """Posterior at the last precisions and cores."""
    curvature, stat = run.evaluate()
    bayesian = curvature.bayesian_cores(len(run.state.network.cores))
    if curvature.one_core:
        # exact given the other cores: put the Bayesian core at its own posterior mean
        exact = _at_conditional_mean(run, bayesian[0])
        run.state = replace(run.state, network=exact, linear=None)
        stat = curvature.evaluate(run.rows, exact, None)
    which = weights_of(run.state.network.cores, bayesian)
    gamma = run.groups.each(run.group_gamma)[which]
    posterior = stat.posterior(run.information, gamma, run.settings.truncation)
    return Fitted(
        network=run.state.network,
        beta=run.beta,
        gamma=run.gamma,
        curvature=curvature,
        posterior=posterior,
        log_evidence=run.evidence(stat, posterior, which),
        determined=float(np.clip(1.0 - gamma * posterior.variances(), 0.0, 1.0).sum()),
        rss=stat.rss,
        n_steps=run.n_steps,
        gradient=run.info.gradient,
        rcond=run.info.rcond if np.all(run.group_gamma > 0) else _core_rcond(run),
        history=tuple(run.history),
        likelihood=run.rows.likelihood,
        degrees=run.degrees,
        convergence=_convergence(run, stat, posterior, which, gamma),
    )


def _convergence(
    run: Run, stat: Evaluated, posterior: Posterior, which: Indices, gamma: Array
) -> Convergence:
    """How near its end the run is, from sums at the final weights.

    The curvature's sums have the gradient, but for independent weights: a pass for these.
    """
    network = run.state.network
    slope = point(run.rows, network).slope[which] if stat.slope is None else stat.slope
    g = run.beta * slope - gamma * network.vector[which]
    learns = run.settings.noise.learns or run.settings.prior.learns
    changes = np.full(int(learns), np.inf) if run.changes is None else run.changes
    return Convergence(
        decrement=math.sqrt(max(float(g @ posterior.solve(g)), 0.0)),
        precision_change=float(np.max(changes, initial=0.0)),
        n_unsettled=int(np.count_nonzero(changes > run.settings.precision_tol)),
        n_precisions=len(changes),
        arrived=run.arrived,
    )


def _core_rcond(run: Run) -> float:
    """Reciprocal condition of the worst core system; the damping of a step would hide it."""
    return min(_solve_core(run, run.state.network, d).rcond for d in range(len(run.gamma)))


def _at_conditional_mean(run: Run, d: int, refinements: int = 2) -> Network:
    """The network with the d-th core solved exactly for the others held."""
    network = run.state.network
    for _ in range(refinements):
        step = _solve_core(run, network, d).x
        core = network.cores[d]
        network = network.with_core(d, core + step.reshape(core.shape))
    return network


def _solve_core(run: Run, network: Network, d: int) -> Solution:
    """Correction of the d-th core for the others held."""
    system = core_system(run.rows, network, d)
    return core_step(system, network.cores[d], run.gamma[d] / run.beta)[0]
