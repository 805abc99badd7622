"""Candidates fitted to some rows and judged on others."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from time import monotonic, perf_counter
from typing import NamedTuple, final

import numpy as np

from tensorlace._types import Array, Mask
from tensorlace.fitting.config import Config
from tensorlace.likelihoods import student
from tensorlace.machines.fitted import Convergence, Fitted, worst
from tensorlace.machines.machine import KernelMachine
from tensorlace.predictive.distributions import Normal
from tensorlace.rows.memory import MEMORY_BUDGET
from tensorlace.rows.stop import PassEndedError
from tensorlace.search.candidate import Candidate, Width
from tensorlace.search.candidate_fit import fit_candidate, width_of
from tensorlace.search.parallel import Workers
from tensorlace.search.settings import SearchSettings
from tensorlace.search.stacking import Unseen
from tensorlace.search.task import Progress
from tensorlace.sources import ArraySource, Chunk

__all__ = ["Trial", "Trials"]


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
    machines : tuple of KernelMachine
        One per part; none if other processes fitted them.
    prolongations : int
        How often it paid to go on where the fits had ended.
    gradient : float
        Largest relative gradient that a fit ended with.
    convergence : Convergence or None
        Worst of the fits in each respect.
    degrees : float
        Of Student's t that its fits have on average, by which it is judged; infinite without tails.
    """

    candidate: Candidate
    seed: int
    means: Array
    epistemic: Array
    aleatoric: Array
    score: float
    log_evidence: float
    seconds: float
    machines: tuple[KernelMachine, ...]
    prolongations: int = 0
    gradient: float = math.nan
    convergence: Convergence | None = None
    degrees: float = np.inf

    @property
    def fits(self) -> tuple[Fitted, ...]:
        """One per part; none if other processes fitted them."""
        return tuple(machine.fit for machine in self.machines)


