"""What is to be searched, what the search may spend, and how far it is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from time import monotonic
from typing import Any, Self, final

from tensorlace.fitting.config import Config
from tensorlace.machines.noises.registry import NOISES
from tensorlace.rows.memory import MEMORY_BUDGET
from tensorlace.search.candidate import Candidate, Width
from tensorlace.search.cost_model import cost, default_budget
from tensorlace.search.settings import CostSettings, SearchSettings

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
    """

    seconds: float
    work: float
    deadline: float

    @classmethod
    def of(cls, task: Task, n_rows: int) -> Self:
        """Budget of a search that begins now, for a table of so many rows."""
        settings = task.settings.budget
        seconds = task.budget or default_budget(n_rows, settings, task.settings.rows)
        patience = settings.overshoot * seconds + settings.grace
        return cls(seconds, seconds * task.threads, monotonic() + patience)

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
    """

    def __init__(
        self, report: Callable[[str], None] | None, work: float, settings: CostSettings
    ) -> None:
        self._report, self._work, self._settings = report, work, settings
        self._number, self._spent = count(1), 0.0

    def fitted(self, candidate: Candidate, width: Width, n_rows: int) -> None:
        """Report a fit to ``n_rows`` rows."""
        if self._report is None:
            return
        self._spent += cost(candidate, width, n_rows, self._settings)
        share = min(self._spent / self._work, 1.0)
        self._report(f"fit {next(self._number)}, {share:.0%} of the budget: {candidate}")
