"""What both strategies share: the noise of unseen rows, final fits, and the clock's warning."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tensorlace._types import Array
from tensorlace.errors import TimeBudgetWarning
from tensorlace.fitting.outcome import Found
from tensorlace.fitting.sound_rows import sound_chunk, sound_rows
from tensorlace.fitting.tails import (
    asks_for_tails,
    few_left_out,
    judge_of_wild_rows,
    more_evidence,
)
from tensorlace.machines.distrusted import Judge
from tensorlace.machines.ensemble import Ensemble
from tensorlace.machines.machine import KernelMachine
from tensorlace.machines.noise import GAUSSIAN, LARGEST_LOG, Noise, with_noise
from tensorlace.machines.noise_model import NoiseModel
from tensorlace.machines.noises.registry import NOISES
from tensorlace.predictive.distributions import Distribution
from tensorlace.rows.stop import Stop
from tensorlace.search.candidate import Candidate
from tensorlace.search.cost_model import cost
from tensorlace.search.noise_selection import Residuals, choose_noise, fit_log_variance
from tensorlace.search.parallel import Workers
from tensorlace.search.strategies.cross_fitting import CrossFitted, Folds, cross_fitted
from tensorlace.search.strategies.members import Member, fit_members
from tensorlace.search.strategies.tails import (
    degrees_of,
    tails_allowed,
    tails_help,
    trusted,
    with_tails,
)
from tensorlace.search.task import Budget, Task
from tensorlace.search.trial_runner import TrialRunner
from tensorlace.search.trials import Trial, Trials
from tensorlace.search.weights import enough_rows_for_row_weights
from tensorlace.sources import Table
from tensorlace.sources.sampling import fold_numbers

__all__ = ["JudgedNoise", "Mixed", "Strategy"]


class JudgedNoise(NamedTuple):
    """Noise of a mixture by rows held out.

    Attributes
    ----------
    noise : NoiseModel
    results : list of dict
        One line per kind that was tried; none if rows were too few to choose by.
    dist : Distribution
        What the mixture says with it of the rows held out.
    log_variance : (n,) array
        Of the noise in these rows, by a network that has not seen the row.
    """

    noise: NoiseModel
    results: list[dict[str, Any]]
    dist: Distribution
    log_variance: Array


class Mixed(NamedTuple):
    """A mixture that is fitted.

    Attributes
    ----------
    ensemble : Ensemble
    weights : (M,) array
        Of all members that were to be in it; zero for those that are not.
    whole : bool
        Whether all are fitted to all rows.
    cut : str or None
        What the clock or an interrupt has ended, in words.
    """

    ensemble: Ensemble
    weights: Array
    whole: bool
    cut: str | None


class Strategy(ABC):
    """A way to find a mixture: trials of candidates, weights, noise and widths by unseen rows.

    Parameters
    ----------
    task : Task
    table : Table
        All rows.
    trials : Trials
        The rows that candidates are fitted to and judged on.
    budget : Budget
    workers : Workers
    """

    def __init__(
        self,
        task: Task,
        table: Table,
        trials: Trials,
        budget: Budget,
        workers: Workers,
    ) -> None:
        self.task, self.table, self.trials = task, table, trials
        self.budget, self.workers, self.settings = budget, workers, task.settings
        self.runner = TrialRunner(task, trials, budget, workers)
        self.trials_cut = False
        self.judge: Judge | None = None

    @abstractmethod
    def search(self) -> Found:
        """Choose, fit and mix."""

    @property
    def n_sampled(self) -> int:
        """Rows that candidates are fitted to or judged on."""
        return len(self.trials.sample.y)

    @property
    def ceiling(self) -> float:
        """Seconds of one thread that only the first candidate may exceed."""
        return self.settings.budget.dear_share * self.budget.work if self.budget.given else inf

    def unjudged(self) -> Found:
        """The constant: no row could be held out, or there was no time at all."""
        return Found(self._constant(), self.runner.results({}), cut=self.cut(0, 0))

    def _constant(self) -> Ensemble:
        """A constant alone, whatever the time."""
        (constant,) = self.task.distinct([self.settings.candidates.constant])
        member = Member(constant, self.task.seed, self.settings.cost.steps)
        machines = fit_members([member], self.table, self.task, Workers())
        return Ensemble(_there(machines), np.ones(1))

    def line(self) -> list[Candidate]:
        """The straight line, where it can be judged: not if there are too few rows to tell by."""
        (line,) = self.task.distinct([self.settings.candidates.line])
        possible = line.straight and not self.task.config.curvature.one_core
        # where the line with a product, of twice the weights, was not too large
        small = 2 * self.trials.width.weights(line) <= self.settings.cost.most_weights
        enough = self.n_sampled >= self.settings.rows.least_to_choose
        return [line] if possible and small and enough else []

    def first_round(
        self, candidates: Sequence[Candidate], trials: Trials | None = None
    ) -> list[Trial]:
        """Try candidates, and where the first few ask for tails do something about wild rows.

        They are left out, if nothing else is wrong; otherwise all fits from here on have tails.
        """
        trials, few = trials or self.trials, self.settings.tails.probes
        probes = self.runner.run(candidates[:few], trials)
        deadline = self.budget.deadline
        robust = tails_help(probes, trials, self.task, self.workers, deadline)
        left_out = robust is not None and self._left_out(robust.trial)
        if robust is None or not (left_out or robust.better):
            return probes + self.runner.run(candidates[few:], trials)
        if not left_out:
            self.task, self.settings = with_tails(self.task), with_tails(self.task).settings
        # rows and weights may be others now, and so may what is fitted to them
        self.trials = replace(
            self.trials, config=replace(self.trials.config, tails=self.task.config.tails)
        )
        self.runner = TrialRunner(self.task, self.trials, self.budget, self.workers)
        return self.runner.run(candidates, replace(self.trials, parts=trials.parts))

    def _left_out(self, robust: Trial) -> bool:
        """Leave out rows that a fit with tails finds wild, if the others ask for no tails.

        They may be as far away as in a table without such rows: the model is a small one.
        """
        ends = [self.budget.trials]
        members = [Member(robust.candidate, robust.seed, self.settings.cost.steps)]
        (machine,) = fit_members(members, self.table, with_tails(self.task), Workers(), ends)
        if machine is None:
            return False
        judge = judge_of_wild_rows(Ensemble((machine,), np.ones(1)), self.settings.tails.wild)
        sound = sound_rows(self.table, judge)
        if not few_left_out(sound, self.table):
            return False
        (plain,) = fit_members(members, sound, self.task, Workers(), ends)
        if plain is None or asks_for_tails((plain,), sound, wild=self.settings.tails.wild):
            return False
        self.table, self.judge = sound, judge
        self.trials = replace(self.trials, sample=sound_chunk(judge, self.trials.sample))
        return True

    def leave_wild_rows_aside(self, members: Sequence[Trial], weights: Array) -> None:
        """Give rows held out that members with tails distrust no say in what follows."""
        dist, (y, weight) = Trials.unseen(members).mixture(weights), self.trials.targets
        degrees = degrees_of([t.degrees for t in members], weights)
        if np.isfinite(degrees):
            self.trials = replace(self.trials, judging=trusted(dist, y, weight, degrees))

    def noise(self, members: Sequence[Trial], weights: Array) -> JudgedNoise:
        """Noise that the rows held out speak for."""
        task, trials, settings = self.task, self.trials, self.settings
        y, weight = trials.targets
        dist = Trials.unseen(members).mixture(weights)
        if len(y) < settings.rows.least_to_choose:
            if "student" not in task.noise:
                return JudgedNoise(GAUSSIAN, [], dist, np.zeros(len(y)))
            # too few to choose by, and to know the variance: a mean of n rows has n - 1 degrees
            degrees = max(trials.n_held - 1.0, settings.noise.least_degrees)
            return JudgedNoise(Noise(degrees=degrees), [], dist, np.zeros(len(y)))
        residuals = Residuals(trials.sample.X[trials.held], y, weight, dist)
        variation = None
        varying = self.budget.varying_noise and not self.budget.noise.due
        if varying and any(NOISES[kind].varies for kind in task.noise):
            variation = fit_log_variance(
                residuals,
                fold_numbers(residuals.X, y, settings.rows.n_folds),
                replace(task.config, stop=replace(self.budget.noise, to_the_end=True)),
                trials.names,
                missing=trials.missing,
                seed=task.seed,
                settings=settings.noise,
                fits=settings.fits,
            )
        # a plain model is not one of many that differ, and knows its noise
        plain = len(members) == 1 and members[0].candidate.plain
        noise, results = choose_noise(
            residuals, variation, task.noise, settings.noise, trusted=plain
        )
        h = np.zeros(len(y))
        if variation is not None and NOISES[noise.kind].varies:
            away = variation.held_out - residuals.mean(variation.held_out)
            h = np.clip(noise.strength * away, -LARGEST_LOG, LARGEST_LOG)
        return JudgedNoise(noise, results, with_noise(dist, noise, h), h)

    def cross_fitted(
        self, tried: Sequence[Trial], weights: Sequence[Array], folds: Folds, judged: JudgedNoise
    ) -> CrossFitted:
        """Predictions of rows held out that they had no say in.

        ``weights`` (K,) of all that were ``tried`` follow from the rows outside of each fold.
        """
        y, weight = self.trials.targets
        unseen, X = Trials.unseen(tried), self.trials.sample.X[self.trials.held]
        return cross_fitted(
            [Residuals(X, y, weight, unseen.mixture(w)) for w in weights],
            *(judged.noise, judged.log_variance, folds),
            *(self.trials.all_targets[1], self.task.noise, self.settings),
        )

    def ensemble(
        self, members: Sequence[Member], tried: Sequence[Trial], weights: Array, noise: NoiseModel
    ) -> Mixed:
        """The mixture of members fitted to all rows.

        Where there was no time for that, a member is what its trial has left, or is left out.
        """
        self._warn_if_too_small(members)
        left = [t.machines[0] if t.machines else None for t in tried]
        stop = self.budget.finals
        if stop.asked and None in left:  # other processes have them: the best are fitted quickly
            stop = Stop(stop.deadline).by(monotonic() + self.settings.budget.wrap_up)
        order = np.argsort(-weights, kind="stable")
        in_order = [members[k] for k in order]
        ends = [self._early_enough(stop, member) for member in in_order]
        by_weight = fit_members(in_order, self.table, self.task, self.workers, ends)
        fitted = [by_weight[k] for k in np.argsort(order)]
        machines = [own or other for own, other in zip(fitted, left, strict=True)]
        there = np.array([machine is not None for machine in machines])
        cut = self.cut(len(self.runner.tried), sum(m is not None for m in fitted), len(fitted))
        if not there.any():
            return Mixed(self._constant(), np.zeros(len(weights)), False, cut)
        shares = np.where(there, weights, 0.0) / weights[there].sum()
        sharp = enough_rows_for_row_weights(self.trials, self.settings)
        kept = _there(machines)
        if None not in fitted and tails_allowed(self.task) and not stop.due:
            kept, noise = self._with_tails_if_asked(in_order, order, kept, weights, noise)
        mixture = Ensemble(kept, shares[there], sharp=sharp, noise=noise)
        return Mixed(mixture, shares, None not in fitted, cut)

    def _with_tails_if_asked(
        self,
        in_order: Sequence[Member],
        order: npt.NDArray[np.intp],
        machines: tuple[KernelMachine, ...],
        weights: Array,
        noise: NoiseModel,
    ) -> tuple[tuple[KernelMachine, ...], NoiseModel]:
        """The members fitted with tails where all rows ask for them, and the noise for these."""
        if not asks_for_tails(machines, self.table, wild=self.settings.tails.wild):
            return machines, noise
        ends = [self._early_enough(self.budget.finals, member) for member in in_order]
        task = with_tails(self.task)
        by_weight = fit_members(in_order, self.table, task, self.workers, ends)
        heavy = _there([by_weight[k] for k in np.argsort(order)])
        if len(heavy) < len(machines) or not more_evidence(heavy, machines, self.table):
            return machines, noise
        # the noise that unseen rows have chosen stays as large as it was
        before, after = (
            weights @ [m.target.scale * m.noise_std for m in fits] for fits in (machines, heavy)
        )
        return heavy, noise.times(float(before / after))

    def _warn_if_too_small(self, members: Sequence[Member]) -> None:
        """Warn that even the least plan takes longer than the budget that was given."""
        size, whole = (self.trials.width, self.table.n_rows), self.budget.seconds
        finals = (cost(m.candidate, *size, self.settings.cost, m.steps) for m in members)
        work = self.budget.beside + self.runner.spent + sum(finals)
        seconds, settings = work / self.task.threads, self.settings.budget
        enough = max(settings.tolerance * whole, settings.unnoticed)
        if self.task.budget is not None and seconds > enough:
            warnings.warn(
                f"time_budget={whole:g} s is too little for {self.table.n_rows} rows: the least "
                f"search takes about {seconds:.2g} s. Give that, or a rank",
                TimeBudgetWarning,
                stacklevel=5,
            )

    def _early_enough(self, stop: Stop, member: Member) -> Stop:
        """Leave the time that summing the posterior takes after the last step."""
        size = self.trials.width, self.table.n_rows, self.settings.cost
        return stop.by(stop.deadline - cost(member.candidate, *size, 1))

    def cut(self, n_tried: int, n_fitted: int, n_members: int = 0) -> str | None:
        """What the time limit or an interrupt has ended, in words; None if nothing."""
        if not self.trials_cut and n_fitted == n_members:
            return None
        who = "an interrupt" if self.task.stop.asked else "time_limit"
        text = f"{who} ended the search: {n_tried} candidates were tried"
        if n_members == 0:
            return f"{text}, and the model is a constant"
        return f"{text}, {n_fitted} of {n_members} members fitted to all rows"

    def results(self, members: Sequence[Trial], weights: Array) -> list[dict[str, Any]]:
        """One line per trial, members first."""
        return self.runner.results({id(t): float(w) for t, w in zip(members, weights, strict=True)})

    def warn_if_expired(self) -> None:
        """Warn that a clock has ended the search."""
        if self.budget.expired:
            warnings.warn(
                f"the search took more than {self.settings.budget.overshoot:g} times its budget of "
                f"{self.budget.seconds:g} s and a minute, and was cut short: give a larger "
                f"time_budget, or a rank",
                TimeBudgetWarning,
                stacklevel=4,
            )


def _there(machines: Sequence[KernelMachine | None]) -> tuple[KernelMachine, ...]:
    """Those that are."""
    return tuple(machine for machine in machines if machine is not None)
