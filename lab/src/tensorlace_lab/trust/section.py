"""What the sections of the page have in common."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from time import perf_counter
from typing import Any, NamedTuple, final

from tensorlace_lab.measuring.cells import Cell, Record
from tensorlace_lab.measuring.processes import processor_seconds
from tensorlace_lab.measuring.runner import Options
from tensorlace_lab.trust.systems import NAMES, SETTINGS

__all__ = ["EARLIER", "NOW", "Place", "Section", "Spent", "Verdict", "of_ours", "ordered", "values"]

NOW, EARLIER = "trust", "trust-before"
"""Names of the experiments: of the library as it is, and of an earlier one to compare with."""


class Place(NamedTuple):
    """Where in a section a cell is: on which set, which split, who."""

    set: str
    split: int
    system: str


class Verdict(NamedTuple):
    """Whether a promise is kept, by whom, and the figure that says so."""

    promise: str
    who: str
    figure: str
    kept: bool


class Section(ABC):
    """A part of the page that is measured on its own; its name is the protocol of its cells.

    Attributes
    ----------
    name, title : str
    sets, systems : tuple of str
        What is measured if nothing is said.
    """

    name: str
    title: str
    sets: tuple[str, ...]
    systems: tuple[str, ...]

    @abstractmethod
    def places(self, options: Options) -> Iterable[Place]:
        """All cells of what is asked for."""

    @abstractmethod
    def run(self, cell: Cell, data: str | None) -> Record:
        """Measure one cell."""

    @abstractmethod
    def verdicts(self, records: Sequence[Record]) -> list["Verdict"]:
        """What became of each promise; nothing where nothing is measured."""

    @abstractmethod
    def tables(self, records: Sequence[Record]) -> str:
        """What was measured, in Markdown."""

    def chosen(self, options: Options) -> tuple[str, ...]:
        """The sets of this section that are asked for: by default all, of a taste the first."""
        if options.sets is None:
            return self.sets[:1] if options.quick else self.sets
        return tuple(name for name in options.sets if name in self.sets)

    def seeds(self, options: Options, usual: int) -> Sequence[int]:
        """The splits that are asked for: by default ``1, ..., usual``, of a taste the first."""
        return options.splits or range(1, 2 if options.quick else usual + 1)


@final
class Spent:
    """Seconds by the clock, and of processors, of the block and the workers that it started.

    >>> with Spent() as spent:
    ...     _ = sum(range(1000))
    >>> sorted(spent.seconds)
    ['processor_seconds', 'seconds']
    """

    def __enter__(self) -> "Spent":
        self._began = perf_counter(), processor_seconds()
        return self

    def __exit__(self, *error: object) -> None:
        clock, processor = self._began
        self.seconds = {
            "seconds": perf_counter() - clock,
            "processor_seconds": processor_seconds() - processor,
        }


def ordered(records: Sequence[Record]) -> list[tuple[str, str, list[Record]]]:
    """Name for readers, system and records of all there are, an earlier library beside ours."""
    found = []
    for system, title in NAMES.items():
        for experiment, when in ((EARLIER, ", before"), (NOW, "")):
            of = [r for r in records if (r["system"], r["experiment"]) == (system, experiment)]
            if of:
                found.append((title + when, system, of))
    return found


def of_ours(records: Sequence[Record]) -> list[tuple[str, str, list[Record]]]:
    """Those of `ordered` that are ours."""
    return [found for found in ordered(records) if found[1] in SETTINGS]


def values(records: Iterable[Record], key: str) -> list[Any]:
    """A metric of all records that have it."""
    found = (record["metrics"].get(key) for record in records)
    return [value for value in found if value is not None]
