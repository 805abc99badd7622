"""Tables of cells that take hours: one line of JSON per finished cell, and a stop loses none."""

import json
import platform
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tensorlace_lab.measuring.bench_record import Row, versions

Cell = tuple[str, Row]
"""A system and what tells its cells apart, such as the set and the split."""


def finished(directory: Path, system: str) -> list[Row]:
    """Rows that a system has so far."""
    path = directory / f"{system}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def measure_missing(
    directory: Path,
    cells: Iterable[Cell],
    measure: Callable[..., Row],
    say: Callable[[str, Row], str],
    command: str,
    packages: tuple[str, ...],
) -> None:
    """Measure the cells that have no line yet, each with everything needed to repeat it.

    Parameters
    ----------
    directory : Path
        Holds one file per system.
    cells : iterable of (system, key)
    measure : callable
        Takes the system and the entries of the key, and returns what it found.
    say : callable
        Line to print for a system and its new row.
    command : str
        Repeats the run.
    packages : tuple of str
        Whose versions matter, beside that of tensorlace.
    """
    directory.mkdir(parents=True, exist_ok=True)
    for system, key in cells:
        # read again each time: another process may be at work on the same file
        if any(key.items() <= _plain(row).items() for row in finished(directory, system)):
            continue
        row = {
            **key,
            **measure(system, **key),
            "date": datetime.now(UTC).strftime("%Y-%m-%d"),
            "python": platform.python_version(),
            "versions": versions(packages),
            "command": command,
        }
        with (directory / f"{system}.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(say(system, row), flush=True)


def _plain(row: Row) -> dict[str, Any]:
    """Entries of a row that are no tables themselves."""
    return {k: v for k, v in row.items() if not isinstance(v, dict | list)}
