"""Members of the mixture, fitted to all rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import final

from tensorlace.machines.fitted import Fitted
from tensorlace.machines.machine import KernelMachine
from tensorlace.machines.pruning import prune
from tensorlace.search.candidate import Candidate
from tensorlace.search.candidate_fit import fit_candidate
from tensorlace.search.parallel import Workers
from tensorlace.search.task import Task
from tensorlace.sources import Table

__all__ = ["Member", "fit_members"]


@final
@dataclass(frozen=True, eq=False)
class Member:
    """What is to be fitted to all rows.

    Attributes
    ----------
    candidate : Candidate
    seed : int
        Where its cores start.
    steps : int
        Of the solver.
    begin : Fitted or None
        Where a trial ended, to go on from.
    bends : bool
        Whether steps of `GaussNewton` follow the curvature of the path.
    """

    candidate: Candidate
    seed: int
    steps: int
    begin: Fitted | None = None
    bends: bool = False


def fit_members(
    members: Sequence[Member], table: Table, task: Task, workers: Workers
) -> tuple[KernelMachine, ...]:
    """Fit members to all rows, side by side, and drop weights that the evidence switched off."""
    machines: list[KernelMachine] = []
    for machine in workers.map([partial(_fit, member, table, task) for member in members]):
        machines.append(machine)
        if task.report is not None:
            number = len(machines)
            task.report(f"member {number}/{len(members)}: {members[number - 1].candidate}")
    return tuple(machines)


def _fit(member: Member, table: Table, task: Task) -> KernelMachine:
    fits = task.settings.fits
    return prune(
        fit_candidate(
            *(task.config, member.candidate, table, fits),
            seed=member.seed,
            max_steps=member.steps,
            rough=table.n_rows >= fits.rough_from,
            begin=member.begin,
            bends=member.bends,
            memory_budget=task.memory_budget,
        )
    )
