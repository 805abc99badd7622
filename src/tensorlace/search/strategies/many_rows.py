"""A search on many rows: one part is held out, and few large models are mixed."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, final

import numpy as np

from tensorlace._types import Array
from tensorlace.fitting.outcome import Found
from tensorlace.machines.ensemble import Ensemble
from tensorlace.machines.noise import GAUSSIAN, Noise, with_noise
from tensorlace.predictive.distributions import Distribution
from tensorlace.search.cost_model import affordable, cost
from tensorlace.search.interval_width import coverage_scale, leave_one_out
from tensorlace.search.noise_selection import Residuals, choose_again
from tensorlace.search.plan import enlarged, plan
from tensorlace.search.strategies.members import Member
from tensorlace.search.strategies.strategy import Strategy
from tensorlace.search.trial_runner import best_first, best_of_each_style
from tensorlace.search.trials import Trial
from tensorlace.search.weights import affordable_members, mixture_weights
from tensorlace.sources.sampling import part_of

__all__ = ["ManyRows"]

Judgement = tuple[Distribution, Array, Array | None]
"""What is said of unseen rows, their targets and weights."""


@final
class ManyRows(Strategy):
    """Ever larger candidates in the best styles, final fits that go on from the trials."""

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
        self.warn_if_expired()
        ensemble = self.ensemble([self._final(t) for t in members], shares, noise)
        unseen = (dist, *self.trials.targets)
        if noise_results and self._leverages_known():
            ensemble, noise_results, unseen = self._by_rows_left_out(ensemble, noise_results)
        elif noise_results:
            ensemble, unseen = self._by_rows_held_out(ensemble, dist)
        return Found(ensemble, self.results(members, shares), noise_results, unseen)

    def _tried(self) -> list[Trial]:
        """Many styles on few rows, then the best on many: larger ones, then fits for longer."""
        s, trials, width, run = self.settings, self.trials, self.trials.width, self.runner.run
        if not trials.parts:
            return []
        train, held = trials.parts[0]
        n, first_rows, work = int(train.sum()), s.many.first_rows, self.budget.work
        on_few = replace(trials, parts=[(part_of(train, first_rows), held)])
        share = s.many.first_share * work
        candidates = plan(first_rows, width, share, s.candidates, s.cost, polynomials=True)
        first = run(candidates, on_few)
        styles = best_of_each_style(first, s.many.styles)
        left, tried = s.many.larger_share * work, list[Trial]()
        larger = [*styles[:1], *enlarged(styles, s.candidates.steps, s.candidates)]
        for number in range(s.many.rounds):  # larger and larger, as long as that is better
            chosen = affordable(
                *(larger, n, width, s.many.round_share * left, s.cost),
                at_least=0 if number else 1,
                share=s.many.largest_share,
            )
            new = run(chosen)
            if not new:
                break
            left -= sum(cost(c, width, n, s.cost) for c in chosen)
            tried += new
            best = best_of_each_style(tried, s.many.later_styles)
            larger = enlarged(best, s.candidates.steps, s.candidates)
            if best_first(tried)[0] not in new:
                break
        return self._prolonged(tried, left + s.many.longer_share * work, n) if tried else first

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

    def _weights(self, tried: Sequence[Trial]) -> Array:
        """Weights (K,) of all that were tried; not zero for the best that can be fitted to all."""
        settings = self.settings
        allowed = affordable_members(
            self.trials,
            tried,
            [self._final_steps(t) for t in tried],
            settings.many.final_share * self.budget.work,
            self.table.n_rows,
            settings,
        )
        n_members = self.task.n_members or settings.many.n_members
        trust = settings.weights.default_trust
        return mixture_weights(self.trials, tried, allowed, trust, n_members, settings)

    def _final(self, trial: Trial) -> Member:
        """Go on from a trial, for longer if that paid with part of the rows."""
        return Member(
            trial.candidate,
            trial.seed,
            self._final_steps(trial),
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
        residuals = Residuals(X, y, weight, dist)
        noise, found = choose_again(residuals, ensemble.noise, task.noise, settings.noise)
        h = noise.log_variance(X, task.threads)
        scale = coverage_scale(with_noise(dist, noise, h), y, weight, settings.widths)
        noise = noise.scaled(scale)
        lines = [{**line, "chosen": False} for line in before]
        lines += [{**line, "rows": "left out"} for line in found]
        return replace(ensemble, noise=noise), lines, (with_noise(dist, noise, h), y, weight)

    def _by_rows_held_out(
        self, ensemble: Ensemble, dist: Distribution
    ) -> tuple[Ensemble, Judgement]:
        """Widths from what the mixture of the trials says of rows held out."""
        y, weight = self.trials.targets
        scale = coverage_scale(dist, y, weight, self.settings.widths)
        dist = with_noise(dist, Noise(shrink=scale), np.zeros(len(y)))
        return replace(ensemble, noise=ensemble.noise.scaled(scale)), (dist, y, weight)
