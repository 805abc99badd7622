"""Fitting one candidate to a table."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from tensorlace.columns.bases import Cosine
from tensorlace.columns.bases.basis import Basis
from tensorlace.fitting.config import Config
from tensorlace.fitting.fit_machines import fit_machines
from tensorlace.fitting.registry import BASES, GROUPS, WARPS
from tensorlace.kinds import Categorical
from tensorlace.machines.fitted import Fitted
from tensorlace.machines.machine import KernelMachine
from tensorlace.rows.memory import MEMORY_BUDGET
from tensorlace.search.candidate import Candidate, Width
from tensorlace.search.settings import FitSettings
from tensorlace.solvers.gauss_newton import GaussNewton
from tensorlace.sources import Chunk, Table

__all__ = ["fit_candidate", "width_of"]


def fit_candidate(
    config: Config,
    candidate: Candidate,
    table: Table,
    settings: FitSettings,
    *,
    seed: int,
    max_steps: int,
    rough: bool,
    begin: Fitted | None = None,
    bends: bool = False,
    memory_budget: int = MEMORY_BUDGET,
) -> KernelMachine:
    """Fit a candidate.

    Parameters
    ----------
    config : Config
        Everything that is not searched.
    candidate : Candidate
    table : Table
    settings : FitSettings
    seed : int
        Where the cores start.
    max_steps : int
        Steps of the solver.
    rough : bool
        Precision updates may lose half their digits.
    begin : Fitted, optional
        The same candidate fitted to part of the rows.
    bends : bool
        Whether steps of `GaussNewton` follow the curvature of the path.
    memory_budget : int
    """
    configured = replace(
        _configured(config, candidate, table, settings, bends=bends),
        max_steps=max_steps,
        tol=settings.tol,
        rough=rough,
    )
    (machine,) = fit_machines(
        configured, table, seeds=[seed], memory_budget=memory_budget, begin=begin
    )
    return machine


def width_of(config: Config, sample: Chunk) -> Width:
    """How many functions the columns have."""
    kinds = config.kinds or ()
    levels = [
        len(np.unique(sample.X[:, d]))
        for d, kind in enumerate(kinds)
        if isinstance(kind, Categorical)
    ]
    return Width(sample.X.shape[1] - len(levels), sum(levels))


def _configured(
    config: Config,
    c: Candidate,
    table: Table,
    settings: FitSettings,
    *,
    bends: bool,
) -> Config:
    """``config`` with what the candidate says."""
    D = len(table.names)
    P = (c.rank + c.additive) * c.n_basis * D
    small = min(P, table.n_rows)
    dense = None
    if small * small * max(P, table.n_rows) < settings.dense_work:
        dense = GaussNewton(second_order=settings.second_order_columns >= D, bends=bends)
    bases: tuple[Callable[[int], Basis], ...] = (BASES[c.basis],) * D
    if c.basis == "cosine":
        bases = (partial(Cosine, lengthscale=c.lengthscale),) * D
    return replace(
        config,
        rank=c.rank,
        n_basis=(c.n_basis,) * D,
        bases=bases,
        warps=(WARPS[c.warp],) * D,
        groups=GROUPS[c.prior_groups],
        additive=c.additive,
        rotate=c.rotate and D > 1,
        solver=config.solver or dense,
    )
