"""Rounds of a search: many small models in many styles, then larger ones in the best of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, final

import numpy as np

from tensorlace.fitting.config import Config
from tensorlace.laplace.curvature import Last
from tensorlace.machines.noise import KINDS
from tensorlace.rows.memory import MEMORY_BUDGET
from tensorlace.search.candidate import Candidate, Width
from tensorlace.search.cost_model import MOST_WEIGHTS, affordable, cost
from tensorlace.search.parallel import Workers
from tensorlace.search.plan import CHOOSE_FROM, LINE, STEPWISE, enlarged, plan
from tensorlace.search.trials import Trial, Trials
from tensorlace.sources.sampling import part_of

__all__ = ["Runner", "Task", "cross_validated", "held_out"]

FIRST_ROWS = 2000
"""Rows that the first candidates are fitted to where a part is held out."""

_STYLES_KEPT, _ROUNDS = 4, 5
_MOST_LONGER, _WORTH = 8, 0.01
"""Trials that are fitted for longer, and nats per row for which one goes on."""


@final
@dataclass(frozen=True, eq=False)
class Task:
    """What is to be searched.

    Attributes
    ----------
    config : Config
        Everything that is not searched.
    given : dict
        Fields of `Candidate` that the user has fixed.
    seed : int
        Starts of all fits follow from it.
    budget : float
        Seconds, turned into a number of candidates by the cost model.
    n_members : int or None
        Most members of the mixture.
    noise : sequence of str
        Kinds of noise that are allowed.
    threads : int
        Candidates are fitted side by side.
    report : callable or None
        Told the text of each fit that is done.
    """

    config: Config
    given: dict[str, Any]
    seed: int
    budget: float
    n_members: int | None = None
    noise: Sequence[str] = KINDS
    threads: int = 1
    memory_budget: int = MEMORY_BUDGET
    report: Callable[[str], None] | None = None

    def distinct(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Candidates with what the user has fixed, each once."""
        return list(dict.fromkeys(replace(c, **self.given) for c in candidates))


@final
class Runner:
    """Tries candidates and remembers how they did."""

    def __init__(
        self,
        task: Task,
        trials: Trials,
        width: Width,
        expired: Callable[[], bool],
        workers: Workers,
    ) -> None:
        self.task, self.trials, self.width = task, trials, width
        self.expired, self.workers = expired, workers
        self.tried: list[Trial] = []
        self._seen: dict[int, set[Candidate]] = {}
        self._seeds = np.random.default_rng(task.seed)
        self._number, self._spent = count(1), 0.0

    @property
    def work(self) -> float:
        """Seconds of one thread that may be spent in all."""
        return self.task.budget * self.task.threads

    def __call__(
        self, candidates: Sequence[Candidate], trials: Trials | None = None
    ) -> list[Trial]:
        """Try those that have not been tried on these rows."""
        trials = trials or self.trials
        seen = self._seen.setdefault(id(trials), set())
        new = [c for c in self.task.distinct(candidates) if c not in seen]
        seen.update(new)
        seeds = self._seeds.integers(2**31, size=len(new)).tolist()

        found = trials.run(new, seeds, self.workers, self._done, self.expired)
        self.tried += found
        return found

    def further(self, tried: Sequence[Trial]) -> list[Trial]:
        """Go on with fits from where they ended, and keep the better of both."""
        candidates, seeds = [t.candidate for t in tried], [t.seed for t in tried]
        found = self.trials.run(
            candidates, seeds, self.workers, self._done, self.expired, begins=tried
        )
        if len(found) < len(tried):  # the clock has stopped some
            return list(tried)
        kept = []
        for old, new in zip(tried, found, strict=True):
            paid = old.longer + (new.score > old.score + _WORTH)
            new = replace(new, longer=paid, seconds=old.seconds + new.seconds)
            kept.append(max(old, new, key=lambda t: t.score))
        longer = {id(old): t for old, t in zip(tried, kept, strict=True)}
        self.tried = [longer.get(id(t), t) for t in self.tried]
        return kept

    def _done(self, candidate: Candidate, n_rows: int) -> None:
        """Tell of a fit, and by the cost model, which part of the work is done."""
        if self.task.report is None:
            return
        self._spent += cost(candidate, self.width, n_rows)
        share = min(self._spent / self.work, 1.0)
        self.task.report(f"fit {next(self._number)}, {share:.0%} of the budget: {candidate}")

    def best(self, tried: Sequence[Trial]) -> list[Trial]:
        """Best first."""
        return sorted(tried, key=lambda t: -t.score)

    def results(self, shares: dict[int, float]) -> list[dict[str, Any]]:
        """One line per candidate, by weight in the mixture and then by score."""
        ranked = sorted(self.best(self.tried), key=lambda t: -shares.get(id(t), 0.0))
        return [
            {
                **vars(t.candidate),
                "log_evidence": t.log_evidence,
                "held_out_log_score": t.score,
                "seconds": t.seconds,
                "weight": shares.get(id(t), 0.0),
            }
            for t in ranked
        ]


