"""Candidates fitted to some rows and judged on others."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from time import monotonic, perf_counter
from typing import NamedTuple, final

import numpy as np

from tensorlace._types import Array, Mask
from tensorlace.fitting.config import Config
from tensorlace.machines.fitted import Fitted
from tensorlace.predictive.distributions import Normal
from tensorlace.rows.memory import MEMORY_BUDGET
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
    fits : tuple of Fitted
        One per part; none if other processes fitted them.
    prolongations : int
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
    prolongations: int = 0


class Attempt(NamedTuple):
    """A candidate fitted to one part.

    Attributes
    ----------
    fit : Fitted or None
        None if it stays in another process.
    log_evidence : float
    said : (3, n) array
        Mean, epistemic and aleatoric standard deviation of the rows held out.
    seconds : float
    """

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
        Whether values may be missing.
    parts : sequence of (train, held) masks
        Each row of `held` is in one of them.
    settings : SearchSettings
    memory_budget : int
    """

    config: Config
    sample: Chunk
    names: tuple[str, ...]
    missing: bool
    parts: Sequence[tuple[Mask, Mask]]
    settings: SearchSettings = SearchSettings()
    memory_budget: int = MEMORY_BUDGET

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
        """Targets and weights of the rows held out."""
        weight = self.sample.weight
        return self.sample.y[self.held], None if weight is None else weight[self.held]

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
        return Trial(
            candidate,
            seed,
            *(mean, e, a),
            score=float(np.average(Normal(mean, e, a).logpdf(y), weights=weight)),
            log_evidence=float(np.mean([x.log_evidence for x in attempts])),
            seconds=sum(x.seconds for x in attempts),
            fits=tuple(x.fit for x in attempts if x.fit is not None),
        )

    @staticmethod
    def unseen(trials: Sequence[Trial]) -> Unseen:
        """What all of them say of the rows held out."""
        parts = ("means", "epistemic", "aleatoric")
        return Unseen(*(np.stack([getattr(t, part) for t in trials]) for part in parts))


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
    if monotonic() > deadline:
        return None
    start, (train, held) = perf_counter(), trials.parts[part]
    source, settings = trials.source(train), trials.settings
    machine = fit_candidate(
        *(trials.config, candidate, source, settings.fits),
        seed=seed,
        max_steps=settings.cost.steps,
        rough=source.n_rows >= settings.fits.rough_from,
        begin=begin,
        bends=begin is not None,
        memory_budget=trials.memory_budget,
    )
    d = machine.linearized(trials.sample.X[held])
    said = np.stack([d.means[0], d.epistemic_stds[0], d.aleatoric_stds[0]])
    fit = machine.fit
    return Attempt(fit if keep else None, fit.log_evidence, said, perf_counter() - start)
