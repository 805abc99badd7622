"""From the estimator's arguments and a table to fitted machines: one model, or a choice of many."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from tensorlace.errors import InputError
from tensorlace.estimators.messages import progress_printer
from tensorlace.fitting.config import Config
from tensorlace.fitting.fit_machines import fit_machines
from tensorlace.fitting.outcome import Found
from tensorlace.kinds import Kind
from tensorlace.machines.ensemble import Ensemble
from tensorlace.machines.noises.registry import NOISES
from tensorlace.search.candidate import Candidate
from tensorlace.search.search import search
from tensorlace.search.task import Task
from tensorlace.sources import Table

__all__ = ["train"]


def train(
    params: Mapping[str, Any],
    table: Table,
    kinds: tuple[Kind, ...],
    *,
    rng: np.random.RandomState,
    checkpoint: Path | None = None,
) -> Found:
    """Fit as the arguments ``params`` of the estimator say.

    Parameters
    ----------
    params : mapping
        Arguments of `TNKMRegressor`, checked.
    table : Table
    kinds : tuple of Kind
    rng : RandomState
        Where all fits begin.
    checkpoint : Path, optional
    """
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
        )
        return search(task, table)
    if not _auto(params["noise"]) and params["noise"] != "gaussian":
        raise InputError(f"noise={params['noise']!r} needs rank='auto': a fixed rank has none")
    n_members = 1 if _auto(n_members) else n_members
    machines = fit_machines(
        config,
        table,
        seeds=[int(s) for s in rng.randint(2**31 - 1, size=n_members)],
        threads=threads,
        memory_budget=params["memory_budget"],
        checkpoint=checkpoint,
        progress=[
            progress_printer(
                member,
                verbose=params["verbose"],
                n_members=n_members,
                n_rows=table.n_rows,
                max_steps=params["max_sweeps"],
            )
            for member in range(n_members)
        ],
    )
    return Found(Ensemble(machines, np.full(n_members, 1.0 / n_members)))


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
