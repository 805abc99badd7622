"""Members of the mixture, fitted to all rows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import final

from tensorlace.machines.fitted import Fitted
from tensorlace.machines.machine import KernelMachine
from tensorlace.machines.pruning import prune
from tensorlace.rows.stop import NEVER, PassEndedError, Stop
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
    members: Sequence[Member],
    table: Table,
    task: Task,
    workers: Workers,
    stops: Sequence[Stop] | None = None,
) -> tuple[KernelMachine | None, ...]:
    """Fit members to all rows, side by side, and drop weights that the evidence switched off.

    None stands for those that their entry of ``stops`` has ended before they were worth having.
    """
    stops = [NEVER] * len(members) if stops is None else stops
    machines: list[KernelMachine | None] = []
    pairs = zip(members, stops, strict=True)
    for machine in workers.map(
        [partial(_fit, member, table, task, stop) for member, stop in pairs]
    ):
        machines.append(machine)
        if task.report is not None and machine is not None:
            number = len(machines)
            task.report(f"member {number}/{len(members)}: {members[number - 1].candidate}")
    return tuple(machines)


def _fit(member: Member, table: Table, task: Task, stop: Stop) -> KernelMachine | None:
    if stop.due:
        return None
    fits = task.settings.fits
    try:
        machine = fit_candidate(
            *(replace(task.config, stop=stop), member.candidate, table, fits),
            seed=member.seed,
            max_steps=member.steps,
            rough=table.n_rows >= fits.rough_from,
            begin=member.begin,
            bends=member.bends,
            memory_budget=task.memory_budget,
        )
    except PassEndedError:
        return None
    arrived = machine.fit.n_steps >= member.steps or machine.fit.gradient <= fits.tol
    if stop.due and not arrived:
        # one that went on from a trial is better than that after any step
        settled = task.settings.budget.settled_share * member.steps
        if machine.fit.n_steps < (settled if member.begin is None else 1):
            return None
    return prune(machine)
