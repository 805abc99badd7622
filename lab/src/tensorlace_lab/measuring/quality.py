"""Cells that the benchmark of the default has measured already: same splits, units and call.

``make quality`` fits ``TNKMRegressor(random_state=s)`` and the exact Gaussian process to the
training rows of the same splits and keeps a line per cell in ``results/quality``. The page reads
them as cells of the comparison, so that nobody computes them twice.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tensorlace_lab.measuring.data import SETS
from tensorlace_lab.measuring.records import Cell, Record
from tensorlace_lab.measuring.systems import OURS

__all__ = ["SYSTEMS", "with_quality"]

SYSTEMS = {"tensorlace": OURS, "gp": "Exact GP"}
"""Name of the file, and of the system here."""

_SCORES = ("nll", "rmse", "rce", "ecp95", "wcpi95", "crps")


def with_quality(records: Sequence[Record], directory: Path) -> list[Record]:
    """Records of the comparison, and those of a directory of the benchmark that are not among them.

    >>> with_quality([], Path("there is none"))
    []
    """
    seen = {Cell.of(record) for record in records}
    found = list(records)
    for name, system in SYSTEMS.items():
        path = directory / f"{name}.jsonl"
        if not path.exists():
            continue
        for row in map(json.loads, path.read_text().splitlines()):
            cell = Cell("uci", row["set"], row["split"], system, "default")
            if row["set"] in SETS and cell not in seen:
                found.append(_record(cell, row))
    return found


def _record(cell: Cell, row: Record) -> Record:
    kept: Record = {k: row[k] for k in ("n_train", "seconds", "date", "command") if k in row}
    return {
        **asdict(cell),
        "seed": cell.split,
        "metrics": {key: row[key] for key in _SCORES if key in row},
        "versions": {"python": row["python"], **row["versions"]},
        **kept,
    }
