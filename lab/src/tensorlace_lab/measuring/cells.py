"""Finished cells, one JSON line each: a killed run loses at most the cell it was in.

This is the one format of results: what the cell is of, its metrics, and all that is needed to
measure it again (seed, command, versions, date, machine).
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

from tensorlace.errors import InputError

__all__ = ["Cell", "Record", "Records", "size_name", "size_of"]

Record = dict[str, Any]


@final
@dataclass(frozen=True)
class Cell:
    """What a record is of: the smallest piece of work that is kept.

    Attributes
    ----------
    experiment, set : str
        Of which experiment, on which data; of made-up data the set is their size (`size_name`).
    split : int
        Of a set of rows; the seed of made-up data.
    system, protocol : str
        Who is measured, and how it is asked.
    """

    experiment: str
    set: str
    split: int
    system: str
    protocol: str = "default"

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "Cell":
        """Take the cell of a record."""
        return cls(**{name: record[name] for name in cls.__dataclass_fields__})

    @property
    def file(self) -> str:
        """Name of the file, without its ending, that the record of this cell is in.

        >>> Cell("uci", "yacht", 1, "Exact GP", "default").file
        'exact-gp-default'
        """
        return re.sub("[^a-z0-9]+", "-", f"{self.system}-{self.protocol}".lower()).strip("-")

    def __str__(self) -> str:
        return f"{self.set} {self.split} {self.system} ({self.protocol})"


class Records:
    """The finished cells of one experiment, a file per system and protocol.

    Parameters
    ----------
    directory : Path
        Made if absent. A line that was torn by a kill is removed.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._of_cell: dict[Cell, Record] = {}
        for path in sorted(directory.glob("*.jsonl")):
            for record in _read(path):
                self._of_cell[Cell.of(record)] = record

    def __contains__(self, cell: Cell) -> bool:
        return cell in self._of_cell

    def __getitem__(self, cell: Cell) -> Record:
        return self._of_cell[cell]

    def __iter__(self) -> Iterator[Record]:
        return iter(self._of_cell.values())

    def __len__(self) -> int:
        return len(self._of_cell)

    def add(self, cell: Cell, record: Mapping[str, Any]) -> None:
        """Keep the record of a cell, on disk first. A later one of the same cell counts."""
        line = {**asdict(cell), **{key: _plain(value) for key, value in record.items()}}
        self.directory.mkdir(parents=True, exist_ok=True)
        with (self.directory / f"{cell.file}.jsonl").open("a") as file:
            file.write(json.dumps(line, allow_nan=False) + "\n")
        self._of_cell[cell] = line


def size_name(**size: int) -> str:
    """Name of a made-up set.

    >>> size_name(N=100, D=2)
    'N=100 D=2'
    """
    return " ".join(f"{key}={value}" for key, value in size.items())


def size_of(name: str) -> dict[str, int]:
    """Size that a made-up set is named after.

    >>> size_of("N=100 D=2")
    {'N': 100, 'D': 2}
    """
    return {key: int(value) for key, value in (word.split("=") for word in name.split())}


def _read(path: Path) -> list[Record]:
    """All whole lines; what stands after the last of them is cut off the file."""
    text = path.read_bytes()
    whole = text[: text.rfind(b"\n") + 1]
    records = []
    for number, line in enumerate(whole.splitlines(), start=1):
        try:
            records.append(json.loads(line))
        except ValueError as error:
            raise InputError(
                f"line {number} of {path} is not JSON: remove it to compute that cell again"
            ) from error
    if len(whole) < len(text):
        with path.open("r+b") as file:
            file.truncate(len(whole))
    return records


def _plain(value: Any) -> Any:
    """Numbers that JSON has; what is not finite becomes null."""
    if isinstance(value, Mapping):
        return {key: _plain(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value
