"""Cells in, records out: here or in other processes, with the time left on standard error."""

import os
import platform
import shlex
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Any, final

from tensorlace_lab.measuring.records import Cell, Record, Records

__all__ = ["Experiment", "Options", "measured", "run"]

PACKAGES = ("numpy", "scipy", "scikit-learn", "jax", "optax")


@final
@dataclass(frozen=True)
class Options:
    """What a user asked for; None leaves it to the experiment.

    Attributes
    ----------
    protocols, systems, sets : tuple of str or None
    splits : tuple of int or None
    data : str or None
        Directory of the sets.
    quick : bool
        A taste: the smallest of everything.
    """

    protocols: tuple[str, ...] | None = None
    systems: tuple[str, ...] | None = None
    sets: tuple[str, ...] | None = None
    splits: tuple[int, ...] | None = None
    data: str | None = None
    quick: bool = False


class Experiment(ABC):
    """A table or a figure of the paper."""

    name: str
    title: str

    @abstractmethod
    def cells(self, options: Options) -> list[Cell]:
        """All cells, in the order in which they are worked on."""

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
    jobs: int = 0,
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
    jobs : int
        Processes at a time, a fresh one for every cell, so that its peak memory is its own. With 0
        the work is done in this process.
    fresh : bool
        Work on finished cells again.
    tell : callable, optional
        Takes lines of progress; standard error by default.
    """
    tell = tell or partial(print, file=sys.stderr, flush=True)
    todo = [cell for cell in cells if fresh or cell not in records]
    if len(todo) < len(cells):
        tell(f"[{experiment.name}] {len(cells) - len(todo)} of {len(cells)} cells were there")
    start, failed = perf_counter(), 0
    work = partial(measured, experiment, data=data)
    for number, (cell, outcome) in enumerate(_outcomes(work, todo, jobs), start=1):
        if isinstance(outcome, Exception):
            failed += 1
            said = f"failed: {type(outcome).__name__}: {outcome}"
        else:
            records.add(cell, outcome)
            said = _short(outcome)
        left = (perf_counter() - start) / number * (len(todo) - number)
        tell(f"[{experiment.name}] {number}/{len(todo)}  {cell}  {said}  {_clock(left)} left")
    return failed


def _outcomes(
    work: Callable[[Cell], Record], todo: Sequence[Cell], jobs: int
) -> Iterator[tuple[Cell, Record | Exception]]:
    if jobs == 0:
        for cell in todo:
            try:
                yield cell, work(cell)
            except Exception as error:  # one bad cell should not cost the others
                yield cell, error
        return
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
    """The record of a cell with time, memory, versions and date."""
    before = _reset_peak()
    start = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # short of convergence on purpose, mostly
        record = experiment.run(cell, data)
    seconds = perf_counter() - start
    peak = _memory("VmHWM")
    return {
        "seed": cell.split,
        "seconds": seconds,  # a record may hold its own, of less
        **record,
        "peak_mb": None if peak is None or before is None else max(peak - before, 0.0),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "versions": {"python": platform.python_version(), **_versions()},
        "command": command(cell),
    }


def command(cell: Cell) -> str:
    """What computes a cell again.

    >>> command(Cell("uci", "yacht", 3, "Exact GP", "default"))
    "tensorlace reproduce uci --systems 'Exact GP' --protocol default --sets yacht --splits 3-3"
    """
    words = ["tensorlace", "reproduce", cell.experiment, "--systems", cell.system]
    words += ["--protocol", cell.protocol]
    words += ["--sets", cell.set, "--splits", f"{cell.split}-{cell.split}"]
    return shlex.join(words)


def _versions() -> dict[str, str]:
    import tensorlace

    found = {"tensorlace": tensorlace.__version__}
    for package in PACKAGES:
        with suppress(PackageNotFoundError):  # jax and optax are an extra
            found[package] = version(package)
    return found


def _reset_peak() -> float | None:
    """Forget the most memory this process ever had, where the system can; what it has now."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return None
    return _memory("VmRSS")


def _memory(field: str) -> float | None:
    """Megabytes of this process: resident now (VmRSS) or at most (VmHWM)."""
    try:
        lines = Path(f"/proc/{os.getpid()}/status").read_text().splitlines()
    except OSError:
        return None
    found = (line.split()[1] for line in lines if line.startswith(field + ":"))
    number = next(found, None)
    return None if number is None else float(number) * 1024 / 1e6


def _short(record: Record) -> str:
    metrics: dict[str, Any] = record.get("metrics", {})
    numbers = (f"{k} {v:.3f}" for k, v in metrics.items() if isinstance(v, float))
    return "  ".join([*list(numbers)[:2], f"{record['seconds']:.1f} s"])


def _clock(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
