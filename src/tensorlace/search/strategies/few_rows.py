"""A search on few rows: every row is held out once, and many small models are mixed."""

from collections.abc import Callable
from dataclasses import replace
from typing import final

import numpy as np

from tensorlace._types import Array, Mask
from tensorlace.fitting.outcome import Found
from tensorlace.search.cost_model import affordable
from tensorlace.search.interval_width import learning_curve_factor
from tensorlace.search.plan import enlarged, plan
from tensorlace.search.strategies.members import Member
from tensorlace.search.strategies.strategy import Strategy
from tensorlace.search.trial_runner import best_of_each_style
from tensorlace.search.trials import Trial
from tensorlace.search.weights import (
    choice_folds,
    chosen_trust,
    mixture_weights,
    n_picks,
    plain_model,
)
from tensorlace.sources.sampling import part_of

__all__ = ["FewRows"]


@final
class FewRows(Strategy):
    """Cross-validated candidates, chosen trust in picks, final fits from nothing."""

    def search(self) -> Found:
        """Choose, fit and mix."""
        tried = self._tried()
        self.trials_cut = self.budget.trials.due
        if not tried:
            self.warn_if_expired()
            return self.unjudged()
        weigh = self._weighing(tried)
        everything = weigh(None)
        chosen = np.flatnonzero(everything)
        members, shares = [tried[k] for k in chosen], everything[chosen]
        self.leave_wild_rows_aside(members, shares)
        judged = self.noise(members, shares)
        noise, dist = judged.noise, judged.dist
        folds = choice_folds(self.trials, self.settings) if judged.results else None
        if folds is not None:
            weights = [weigh(folds != fold) for fold in np.unique(folds)]
            crossed = self.cross_fitted(tried, weights, folds, judged)
            # members that see all rows err less than those that the rows held out can speak of
            fall = self._fall_of_errors(members[int(np.argmax(shares))])
            noise, dist = crossed.noise(noise, fall, self.settings), crossed.scaled(self.settings)
        self.warn_if_expired()
        steps = self.settings.cost.steps
        mixed = self.ensemble(
            [Member(t.candidate, t.seed, steps) for t in members], members, shares, noise
        )
        results = self.results(members, mixed.weights)
        unseen = (dist, *self.trials.all_targets)
        return Found(mixed.ensemble, results, judged.results, unseen, mixed.cut)

    def _tried(self) -> list[Trial]:
        """Two rounds: many styles, then larger models in the best of them; a straight line last."""
        s, n, width = self.settings, self.n_sampled, self.trials.width
        if not self.trials.parts:
            return []
        fits = 1.0 + s.few.part_cost * len(self.trials.parts)
        work = s.few.first_share * self.budget.work
        ceiling = self.ceiling
        tried = self.first_round(
            plan(n, width, work, s.candidates, s.cost, fits=fits, ceiling=ceiling)
        )
        larger = affordable(
            enlarged(best_of_each_style(tried, s.few.styles), s.candidates.leaps, s.candidates),
            *(n, width, s.few.larger_share * self.budget.work, s.cost),
            fits=fits,
            share=s.few.largest_share,
        )
        tried += self.runner.run(larger[: 1 + n // s.few.rows_per_larger])
        return tried + self.runner.run(self.line())

    def _weighing(self, tried: list[Trial]) -> Callable[[Mask | None], Array]:
        """How all that were tried are weighed (K,) by some rows held out, or by all of them.

        A plain model has all of the weight if nothing is better.
        """
        n_members = self.task.n_members or self.settings.few.n_members
        # a line without products stands alone, or not at all
        allowed = np.flatnonzero([t.candidate.rank > 0 for t in tried])
        trust = self.settings.weights.default_trust
        folds = choice_folds(self.trials, self.settings)
        if folds is not None:
            mixed = [tried[k] for k in allowed]
            picks = n_picks(n_members, len(mixed), self.settings)
            trust, scores = chosen_trust(self.trials, mixed, picks, folds, self.settings)
            plain = plain_model(self.trials, tried, scores, folds, self.settings)
            if plain is not None:
                alone = np.asarray(np.arange(len(tried)) == plain, dtype=np.float64)
                return lambda _: alone

        def weigh(rows: Mask | None) -> Array:
            return mixture_weights(
                *(self.trials, tried, allowed, trust, n_members, self.settings, rows)
            )

        return weigh

    def _fall_of_errors(self, best: Trial) -> float:
        """Factor by which errors will shrink in the final fits, by fits to half of the rows."""
        trials, (y, weight), settings = self.trials, self.trials.targets, self.settings.widths
        halves = [(part_of(train, int(train.sum()) // 2), held) for train, held in trials.parts]
        again = replace(trials, parts=halves).run(
            [best.candidate], [best.seed], self.workers, self.budget.deadline
        )
        if not again:
            return 1.0
        least = settings.smallest_error * float(np.std(y)) + np.finfo(float).tiny
        share = float(np.mean([train.sum() for train, _ in trials.parts])) / self.table.n_rows
        errors, by_half = (np.log(np.abs(y - trial.means) + least) for trial in (best, *again))
        return learning_curve_factor(errors, by_half, weight, share, settings)
