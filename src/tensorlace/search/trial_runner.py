"""Trials in rounds: seeds, what has been tried already, and the table of results."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, final

import numpy as np

from tensorlace.search.candidate import Candidate, Style
from tensorlace.search.parallel import Workers
from tensorlace.search.task import Budget, Progress, Task
from tensorlace.search.trials import Trial, Trials

__all__ = ["TrialRunner", "best_first", "best_of_each_style"]


@final
class TrialRunner:
    """Tries candidates and remembers how they did.

    Attributes
    ----------
    task : Task
    trials : Trials
        Rows that most candidates are fitted to and judged on.
    budget : Budget
    workers : Workers
    tried : list of Trial
        All, in order.
    """

    def __init__(self, task: Task, trials: Trials, budget: Budget, workers: Workers) -> None:
        self.task, self.trials, self.budget, self.workers = task, trials, budget, workers
        self._progress = Progress(task.report, budget.work, task.settings.cost)
        self.tried: list[Trial] = []
        self._seen: dict[Trials, set[Candidate]] = {}
        self._seeds = np.random.default_rng(task.seed)

    def run(self, candidates: Sequence[Candidate], trials: Trials | None = None) -> list[Trial]:
        """Try those that have not been tried on these rows."""
        trials = trials or self.trials
        seen = self._seen.setdefault(trials, set())
        new = [c for c in self.task.distinct(candidates) if c not in seen]
        seen.update(new)
        seeds = self._seeds.integers(2**31, size=len(new)).tolist()
        found = self._run(trials, new, seeds, None)
        self.tried += found
        return found

    def prolong(self, tried: Sequence[Trial], gain: float) -> list[Trial]:
        """Go on with fits from where they ended, and keep the better of both.

        A trial whose score rises by more than ``gain`` counts one more prolongation.
        """
        candidates, seeds = [t.candidate for t in tried], [t.seed for t in tried]
        found = self._run(self.trials, candidates, seeds, tried)
        if len(found) < len(tried):  # the clock has stopped some
            return list(tried)
        kept = []
        for old, new in zip(tried, found, strict=True):
            paid = old.prolongations + (new.score > old.score + gain)
            new = replace(new, prolongations=paid, seconds=old.seconds + new.seconds)
            kept.append(max(old, new, key=lambda t: t.score))
        longer = {id(old): t for old, t in zip(tried, kept, strict=True)}
        self.tried = [longer.get(id(t), t) for t in self.tried]
        return kept

    @property
    def spent(self) -> float:
        """Seconds of one thread that all trials have taken by the cost model."""
        return self._progress.spent

    def results(self, weights: dict[int, float]) -> list[dict[str, Any]]:
        """One line per trial, by weight in the mixture and then by score.

        ``weights`` are those of the members, by the id of their trials.
        """
        ranked = sorted(best_first(self.tried), key=lambda t: -weights.get(id(t), 0.0))
        return [
            {
                **vars(t.candidate),
                "log_evidence": t.log_evidence,
                "held_out_log_score": t.score,
                "seconds": t.seconds,
                "gradient": t.gradient,
                "decrement": math.nan if t.convergence is None else t.convergence.decrement,
                "precision_change": (
                    math.nan if t.convergence is None else t.convergence.precision_change
                ),
                "weight": weights.get(id(t), 0.0),
            }
            for t in ranked
        ]

    def _run(
        self,
        trials: Trials,
        candidates: Sequence[Candidate],
        seeds: Sequence[int],
        begins: Sequence[Trial] | None,
    ) -> list[Trial]:
        return trials.run(
            *(candidates, seeds, self.workers, self.budget.deadline),
            progress=self._progress,
            begins=begins,
        )


def best_first(tried: Sequence[Trial]) -> list[Trial]:
    """Trials by score."""
    return sorted(tried, key=lambda t: -t.score)


def best_of_each_style(tried: Sequence[Trial], most: int) -> list[Candidate]:
    """The best candidate of each of the best styles, whatever its size."""
    styles: dict[Style, Candidate] = {}
    for trial in best_first(tried):
        styles.setdefault(trial.candidate.style, trial.candidate)
    return list(styles.values())[:most]
