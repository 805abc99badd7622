"""From the estimator's arguments and a table to fitted machines: one model, or a choice of many."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from tensorlace.errors import InputError
from tensorlace.estimators.messages import progress_printer
from tensorlace.fitting.config import Config
from tensorlace.fitting.outcome import Found
from tensorlace.fitting.tails import fit_ensemble
from tensorlace.kinds import Kind
from tensorlace.machines.noise import noise_of_few_rows
from tensorlace.machines.noises.registry import NOISES
from tensorlace.rows.stop import NEVER, PassEndedError, Stop
from tensorlace.scales import Scale
from tensorlace.search.candidate import Candidate, Width
from tensorlace.search.cost_model import cost
from tensorlace.search.search import search
from tensorlace.search.settings import SearchSettings
from tensorlace.search.strategies.target_scale import with_scale
from tensorlace.search.task import Task
from tensorlace.sources import Table
from tensorlace.sources.target_scale import ScaledTarget
from tensorlace.sources.weighting import weight_sums

__all__ = ["train"]


def train(
    params: Mapping[str, Any],
    table: Table,
    kinds: tuple[Kind, ...],
    scale: Scale,
    *,
    rng: np.random.RandomState,
    checkpoint: Path | None = None,
    stop: Stop = NEVER,
) -> Found:
    """Fit as the arguments ``params`` of the estimator say.

    Parameters
    ----------
    params : mapping
        Arguments of `TNKMRegressor`, checked.
    table : Table
    kinds : tuple of Kind
    scale : Scale
        That the target is brought to; a search may find one where this changes nothing.
    rng : RandomState
        Where all fits begin.
    checkpoint : Path, optional
    stop : Stop
        When to end with the best there is.

    Raises
    ------
    KeyboardInterrupt
        If it was asked to end and there is nothing yet.
    """
    given, table = table, table if scale.trivial else ScaledTarget(table, scale)
    config = Config.of(params, len(table.names), kinds)
    threads = effective_n_jobs(-1 if params["n_jobs"] is None else params["n_jobs"])
    n_members = params["n_members"]
    if _auto(params["rank"]):
        if params["likelihood"] != "gaussian":
            raise InputError(
                f"likelihood={params['likelihood']!r} needs a number for rank: rank='auto' chooses "
                f"among models with Gaussian noise"
            )
        if checkpoint is not None:
            raise InputError("rank='auto' makes many fits and keeps no checkpoint: give a rank")
        task = Task(
            config,
            given=_given(params),
            seed=int(rng.randint(2**31 - 1)),
            budget=params["time_budget"],
            n_members=None if _auto(n_members) else n_members,
            noise=tuple(NOISES) if _auto(params["noise"]) else (params["noise"],),
            threads=threads,
            memory_budget=params["memory_budget"],
            report=_reporter(params["verbose"]),
            stop=stop,
        )
        free = params["target_range"] is None and isinstance(params["noise_precision"], str)
        if params["target_scale"] == "auto" and free:
            task, scale = with_scale(task, given)
            table = table if scale.trivial else ScaledTarget(given, scale)
        found = replace(search(task, table), scale=scale)
        if stop.asked and not found.results:
            raise KeyboardInterrupt
        return found
    if params["noise"] not in _OF_FIXED_RANK:
        raise InputError(
            f"noise={params['noise']!r} needs rank='auto': a fixed rank has noise that is the same "
            f"everywhere, 'gaussian' or 'student'"
        )
    n_members = 1 if _auto(n_members) else n_members
    doubting = replace(config, noise=config.noise.doubting())
    doubts = doubting != config and config.likelihood.squared
    config = doubting if doubts else config
    steps_end = stop.by(_last_step(config, table, threads, stop.deadline))
    progress = [
        progress_printer(
            member,
            verbose=params["verbose"],
            n_members=n_members,
            n_rows=table.n_rows,
            max_steps=params["max_sweeps"],
        )
        for member in range(n_members)
    ]
    try:
        ensemble, judge = fit_ensemble(
            replace(config, stop=steps_end),
            table,
            tails=_OF_FIXED_RANK[params["noise"]],
            seeds=[int(s) for s in rng.randint(2**31 - 1, size=n_members)],
            threads=threads,
            memory_budget=params["memory_budget"],
            checkpoint=checkpoint,
            progress=progress,
        )
    except PassEndedError:
        raise KeyboardInterrupt from None
    cut = None
    fits = [machine.fit for machine in ensemble.machines]
    if steps_end.due and any(
        f.n_steps < config.max_steps and f.gradient > config.tol for f in fits
    ):
        begun = tuple(machine for machine in ensemble.machines if machine.fit.n_steps)
        machines = begun or ensemble.machines[:1]
        shares = np.full(len(machines), 1.0 / len(machines))
        ensemble = replace(ensemble, machines=machines, weights=shares)
        steps = min(fit.n_steps for fit in fits if fit.n_steps or not begun)
        who = "an interrupt" if stop.asked else f"time_limit={params['time_limit']:g} s"
        cut = f"{who} ended the fit after {steps} of at most {params['max_sweeps']} steps"
        if len(machines) < n_members:
            cut += f", with {len(machines)} of {n_members} members"
    if doubts and ensemble.noise.trivial:
        n = float(table.n_rows) if table.weight is None else weight_sums(table).total
        determined = float(np.mean([m.fit.determined for m in ensemble.machines]))
        noise = noise_of_few_rows(n, determined, tails=_auto(params["noise"]))
        ensemble = replace(ensemble, noise=noise)
    return Found(ensemble, cut=cut, judge=judge, scale=scale)


_OF_FIXED_RANK = {"auto": None, "gaussian": False, "student": True}
"""Whether a fit with a fixed rank has tails; None leaves it to the data."""


def _last_step(config: Config, table: Table, threads: int, deadline: float) -> float:
    """Reading of the clock that leaves time to sum a posterior before the ``deadline``."""
    size = Candidate(config.rank, max(config.n_basis), "", "", None, config.additive, False)
    costs = replace(SearchSettings().measured, steps=1)
    seconds = cost(size, Width(len(table.names)), table.n_rows, costs) / threads
    return max(deadline - seconds, 0.5 * (monotonic() + deadline))


def _given(params: Mapping[str, Any]) -> dict[str, Any]:
    """What the user has fixed of that which is searched."""
    names = {field.name for field in fields(Candidate)} - {"rank", "lengthscale", "basis"}
    given = {name: params[name] for name in names if not _auto(params[name])}
    if params["basis"] != "cosine":
        given["basis"] = params["basis"]
    for name, value in given.items():
        if not isinstance(value, str | int | np.integer | np.bool_):
            raise InputError(f"{name} per column needs a rank: rank='auto' takes one for all")
    return given


def _auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def _reporter(verbose: int) -> Callable[[str], None] | None:
    if not verbose:
        return None

    def report(what: str) -> None:
        print(f"[tensorlace] {what}", file=sys.stderr, flush=True)

    return report
