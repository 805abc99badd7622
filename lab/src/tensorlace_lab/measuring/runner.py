"""Cells in, records out: here or in other processes, with the time left on standard error."""

import shlex
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Any, final

from tensorlace.errors import InputError
from tensorlace_lab.measuring.cells import Cell, Record, Records
from tensorlace_lab.measuring.processes import memory_mb, reset_peak
from tensorlace_lab.measuring.provenance import provenance

__all__ = ["Experiment", "Options", "command", "measured", "run"]


@final
@dataclass(frozen=True)
class Options:
    """What a user asked for; None leaves it to the experiment.

    Attributes
    ----------
    protocols, systems, sets : tuple of str or None
    splits : tuple of int or None
    quick : bool
        A taste: the smallest of everything.
    """

    protocols: tuple[str, ...] | None = None
    systems: tuple[str, ...] | None = None
    sets: tuple[str, ...] | None = None
    splits: tuple[int, ...] | None = None
    quick: bool = False


class Experiment(ABC):
    """A table or a figure: which cells it has, how one is measured, and what it looks like.

    Attributes
    ----------
    name, title : str
        For the command line, for readers.
    sets, protocols : tuple of str
        What can be asked for. No sets are those that the cells have.
    packages : tuple of str
        Whose versions matter, beside that of tensorlace.
    jobs : int
        Processes at a time where the user does not say, a fresh one for every cell; 0 for an
        experiment that measures in this process, or starts its own.
    local : bool
        Whether a finished cell is measured again on another machine and with other versions.
    beside : tuple of str
        Experiments whose records stand on the same page, to compare with.
    """

    name: str
    title: str
    sets: tuple[str, ...] = ()
    protocols: tuple[str, ...] = ("default",)
    packages: tuple[str, ...] = ("numpy", "scipy", "scikit-learn", "jax", "optax")
    jobs: int = 1
    local: bool = False
    beside: tuple[str, ...] = ()

    @abstractmethod
    def cells(self, options: Options) -> list[Cell]:
        """All cells, in the order in which they are worked on."""

    def asked(self, options: Options) -> list[Cell]:
        """The cells of the sets and systems that were asked for; refuse unknown ones."""
        cells = self.cells(options)
        sets = self.sets or tuple(dict.fromkeys(cell.set for cell in cells))
        for what, names, known in (
            ("set", options.sets, sets),
            ("protocol", options.protocols, self.protocols),
        ):
            for name in names or ():
                if name not in known:
                    raise InputError(f"{self.name} has no {what} {name!r}: {', '.join(known)}")
        anyone = options.systems in (None, ("all",))
        return [
            cell
            for cell in cells
            if (options.sets is None or cell.set in options.sets)
            and (anyone or cell.system in (options.systems or ()))
        ]

    @abstractmethod
    def run(self, cell: Cell, data: str | None) -> Record:
        """Work on one cell: metrics, seed and whatever else the record should hold."""

    @abstractmethod
    def markdown(self, records: Sequence[Record]) -> str:
        """Tables of what is finished."""

    def figures(self, records: Sequence[Record], directory: Path) -> list[Path]:
        """Draw what is finished into a directory; the files."""
        return []


def run(
    experiment: Experiment,
    cells: Sequence[Cell],
    records: Records,
    *,
    data: str | None = None,
    jobs: int | None = None,
    fresh: bool = False,
    tell: Callable[[str], None] | None = None,
) -> int:
    """Work on all cells that have no record yet; the number of those that failed.

    Parameters
    ----------
    experiment : Experiment
    cells : sequence of Cell
    records : Records
        Grows with every finished cell.
    data : str, optional
        Directory of the sets.
    jobs : int, optional
        Processes at a time, a fresh one for every cell, so that its peak memory is its own. With 0
        the work is done in this process. That of the experiment by default.
    fresh : bool
        Work on finished cells again.
    tell : callable, optional
        Takes lines of progress; standard error by default.
    """
    tell = tell or partial(print, file=sys.stderr, flush=True)
    there = (
        set() if fresh else {c for c in cells if c in records and _stands(experiment, records[c])}
    )
    todo = [cell for cell in cells if cell not in there]
    if there:
        tell(f"[{experiment.name}] {len(there)} of {len(cells)} cells were there")
    start, failed = perf_counter(), 0
    jobs = experiment.jobs if jobs is None else jobs
    work = partial(measured, experiment, data=data)
    outcomes = _here(work, todo) if jobs == 0 else _elsewhere(work, todo, jobs)
    for number, (cell, outcome) in enumerate(outcomes, start=1):
        if isinstance(outcome, Exception):
            failed += 1
            said = f"failed: {type(outcome).__name__}: {outcome}"
        else:
            records.add(cell, outcome)
            said = _short(outcome)
        left = (perf_counter() - start) / number * (len(todo) - number)
        tell(f"[{experiment.name}] {number}/{len(todo)}  {cell}  {said}  {_clock(left)} left")
    return failed


def _stands(experiment: Experiment, record: Record) -> bool:
    """Whether a finished cell need not be measured again."""
    now = provenance(experiment.packages)
    return not experiment.local or all(record.get(k) == now[k] for k in ("machine", "versions"))


def _here(
    work: Callable[[Cell], Record], todo: Sequence[Cell]
) -> Iterator[tuple[Cell, Record | Exception]]:
    for cell in todo:
        try:
            yield cell, work(cell)
        except Exception as error:  # one bad cell should not cost the others
            yield cell, error


def _elsewhere(
    work: Callable[[Cell], Record], todo: Sequence[Cell], jobs: int
) -> Iterator[tuple[Cell, Record | Exception]]:
    with ProcessPoolExecutor(jobs, get_context("spawn"), max_tasks_per_child=1) as pool:
        futures = {pool.submit(work, cell): cell for cell in todo}
        try:
            for future in as_completed(futures):
                try:
                    yield futures[future], future.result()
                except Exception as error:
                    yield futures[future], error
        finally:
            pool.shutdown(cancel_futures=True)


def measured(experiment: Experiment, cell: Cell, data: str | None = None) -> Record:
    """The record of a cell with time, memory, versions, machine, date and command."""
    before = reset_peak()
    start = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # short of convergence on purpose, mostly
        record = experiment.run(cell, data)
    seconds = perf_counter() - start
    peak = memory_mb("VmHWM")
    return {
        "seed": cell.split,
        "seconds": seconds,  # a record may hold its own, of less
        **record,
        "peak_mb": None if peak is None or before is None else max(peak - before, 0.0),
        **provenance(experiment.packages),
        "command": command(cell),
    }


def command(cell: Cell) -> str:
    """What computes a cell again.

    >>> command(Cell("uci", "yacht", 3, "Exact GP"))
    "python -m tensorlace_lab uci --systems 'Exact GP' --protocol default --sets yacht --splits 3-3"
    """
    words = ["python", "-m", "tensorlace_lab", cell.experiment, "--systems", cell.system]
    words += ["--protocol", cell.protocol]
    words += ["--sets", cell.set, "--splits", f"{cell.split}-{cell.split}"]
    return shlex.join(words)


def _short(record: Record) -> str:
    metrics: dict[str, Any] = record.get("metrics", {})
    numbers = (f"{k} {v:.3f}" for k, v in metrics.items() if isinstance(v, float))
    return "  ".join([*list(numbers)[:2], f"{record['seconds']:.1f} s"])


def _clock(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
