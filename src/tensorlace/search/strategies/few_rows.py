"""A search on few rows: every row is held out once, and many small models are mixed."""

from dataclasses import replace
from typing import final

import numpy as np

from tensorlace._types import Array
from tensorlace.fitting.outcome import Found
from tensorlace.machines.noise import Noise, with_noise
from tensorlace.search.candidate import Candidate
from tensorlace.search.cost_model import affordable
from tensorlace.search.interval_width import coverage_scale, learning_curve_factor
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
        if not tried:
            self.warn_if_expired()
            return self.unjudged()
        weights = self._weights(tried)
        chosen = np.flatnonzero(weights)
        members, shares = [tried[k] for k in chosen], weights[chosen]
        noise, noise_results, dist = self.noise(members, shares)
        targets = self.trials.targets
        if noise_results:
            scale = coverage_scale(dist, *targets, self.settings.widths)
            dist = with_noise(dist, Noise(shrink=scale), np.zeros(len(dist.mean)))
            # members that see all rows err less than those that the rows held out can speak of
            noise = noise.scaled(scale * self._fall_of_errors(members[int(np.argmax(shares))]))
        self.warn_if_expired()
        steps = self.settings.cost.steps
        ensemble = self.ensemble(
            [Member(t.candidate, t.seed, steps) for t in members], shares, noise
        )
        return Found(ensemble, self.results(members, shares), noise_results, (dist, *targets))

    def _tried(self) -> list[Trial]:
        """Two rounds: many styles, then larger models in the best of them; a straight line last."""
        s, n, width = self.settings, self.n_sampled, self.trials.width
        if not self.trials.parts:
            return []
        fits = 1.0 + s.few.part_cost * len(self.trials.parts)
        work = s.few.first_share * self.budget.work
        tried = self.runner.run(plan(n, width, work, s.candidates, s.cost, fits=fits))
        larger = affordable(
            enlarged(best_of_each_style(tried, s.few.styles), s.candidates.leaps, s.candidates),
            *(n, width, s.few.larger_share * self.budget.work, s.cost),
            fits=fits,
            share=s.few.largest_share,
        )
        tried += self.runner.run(larger[: 1 + n // s.few.rows_per_larger])
        return tried + self.runner.run(self._line())

    def _line(self) -> list[Candidate]:
        """The straight line, where it may stand alone: not if there are too few rows to tell by."""
        (line,) = self.task.distinct([self.settings.candidates.line])
        possible = line.straight and not self.task.config.curvature.one_core
        # where the line with a product, of twice the weights, was not too large
        small = 2 * self.trials.width.weights(line) <= self.settings.cost.most_weights
        enough = self.n_sampled >= self.settings.rows.least_to_choose
        return [line] if possible and small and enough else []

    def _weights(self, tried: list[Trial]) -> Array:
        """Weights (K,) of all that were tried; a plain model has all of it if nothing is better."""
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
                return np.asarray(np.arange(len(tried)) == plain, dtype=np.float64)
        return mixture_weights(self.trials, tried, allowed, trust, n_members, self.settings)

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
