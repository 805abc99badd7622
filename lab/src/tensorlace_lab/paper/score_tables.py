"""Tables of records in Markdown: means and standard errors, the best and its equals marked."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tensorlace_lab.measuring.cells import Record
from tensorlace_lab.measuring.statistics import contenders, mean_and_error
from tensorlace_lab.paper import literature
from tensorlace_lab.writing.markdown import markdown, number

__all__ = ["SCORES", "costs", "grouped", "label", "scores", "systems_of"]

SCORES: Mapping[str, str] = {
    "nll": "NLL",
    "rmse": "RMSE",
    "rce": "RCE",
    "ecp95": "ECP-95",
    "wcpi95": "WCPI-95",
}
DIGITS = {"nll": 2, "rmse": 3, "rce": 3, "ecp95": 3, "wcpi95": 2}

LABELS = {
    "default": "tensorlace",
    "corrected": "LA-TNKM, corrected",
    "published": "LA-TNKM, authors' procedure",
}


def label(record: Mapping[str, Any]) -> str:
    """Name of a system for readers."""
    name: str = record["system"]
    return LABELS.get(record["protocol"], name) if name == "tnkm" else name


def systems_of(records: Sequence[Record]) -> list[str]:
    """Labels in the records: ours, the columns of the paper's table, the others."""
    there = {label(record) for record in records}
    order = [*LABELS.values(), *literature.COLUMNS]
    return [name for name in order if name in there] + sorted(there - set(order))


def grouped(
    records: Sequence[Record], score: str, *, original: bool = False
) -> dict[str, dict[str, dict[int, float]]]:
    """Scores as set to system to split to value; cells without that score are left out.

    In original units of y an NLL is larger by the log of the deviation of the training target, an
    RMSE or a width by that factor.
    """
    scale = {(r["set"], r["split"]): r["scale"] for r in records if "scale" in r}
    found: dict[str, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for record in records:
        value = record["metrics"].get(score)
        if not isinstance(value, float | int):
            continue
        if original:
            s = scale.get((record["set"], record["split"])) or literature.STD[record["set"]]
            value = value + math.log(s) if score == "nll" else value * s
        found[record["set"]][label(record)][record["split"]] = float(value)
    return {name: dict(systems) for name, systems in found.items()}


def loss(score: str, value: float) -> float:
    """What is to be small: a coverage should be near its level, everything else small."""
    return abs(value - 0.95) if score == "ecp95" else value


def scores(
    records: Sequence[Record], sets: Sequence[str], score: str, *, original: bool = False
) -> str:
    """A row per system, a column per set: mean ± standard error over splits.

    Bold is the best mean, italic what a paired test over the splits does not tell from it.
    """
    found = grouped(records, score, original=original)
    systems = systems_of(records)
    columns = []
    for name in sets:
        of_system = found.get(name, {})
        losses = {
            s: {split: loss(score, v) for split, v in of_split.items()}
            for s, of_split in of_system.items()
        }
        compared = len(losses) > 1 and score != "wcpi95"  # narrow is no virtue in itself
        best, good = contenders(losses) if compared else ("", set())
        digits = DIGITS[score]
        if original and score != "nll" and of_system:
            least = min(float(np.mean(list(v.values()))) for v in of_system.values())
            digits = max(0, 2 - math.floor(math.log10(max(least, 1e-12))))
        column = []
        for system in systems:
            values = list(of_system.get(system, {}).values())
            text = number(*mean_and_error(values), digits=digits) if values else "–"
            mark = "**" if system == best else "*" if system in good else ""
            column.append(f"{mark}{text}{mark}")
        columns.append(column)
    rows = [[system, *row] for system, *row in zip(systems, *columns, strict=True)]
    return markdown(["system", *sets], rows)


def costs(records: Sequence[Record], sets: Sequence[str]) -> str:
    """Mean seconds and megabytes of a cell, choice of size included, and how many there are.

    Seconds are of the processor, which other work on the machine does not change; cells that have
    only those of the clock count by these.
    """
    rows = []
    for system in systems_of(records):
        row = [system]
        for name in sets:
            of = [r for r in records if r["set"] == name and label(r) == system]
            memory = [r["peak_mb"] for r in of if r.get("peak_mb") is not None]
            spent = [float(r.get("processor_seconds") or r["seconds"]) for r in of]
            seconds = float(np.mean(spent)) if of else math.nan
            text = number(seconds, digits=1 if seconds < 100 else 0) + " s" if of else "–"
            text += f", {np.mean(memory):.0f} MB" if memory else ""
            row.append(text + (f" ({len(of)})" if of else ""))
        rows.append(row)
    return markdown(["system", *sets], rows)