class Attempt(NamedTuple):
    """A candidate fitted to one part.

    Attributes
    ----------
    machine : KernelMachine or None
        None if it stays in another process.
    log_evidence : float
    said : (3, n) array
        Mean, epistemic and aleatoric standard deviation of the rows held out.
    seconds : float
    gradient : float
        Relative gradient that the fit ended with.
    convergence : Convergence or None
    degrees : float
        Of the fit.
    """

    machine: KernelMachine | None
    log_evidence: float
    said: Array
    seconds: float
    gradient: float
    convergence: Convergence | None
    degrees: float


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
        Whether values may be missing.
    parts : sequence of (train, held) masks
        Each row of `held` is in one of them.
    settings : SearchSettings
    memory_budget : int
    judging : array or None
        Weights of the rows held out in choices, where they are not those of the sample.
    """

    config: Config
    sample: Chunk
    names: tuple[str, ...]
    missing: bool
    parts: Sequence[tuple[Mask, Mask]]
    settings: SearchSettings = SearchSettings()
    memory_budget: int = MEMORY_BUDGET
    judging: Array | None = None

    @cached_property
    def width(self) -> Width:
        """How many functions the columns have."""
        return width_of(self.config, self.sample)

    @property
    def held(self) -> Mask:
        """Rows (n,) that some part holds out."""
        return np.any([held for _, held in self.parts], axis=0)

    @property
    def targets(self) -> tuple[Array, Array | None]:
        """Targets of the rows held out, and their weights in choices."""
        y, weight = self.all_targets
        return y, weight if self.judging is None else self.judging

    @property
    def all_targets(self) -> tuple[Array, Array | None]:
        """Targets of the rows held out, and their weights in the sample."""
        weight, held = self.sample.weight, self.held
        return self.sample.y[held], None if weight is None else weight[held]

    @property
    def n_held(self) -> float:
        """Number of rows held out, repetitions counted."""
        y, weight = self.targets
        return float(len(y) if weight is None else weight.sum())

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
        deadline: float,
        *,
        progress: Progress | None = None,
        begins: Sequence[Trial] | None = None,
    ) -> list[Trial]:
        """Try all, side by side; those not begun at the ``deadline`` are left out.

        ``begins`` are trials of the same candidates on the same rows to go on from. What other
        processes have fitted stays there.
        """
        how = partial(_attempt, self, deadline=deadline, keep=not workers.processes)
        jobs = [
            partial(how, candidate, seed, p, None if begins is None else begins[k].fits[p])
            for k, (candidate, seed) in enumerate(zip(candidates, seeds, strict=True))
            for p in range(len(self.parts))
        ]
        results: list[Attempt | None] = []
        for attempted in workers.map(jobs):
            k, p = divmod(len(results), len(self.parts))
            if attempted is not None and progress is not None:
                progress.fitted(candidates[k], self.width, int(self.parts[p][0].sum()))
            results.append(attempted)
        n = len(self.parts)
        by_candidate = [results[k * n : (k + 1) * n] for k in range(len(candidates))]
        return [
            self._judged(candidate, seed, [a for a in attempts if a is not None])
            for candidate, seed, attempts in zip(candidates, seeds, by_candidate, strict=True)
            if all(a is not None for a in attempts)
        ]

    def _judged(self, candidate: Candidate, seed: int, attempts: Sequence[Attempt]) -> Trial:
        """What fits to all parts say of the rows held out, and how good that is."""
        y, weight = self.targets
        said = np.zeros((3, len(self.held)))
        for (_, held), attempted in zip(self.parts, attempts, strict=True):
            said[:, held] = attempted.said
        mean, e, a = said[:, self.held]
        degrees = float(np.exp(np.mean(np.log([x.degrees for x in attempts]))))
        density = Normal(mean, e, a).logpdf(y)
        if np.isfinite(degrees):
            z, std = (y - mean) / np.hypot(e, a), np.hypot(e, a)
            density = student.log_density(z * z, degrees) - np.log(std)
        return Trial(
            candidate,
            seed,
            *(mean, e, a),
            score=float(np.average(density, weights=weight)),
            log_evidence=float(np.mean([x.log_evidence for x in attempts])),
            seconds=sum(x.seconds for x in attempts),
            machines=tuple(x.machine for x in attempts if x.machine is not None),
            gradient=max(x.gradient for x in attempts),
            convergence=worst([x.convergence for x in attempts if x.convergence is not None]),
            degrees=degrees,
        )

    @staticmethod
    def unseen(trials: Sequence[Trial]) -> Unseen:
        """What all of them say of the rows held out."""
        parts = ("means", "epistemic", "aleatoric")
        degrees = np.array([t.degrees for t in trials])
        means, e, a = (np.stack([getattr(t, part) for t in trials]) for part in parts)
        return Unseen(means, e, a, None if np.all(np.isinf(degrees)) else degrees)


def _attempt(
    trials: Trials,
    candidate: Candidate,
    seed: int,
    part: int,
    begin: Fitted | None,
    *,
    deadline: float,
    keep: bool,
) -> Attempt | None:
    """Fit a candidate to one part; None if the deadline has passed."""
    stop = trials.config.stop
    if monotonic() > deadline or stop.due:
        return None
    start, (train, held) = perf_counter(), trials.parts[part]
    source, settings = trials.source(train), trials.settings
    try:
        machine = fit_candidate(
            *(trials.config, candidate, source, settings.fits),
            seed=seed,
            max_steps=settings.cost.steps,
            rough=source.n_rows >= settings.fits.rough_from,
            begin=begin,
            bends=begin is not None,
            memory_budget=trials.memory_budget,
        )
    except PassEndedError:
        return None
    d = machine.linearized(trials.sample.X[held])
    said = np.stack([d.means[0], d.epistemic_stds[0], d.aleatoric_stds[0]])
    fit = machine.fit
    seconds = perf_counter() - start
    return Attempt(
        *(machine if keep else None, fit.log_evidence, said, seconds),
        *(fit.gradient, fit.convergence, fit.degrees),
    )
