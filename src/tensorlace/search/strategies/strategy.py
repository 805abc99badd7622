"""What both strategies share: the noise of unseen rows, final fits, and the clock's warning."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tensorlace._types import Array
from tensorlace.errors import TimeBudgetWarning
from tensorlace.fitting.outcome import Found
from tensorlace.machines.ensemble import Ensemble
from tensorlace.machines.machine import KernelMachine
from tensorlace.machines.noise import GAUSSIAN, Noise, with_noise
from tensorlace.machines.noise_model import NoiseModel
from tensorlace.machines.noises.registry import NOISES
from tensorlace.predictive.distributions import Distribution
from tensorlace.search.noise_selection import Residuals, choose_noise, fit_log_variance
from tensorlace.search.parallel import Workers
from tensorlace.search.strategies.members import Member, fit_members
from tensorlace.search.task import Budget, Task
from tensorlace.search.trial_runner import TrialRunner
from tensorlace.search.trials import Trial, Trials
from tensorlace.search.weights import enough_rows_for_row_weights
from tensorlace.sources import Table
from tensorlace.sources.sampling import fold_numbers

__all__ = ["JudgedNoise", "Strategy"]


class JudgedNoise(NamedTuple):
    """Noise of a mixture by rows held out.

    Attributes
    ----------
    noise : NoiseModel
    results : list of dict
        One line per kind that was tried; none if rows were too few to choose by.
    dist : Distribution
        What the mixture says with it of the rows held out.
    """

    noise: NoiseModel
    results: list[dict[str, Any]]
    dist: Distribution


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

    @abstractmethod
    def search(self) -> Found:
        """Choose, fit and mix."""

    @property
    def n_sampled(self) -> int:
        """Rows that candidates are fitted to or judged on."""
        return len(self.trials.sample.y)

    def unjudged(self) -> Found:
        """The constant: no row could be held out, or there was no time at all."""
        (constant,) = self.task.distinct([self.settings.candidates.constant])
        machines = self.fitted([Member(constant, self.task.seed, self.settings.cost.steps)])
        return Found(Ensemble(machines, np.ones(1)), self.runner.results({}))

    def noise(self, members: Sequence[Trial], weights: Array) -> JudgedNoise:
        """Noise that the rows held out speak for."""
        task, trials, settings = self.task, self.trials, self.settings
        y, weight = trials.targets
        dist = Trials.unseen(members).mixture(weights)
        if len(y) < settings.rows.least_to_choose:
            if "student" not in task.noise:
                return JudgedNoise(GAUSSIAN, [], dist)
            # too few to choose by, and to know the variance: a mean of n rows has n - 1 degrees
            degrees = max(trials.n_held - 1.0, settings.noise.least_degrees)
            return JudgedNoise(Noise(degrees=degrees), [], dist)
        residuals = Residuals(trials.sample.X[trials.held], y, weight, dist)
        variation = None
        if any(NOISES[kind].varies for kind in task.noise):
            variation = fit_log_variance(
                residuals,
                fold_numbers(residuals.X, y, settings.rows.n_folds),
                task.config,
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
        return JudgedNoise(noise, results, with_noise(dist, noise, noise.log_variance(residuals.X)))

    def fitted(self, members: Sequence[Member]) -> tuple[KernelMachine, ...]:
        """Members fitted to all rows."""
        return fit_members(members, self.table, self.task, self.workers)

    def ensemble(self, members: Sequence[Member], weights: Array, noise: NoiseModel) -> Ensemble:
        """The mixture of members fitted to all rows."""
        sharp = enough_rows_for_row_weights(self.trials, self.settings)
        return Ensemble(self.fitted(members), weights, sharp=sharp, noise=noise)

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
