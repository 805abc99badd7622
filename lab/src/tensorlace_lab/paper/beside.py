"""The published figures beside ours: conversion of units, and whether they are reached."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from tensorlace_lab.measuring.cells import Record
from tensorlace_lab.measuring.statistics import mean_and_error
from tensorlace_lab.paper import literature
from tensorlace_lab.paper.score_tables import LABELS, grouped
from tensorlace_lab.writing.markdown import markdown, number

__all__ = ["conversion", "published", "reached"]

TOLERANCES: Mapping[str, float] = {"yacht": 0.1, "power": 0.05, "energy": 0.25}
"""How near the authors' procedure should come to the printed NLL of LA-TNKM."""
FEWEST = 5


def conversion(sets: Sequence[str]) -> str:
    """Printed NLL in original units, and what it is in standardised units."""
    rows = []
    for name in sets:
        row = [name, f"{literature.STD[name]:.4g}", f"{math.log(literature.STD[name]):+.3f}"]
        for system in literature.ORIGINAL_UNITS:
            value = literature.standardised_nll(name, system)
            printed = literature.NLL[name][system]
            row.append("–" if value is None else f"{printed:.2f} → {value:.2f}")
        rows.append(row)
    return markdown(["set", "std(y)", "log std(y)", *literature.ORIGINAL_UNITS], rows)


def published(records: Sequence[Record], sets: Sequence[str]) -> str:
    """Printed NLL / ours, both standardised: a row per column of the paper's table."""
    found = grouped(records, "nll")
    rows = []
    for system in literature.COLUMNS:
        ours = LABELS["published"] if system == literature.OURS else system
        row = [system]
        for name in sets:
            values = list(found.get(name, {}).get(ours, {}).values())
            mean = float(np.mean(values)) if values else None
            row.append(f"{number(literature.standardised_nll(name, system))} / {number(mean)}")
        rows.append(row)
    return markdown(["system", *sets], rows)


def reached(records: Sequence[Record], sets: Sequence[str]) -> str:
    """How near the authors' procedure comes to the printed NLL, and the corrected one to it."""
    found = grouped(records, "nll")
    rows = []
    for name in sets:
        of = found.get(name, {})
        old, new = (of.get(LABELS[key], {}) for key in ("published", "corrected"))
        if not old:
            continue
        mean, error = mean_and_error(list(old.values()))
        printed = literature.SCORES[name]["nll"]
        within = TOLERANCES.get(name)
        verdict = "–" if within is None else "yes" if abs(mean - printed) <= within else "no"
        if within is not None and len(old) < FEWEST:
            verdict += f" so far ({len(old)} of {FEWEST} splits)"
        both = sorted(set(old) & set(new))
        gain = [new[split] - old[split] for split in both]
        row = [name, f"{printed:.2f}", f"{number(mean, error)} ({len(old)})"]
        row += [
            f"{round(mean - printed, 2) + 0.0:+.2f}",
            "–" if within is None else f"{within:g}",
            verdict,
        ]
        row += [number(*mean_and_error([new[s] for s in both])) if both else "–"]
        row += [f"{number(*mean_and_error(gain))} ({len(both)})" if both else "–"]
        rows.append(row)
    header = ["set", "LA-TNKM as printed", "authors' procedure (splits)", "difference", "allowed"]
    return markdown([*header, "reached", "corrected", "corrected - authors' (splits)"], rows)
