"""What is to be searched, what the search may spend, and how far it is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from time import monotonic
from typing import Any, Self, final

from tensorlace.fitting.config import Config
from tensorlace.machines.noises.registry import NOISES
from tensorlace.rows.memory import MEMORY_BUDGET
from tensorlace.rows.stop import NEVER, Stop
from tensorlace.search.candidate import Candidate, Width
from tensorlace.search.cost_model import cost, default_budget
from tensorlace.search.settings import BudgetSettings, CostSettings, SearchSettings

__all__ = ["Budget", "Progress", "Task"]


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
    budget : float or None
        Seconds, turned into a number of candidates by the cost model; None: by the rows.
    n_members : int or None
        Most members of the mixture; None: by the rows.
    noise : sequence of str
        Names in `NOISES` that are allowed.
    threads : int
        Candidates are fitted side by side.
    memory_budget : int
        Bytes for the rows of one fit.
    report : callable or None
        Told the text of each fit that is done.
    settings : SearchSettings
    stop : Stop
        When the search has to end with the best it has.
    """

    config: Config
    given: dict[str, Any]
    seed: int
    budget: float | None = None
    n_members: int | None = None
    noise: Sequence[str] = tuple(NOISES)
    threads: int = 1
    memory_budget: int = MEMORY_BUDGET
    report: Callable[[str], None] | None = None
    settings: SearchSettings = SearchSettings()
    stop: Stop = NEVER

    def distinct(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Candidates with what the user has fixed, each once."""
        return list(dict.fromkeys(replace(c, **self.given) for c in candidates))


@final
@dataclass(frozen=True)
class Budget:
    """Seconds that a search may take.

    Attributes
    ----------
    seconds : float
    work : float
        Seconds of one thread that the cost model may spend in all.
    deadline : float
        Reading of `time.monotonic` from which no further fit begins.
    given : bool
        Whether somebody has given the seconds, or a limit of less: then they are this machine's,
        and all that a search does has to be paid.
    trials, noise, finals : Stop
        When trials, the noise and final fits have to end.
    varying_noise : bool
        Whether it pays for a noise that varies.
    beside : float
        Seconds of one thread for all that is neither a trial nor a final fit.
    """

    seconds: float
    work: float
    deadline: float
    given: bool = False
    trials: Stop = NEVER
    noise: Stop = NEVER
    finals: Stop = NEVER
    varying_noise: bool = True
    beside: float = 0.0

    @classmethod
    def of(cls, task: Task, n_rows: int) -> Self:
        """Budget of a search that begins now, for a table of so many rows."""
        settings, now = task.settings.budget, monotonic()
        seconds = task.budget or default_budget(n_rows, settings, task.settings.rows)
        limit = max(task.stop.deadline - now, 0.0)
        given = task.budget is not None or settings.planned_share * limit < seconds
        seconds = min(seconds, settings.planned_share * limit)
        # by default the same candidates are tried however many threads there are
        threads = task.threads if given else settings.default_threads
        slower = max(threads / task.threads, 1.0)
        patience = settings.overshoot * seconds * slower + settings.grace
        return cls(
            *(seconds, seconds * threads, now + patience, given),
            trials=task.stop.by(now + settings.trials_until * limit),
            noise=task.stop.by(now + settings.noise_until * limit),
            finals=task.stop.by(now + settings.finals_until * limit),
        )

    def less(self, seconds: float, noise: float, settings: BudgetSettings) -> Self:
        """What is left for trials and final fits of a budget that was given.

        Parameters
        ----------
        seconds : float
            One thread's, for what is done in any case.
        noise : float
            And for a noise that varies, which can be done without.
        settings : BudgetSettings
        """
        varying = noise <= settings.noise_share * self.work
        left = self.work - seconds - (noise if varying else 0.0)
        return replace(self, work=max(left, 0.0), varying_noise=varying, beside=self.work - left)

    @property
    def expired(self) -> bool:
        """Whether the clock has ended the search."""
        return monotonic() > self.deadline


@final
class Progress:
    """Reports fits, and by the cost model the share of the work that is done.

    Parameters
    ----------
    report : callable or None
        Told the text of each fit.
    work : float
        Seconds of one thread that the cost model may spend in all.
    settings : CostSettings

    Attributes
    ----------
    spent : float
        Seconds of one thread that the fits so far have taken by the cost model.
    """

    def __init__(
        self, report: Callable[[str], None] | None, work: float, settings: CostSettings
    ) -> None:
        self._report, self._work, self._settings = report, work, settings
        self._number, self.spent = count(1), 0.0

    def fitted(self, candidate: Candidate, width: Width, n_rows: int) -> None:
        """Report a fit to ``n_rows`` rows."""
        self.spent += cost(candidate, width, n_rows, self._settings)
        if self._report is None:
            return
        share = min(self.spent / self._work, 1.0) if self._work else 1.0
        self._report(f"fit {next(self._number)}, {share:.0%} of the budget: {candidate}")
