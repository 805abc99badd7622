"""Candidates tried out: fitted to some rows, asked about others."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple, final

import numpy as np

from tensorlace._types import Array, Mask
from tensorlace.columns.bases import Cosine
from tensorlace.columns.bases.basis import Basis
from tensorlace.fitting.config import Config
from tensorlace.fitting.fit_machines import fit_machines
from tensorlace.fitting.registry import BASES, GROUPS, WARPS
from tensorlace.kinds import Categorical
from tensorlace.machines.fitted import Fitted
from tensorlace.predictive.distributions import Normal
from tensorlace.rows.memory import MEMORY_BUDGET
from tensorlace.search.candidate import Candidate, Width
from tensorlace.search.cost_model import STEPS
from tensorlace.search.parallel import Workers
from tensorlace.search.stacking import Unseen
from tensorlace.solvers.gauss_newton import GaussNewton
from tensorlace.sources import ArraySource, Chunk, Table

__all__ = ["ROUGH_FROM", "Trial", "Trials", "configured", "width_of"]

TOL = 1e-3


_DENSE_WORK = 4e12


_PAIRED_COLUMNS = 40
"""Columns up to which solvers may look at all pairs of them for the last digits."""


ROUGH_FROM = 200
"""Rows from which fits may be rough: with fewer they are quick anyway."""


@final
@dataclass(frozen=True, eq=False)
class Trial:
    """How a candidate did.

    Attributes
    ----------
    candidate : Candidate
    seed : int
        Where its weights began.
    means, epistemic, aleatoric : (n,) arrays
        What it says of the rows held out, in units of y.
    score : float
        Mean log density of their targets.
    log_evidence : float
        Of the rows it was fitted to, on average over the parts.
    seconds : float
    fits : tuple of Fitted
        One per part; none if other processes fitted them.
    longer : int
        How often it paid to go on where the fits had ended.
    """

    candidate: Candidate
    seed: int
    means: Array
    epistemic: Array
    aleatoric: Array
    score: float
    log_evidence: float
    seconds: float
    fits: tuple[Fitted, ...]
    longer: int = 0


class Attempt(NamedTuple):
    """A candidate fitted to one part: what it says of the rows held out, (3, n)."""

    fit: Fitted | None
    log_evidence: float
    said: Array
    seconds: float


@final
@dataclass(frozen=True, eq=False)
class Trials:
    """Rows that candidates are fitted to and judged on.

    Attributes
    ----------
    config : Config
        Everything that is not searched.
    sample : Chunk
    names : tuple of str
    missing : bool
    parts : sequence of (train, held) masks
        Each row of `held` is in one of them.
    """

    config: Config
    sample: Chunk
    names: tuple[str, ...]
    missing: bool
    parts: Sequence[tuple[Mask, Mask]]
    memory_budget: int = MEMORY_BUDGET

    @property
    def held(self) -> Mask:
        """Rows (n,) that some part holds out."""
        return np.any([held for _, held in self.parts], axis=0)

    @property
    def targets(self) -> tuple[Array, Array | None]:
        """Targets and weights of the rows held out."""
        weight = self.sample.weight
        return self.sample.y[self.held], None if weight is None else weight[self.held]

    def source(self, rows: Mask) -> ArraySource:
        """Some of the rows as a table."""
        s, weight = self.sample, self.sample.weight
        weight = None if weight is None else weight[rows]
        return ArraySource(s.X[rows], s.y[rows], weight, self.names, missing=self.missing)

    def run(
        self,
        candidates: Sequence[Candidate],
        seeds: Sequence[int],
        workers: Workers,
        done: Callable[[Candidate, int], None],
        expired: Callable[[], bool],
        begins: Sequence[Trial] | None = None,
    ) -> list[Trial]:
        """Try all, side by side; those not begun when time has ``expired`` are left out.

        ``done`` is told the candidate and the number of rows of each fit; ``begins`` are trials of
        the same candidates on the same rows to go on from. What other processes have fitted stays
        there.
        """
        jobs = [(k, p) for k in range(len(candidates)) for p in range(len(self.parts))]

        def attempt(k: int, p: int) -> Attempt | None:
            if expired():
                return None
            start, (train, held) = perf_counter(), self.parts[p]
            source = self.source(train)
            cut = replace(
                configured(self.config, candidates[k], source, bends=begins is not None),
                max_steps=STEPS,
                tol=TOL,
                rough=source.n_rows >= ROUGH_FROM,
            )
            how: dict[str, Any] = {"seeds": [seeds[k]], "memory_budget": self.memory_budget}
            begin = None if begins is None else begins[k].fits[p]
            (machine,) = fit_machines(cut, source, begin=begin, **how)
            d = machine.linearized(self.sample.X[held])
            said = np.stack([d.means[0], d.epistemic_stds[0], d.aleatoric_stds[0]])
            fit = machine.fit
            kept = None if workers.processes else fit
            return Attempt(kept, fit.log_evidence, said, perf_counter() - start)

        def told(number: int, attempted: Attempt | None) -> None:
            k, p = jobs[number]
            if attempted is not None:
                done(candidates[k], int(self.parts[p][0].sum()))

        results = workers([partial(attempt, k, p) for k, p in jobs], told)
        trials, n, (y, weight) = [], len(self.parts), self.targets
        for k, candidate in enumerate(candidates):
            of_candidate = results[k * n : (k + 1) * n]
            if any(r is None for r in of_candidate):
                continue
            said = np.zeros((3, len(self.held)))
            for (_, held), attempted in zip(self.parts, of_candidate, strict=True):
                said[:, held] = attempted.said
            mean, e, a = said[:, self.held]
            trials.append(
                Trial(
                    candidate,
                    seeds[k],
                    *(mean, e, a),
                    score=float(np.average(Normal(mean, e, a).logpdf(y), weights=weight)),
                    log_evidence=float(np.mean([x.log_evidence for x in of_candidate])),
                    seconds=sum(x.seconds for x in of_candidate),
                    fits=tuple(x.fit for x in of_candidate if x.fit is not None),
                )
            )
        return trials

    @staticmethod
    def unseen(trials: Sequence[Trial]) -> Unseen:
        """What all of them say of the rows held out."""
        parts = ("means", "epistemic", "aleatoric")
        return Unseen(*(np.stack([getattr(t, part) for t in trials]) for part in parts))


def configured(config: Config, c: Candidate, table: Table, *, bends: bool = False) -> Config:
    """``config`` with what the candidate says; ``bends`` is for the steps of `GaussNewton`."""
    D = len(table.names)
    P = (c.rank + c.additive) * c.n_basis * D
    small = min(P, table.n_rows)
    dense = None
    if small * small * max(P, table.n_rows) < _DENSE_WORK:
        dense = GaussNewton(second_order=D <= _PAIRED_COLUMNS, bends=bends)
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


def width_of(config: Config, sample: Chunk) -> Width:
    """How many functions the columns have."""
    kinds = config.kinds or ()
    levels = [
        len(np.unique(sample.X[:, d]))
        for d, kind in enumerate(kinds)
        if isinstance(kind, Categorical)
    ]
    return Width(sample.X.shape[1] - len(levels), sum(levels))
