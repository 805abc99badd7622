"""A search on many rows: one part is held out, and few large models are mixed."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, final

import numpy as np

from tensorlace._types import Array, Mask
from tensorlace.fitting.outcome import Found
from tensorlace.machines.ensemble import Ensemble
from tensorlace.machines.noise import GAUSSIAN
from tensorlace.machines.noises.registry import NOISES
from tensorlace.predictive.distributions import Distribution
from tensorlace.search.candidate import Candidate
from tensorlace.search.cost_model import affordable, cost
from tensorlace.search.interval_width import leave_one_out
from tensorlace.search.noise_selection import Residuals, choose_again
from tensorlace.search.parallel import Workers
from tensorlace.search.plan import enlarged, plan
from tensorlace.search.strategies.cross_fitting import CrossFitted, cross_fitted
from tensorlace.search.strategies.members import Member
from tensorlace.search.strategies.strategy import JudgedNoise, Strategy
from tensorlace.search.strategies.tails import degrees_of, trusted
from tensorlace.search.task import Budget, Task
from tensorlace.search.trial_runner import best_first, best_of_each_style
from tensorlace.search.trials import Trial, Trials
from tensorlace.search.weights import (
    affordable_members,
    choice_folds,
    mixture_weights,
    plain_model,
)
from tensorlace.sources import Table
from tensorlace.sources.sampling import fold_numbers, part_of

__all__ = ["ManyRows"]

Judgement = tuple[Distribution, Array, Array | None]
"""What is said of unseen rows, their targets and weights."""


@final
class ManyRows(Strategy):
    """Ever larger candidates in the best styles, final fits that go on from the trials."""

    def __init__(
        self, task: Task, table: Table, trials: Trials, budget: Budget, workers: Workers
    ) -> None:
        super().__init__(task, table, trials, budget, workers)
        self._steps: dict[int, int] = {}

    def search(self) -> Found:
        """Choose, fit and mix."""
        tried = self._tried()
        self.trials_cut = self.budget.trials.due
        if not tried:
            self.warn_if_expired()
            return self.unjudged()
        weigh = self._weighing(tried)
        members, shares, judged = self._judged(tried, weigh(None))
        folds = choice_folds(self.trials, self.settings) if judged.results else None
        crossed = None
        if folds is not None:
            weights = [weigh(folds != fold) for fold in np.unique(folds)]
            crossed = self.cross_fitted(tried, weights, folds, judged)
            plain = self._plain(tried, crossed)
            if plain is not None:
                members, shares, judged = self._judged(tried, plain)
                crossed = self.cross_fitted(tried, [plain] * len(weights), folds, judged)
        self.warn_if_expired()
        mixed = self.ensemble([self._final(t) for t in members], members, shares, judged.noise)
        ensemble, shares = mixed.ensemble, mixed.weights
        noise_results, dist = judged.results, judged.dist
        unseen = (dist, *self.trials.all_targets)
        if noise_results and self._leverages_known() and mixed.whole:
            ensemble, noise_results, unseen = self._by_rows_left_out(ensemble, noise_results)
        elif crossed is not None:
            noise = crossed.noise(ensemble.noise, 1.0, self.settings)
            ensemble = replace(ensemble, noise=noise)
            unseen = (crossed.scaled(self.settings), *self.trials.all_targets)
        return Found(ensemble, self.results(members, shares), noise_results, unseen, mixed.cut)

    def _judged(self, tried: list[Trial], weights: Array) -> tuple[list[Trial], Array, JudgedNoise]:
        """Members, their weights, and the noise of their mixture."""
        chosen = np.flatnonzero(weights)
        members, shares = [tried[k] for k in chosen], weights[chosen]
        self.leave_wild_rows_aside(members, shares)
        return members, shares, self.noise(members, shares)

    def _plain(self, tried: list[Trial], crossed: CrossFitted) -> Array | None:
        """Weights of the constant or the line alone, if the mixture is not clearly better."""
        scores = crossed.dist.logpdf(crossed.y)
        plain = plain_model(self.trials, tried, scores, crossed.folds, self.settings)
        if plain is None:
            return None
        return np.asarray(np.arange(len(tried)) == plain, dtype=np.float64)

    def _tried(self) -> list[Trial]:
        """Small models in many styles and the best of them in larger sizes, and a straight line."""
        tried = self._grown()
        return tried + self.runner.run(self.line()) if tried else tried

    def _grown(self) -> list[Trial]:
        """Many styles on few rows, then the best on many: larger ones, then fits for longer."""
        s, trials, width = self.settings, self.trials, self.trials.width
        if not trials.parts:
            return []
        train, held = trials.parts[0]
        n, first_rows, work = int(train.sum()), s.many.first_rows, self.budget.work
        on_few = replace(trials, parts=[(part_of(train, first_rows), held)])
        share = s.many.first_share * work
        ceiling = self.ceiling
        candidates = plan(
            *(first_rows, width, share, s.candidates, s.cost), polynomials=True, ceiling=ceiling
        )
        first = self.first_round(candidates, on_few)
        possible = [t for t in first if self._possible(t.candidate)]
        styles = best_of_each_style(possible, s.many.styles)
        left, tried = self._left(s.many.larger_share * work, styles), list[Trial]()
        larger = [*styles[:1], *enlarged(styles, s.candidates.steps, s.candidates)]
        for number in range(s.many.rounds):  # larger and larger, as long as that is better
            chosen = affordable(
                *(
                    [c for c in larger if self._possible(c)],
                    n,
                    width,
                    s.many.round_share * left,
                    s.cost,
                ),
                at_least=0 if number else 1,
                share=s.many.largest_share,
                ceiling=ceiling,
            )
            new = self.runner.run(chosen)
            if not new:
                break
            left -= sum(cost(c, width, n, s.cost) for c in chosen)
            tried += new
            best = best_of_each_style(tried, s.many.later_styles)
            larger = enlarged(best, s.candidates.steps, s.candidates)
            if best_first(tried)[0] not in new:
                break
        if not tried:
            return first
        longer = self._left(left + s.many.longer_share * work, [best_first(tried)[0].candidate])
        return self._prolonged(tried, longer, n)

    def _least_final(self, c: Candidate) -> float:
        """Seconds of one thread that the shortest final fit takes."""
        size, steps = (self.trials.width, self.table.n_rows), self.settings.budget
        return cost(c, *size, self.settings.cost, steps.fewest_final_steps)

    def _possible(self, c: Candidate) -> bool:
        """Whether a budget that was given pays for a fit to all rows."""
        share = self.settings.budget.dear_final_share
        return not self.budget.given or self._least_final(c) <= share * self.budget.work

    def _left(self, work: float, finals: Sequence[Candidate]) -> float:
        """The ``work``, or what of a budget that was given any of these final fits leaves."""
        if not self.budget.given:
            return work
        last = max(map(self._least_final, finals), default=0.0)
        return min(work, max(self.budget.work - self.runner.spent - last, 0.0))

    def _prolonged(self, tried: list[Trial], work: float, n: int) -> list[Trial]:
        """``tried`` with the best fitted for longer, as long as that helps and work is left.

        Where there is next to no noise, a fit goes on improving for hundreds of steps.
        """
        settings = self.settings.many
        growing = best_first(tried)
        while growing:
            chosen = list[Trial]()
            for trial in growing[: settings.prolonged]:
                seconds = cost(trial.candidate, self.trials.width, n, self.settings.cost)
                if seconds <= work:
                    chosen.append(trial)
                    work -= seconds
            if not chosen:
                break
            kept = self.runner.prolong(chosen, settings.prolonging_gain)
            longer = {id(old): new for old, new in zip(chosen, kept, strict=True)}
            tried = [longer.get(id(t), t) for t in tried]
            pairs = zip(chosen, kept, strict=True)
            growing = best_first(
                [new for old, new in pairs if new.prolongations > old.prolongations]
            )
        return tried

    def _weighing(self, tried: Sequence[Trial]) -> Callable[[Mask | None], Array]:
        """How all that were tried are weighed (K,) by some rows held out, or by all of them.

        Not zero for the best that can be fitted to all rows.
        """
        settings, work = self.settings, self.settings.many.final_share * self.budget.work
        fewest = None
        if self.budget.given:  # what trials have left is for the members, and no more than that
            work = self.budget.work - self.runner.spent
            fewest = settings.budget.fewest_final_steps
        # a line is kept beside the mixture, for rows where all others are at a loss
        lines = [k for k, t in enumerate(tried) if t.candidate.straight]
        curved = [k for k in range(len(tried)) if k not in lines] or lines
        found, steps = affordable_members(
            self.trials,
            [tried[k] for k in curved],
            [self._final_steps(tried[k]) for k in curved],
            work,
            self.table.n_rows,
            settings,
            fewest=fewest,
        )
        allowed = np.array(curved)[found]
        self._steps = {id(t): self._final_steps(t) for t in tried}
        self._steps |= {id(tried[k]): most for k, most in zip(curved, steps, strict=True)}
        n_members = self.task.n_members or settings.many.n_members
        trust = settings.weights.default_trust

        share = settings.many.line_share if lines and n_members > 1 else 0.0

        def weigh(rows: Mask | None) -> Array:
            w = mixture_weights(self.trials, tried, allowed, trust, n_members, settings, rows)
            w *= 1.0 - share
            w[lines[:1]] += share
            return w

        return weigh

    def _final(self, trial: Trial) -> Member:
        """Go on from a trial, for longer if that paid with part of the rows."""
        return Member(
            trial.candidate,
            trial.seed,
            self._steps[id(trial)],
            begin=trial.fits[0],
            bends=trial.prolongations > 0,
        )

    def _final_steps(self, trial: Trial) -> int:
        most = self.settings.many.final_prolongations
        return self.settings.cost.final_steps * (1 + min(trial.prolongations, most))

    def _leverages_known(self) -> bool:
        """Whether the posterior is the whole one, whose variances give leverages."""
        config = self.task.config
        return config.curvature.gauss_newton and config.truncation.threshold is None

    def _by_rows_left_out(
        self, ensemble: Ensemble, before: Sequence[dict[str, Any]]
    ) -> tuple[Ensemble, list[dict[str, Any]], Judgement]:
        """Noise and widths of final members from what they say of rows left out.

        With fewer weights than rows, leaving one out is close to linear. ``before`` are the lines
        of the noises that were compared on rows held out.
        """
        sample, task, settings = self.trials.sample, self.task, self.settings
        X, y, weight = sample.X, sample.y, sample.weight
        own = replace(ensemble, noise=GAUSSIAN)
        dist = leave_one_out(own, X, y, weight, settings.widths, task.threads)
        degrees = degrees_of([m.fit.degrees for m in ensemble.machines], ensemble.weights)
        rows = Residuals(X, y, trusted(dist, y, weight, degrees), dist)
        folds = fold_numbers(X, y, settings.rows.n_folds)
        noise, found = choose_again(rows, ensemble.noise, task.noise, settings.noise)
        counted = weight
        if NOISES[noise.kind].varies:  # its network was fitted to errors in rows held out
            counted = np.where(self.trials.held, 0.0, 1.0 if weight is None else weight)
        crossed = cross_fitted(
            [rows] * len(np.unique(folds)),
            *(noise, noise.log_variance(X, task.threads), folds, counted, task.noise, settings),
        )
        noise = crossed.noise(noise, 1.0, settings)
        lines = [{**line, "chosen": False} for line in before]
        lines += [{**line, "rows": "left out"} for line in found]
        return replace(ensemble, noise=noise), lines, (crossed.scaled(settings), y, weight)