def cross_validated(run: Runner, n: int) -> list[Trial]:
    """Two rounds: many styles, then larger models in the best of them; a straight line last."""
    fits = 1.0 + 0.8 * len(run.trials.parts)
    tried = run(plan(n, run.width, 0.5 * run.work, fits))
    larger = enlarged(_styles(run.best(tried), _STYLES_KEPT))
    larger = affordable(larger, n, run.width, 0.5 * run.work, fits, share=0.35)
    tried += run(larger[: 1 + n // 40])
    return tried + run(_line(run, n))


def _line(run: Runner, n: int) -> list[Candidate]:
    """The straight line, where it may stand alone: not if there are too few rows to tell by."""
    (line,) = run.task.distinct([LINE])
    possible = line.straight and not isinstance(run.task.config.curvature, Last)
    # where the line with a product, of twice the weights, was not too large
    small = 2 * run.width.weights(line) <= MOST_WEIGHTS
    return [line] if possible and small and n >= CHOOSE_FROM else []


def held_out(run: Runner) -> list[Trial]:
    """Many styles on few rows, then the best of them on many: larger, then fitted for longer."""
    (train, held) = run.trials.parts[0]
    small = replace(run.trials, parts=[(part_of(train, FIRST_ROWS), held)])
    n = int(train.sum())
    first = run(plan(FIRST_ROWS, run.width, 0.15 * run.work, smooth=True), small)
    styles = _styles(run.best(first), _STYLES_KEPT)
    left, tried = 0.4 * run.work, list[Trial]()
    larger = [*styles[:1], *enlarged(styles, STEPWISE)]
    for number in range(_ROUNDS):  # larger and larger, as long as that is better
        chosen = affordable(larger, n, run.width, 0.5 * left, at_least=not number, share=0.5)
        new = run(chosen)
        if not new:
            break
        left -= sum(cost(c, run.width, n) for c in chosen)
        tried += new
        larger = enlarged(_styles(run.best(tried), 2), STEPWISE)
        if run.best(tried)[0] not in new:
            break
    return _longer(run, tried, left + 0.2 * run.work, n) if tried else first


def _longer(run: Runner, tried: list[Trial], work: float, n: int) -> list[Trial]:
    """``tried`` with the best ones fitted for longer, as long as that helps and work is left.

    Where there is next to no noise, a fit goes on improving for hundreds of steps.
    """
    growing = run.best(tried)
    while growing:
        chosen = list[Trial]()
        for trial in growing[:_MOST_LONGER]:
            seconds = cost(trial.candidate, run.width, n)
            if seconds <= work:
                chosen.append(trial)
                work -= seconds
        if not chosen:
            break
        kept = run.further(chosen)
        longer = {id(old): new for old, new in zip(chosen, kept, strict=True)}
        tried = [longer.get(id(t), t) for t in tried]
        pairs = zip(chosen, kept, strict=True)
        growing = run.best([new for old, new in pairs if new.longer > old.longer])
    return tried


def _styles(best: Sequence[Trial], most: int) -> list[Candidate]:
    """The best candidate of each style, whatever its size."""
    styles: dict[Candidate, Candidate] = {}
    for trial in best:
        styles.setdefault(replace(trial.candidate, rank=1, n_basis=1), trial.candidate)
    return list(styles.values())[:most]
