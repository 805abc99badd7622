"""Tables of records in Markdown: means and standard errors, the best and its equals marked."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from tensorlace.experiments import literature
from tensorlace.experiments.markup import markdown
from tensorlace.experiments.records import Record
from tensorlace.experiments.statistics import contenders, mean_and_error

__all__ = ["SCORES", "comparison", "grouped", "label", "number", "published", "scores"]

SCORES: Mapping[str, str] = {
    "nll": "NLL",
    "rmse": "RMSE",
    "rce": "RCE",
    "ecp95": "ECP-95",
    "wcpi95": "WCPI-95",
}

_LABELS = {
    "published": "LA-TNKM, authors' procedure",
    "corrected": "LA-TNKM, corrected",
    "default": "tensorlace",
}


def label(record: Mapping[str, Any]) -> str:
    """Name of a system for readers."""
    name: str = record["system"]
    return _LABELS.get(record["protocol"], name) if name == "tnkm" else name


def number(mean: float | None, error: float = math.nan, digits: int = 2) -> str:
    """``mean ± error``; a dash for nothing, and no error of a single value.

    >>> number(-0.514, 0.0321), number(0.5), number(None)
    ('-0.51 ± 0.03', '0.50', '–')
    """
    if mean is None or math.isnan(mean):
        return "–"
    if abs(mean) >= 1e4:
        return f"{mean:.0e}"
    text = f"{mean:.{digits}f}"
    return text if math.isnan(error) else f"{text} ± {error:.{digits}f}"


def grouped(records: Sequence[Record], score: str) -> dict[str, dict[str, dict[int, float]]]:
    """Scores as set to system to split to value; cells without that score are left out."""
    found: dict[str, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for record in records:
        value = record["metrics"].get(score)
        if isinstance(value, float | int):
            found[record["set"]][label(record)][record["split"]] = float(value)
    return {name: dict(systems) for name, systems in found.items()}


def loss(score: str, value: float) -> float:
    """What is to be small: a coverage should be near its level, everything else small."""
    return abs(value - 0.95) if score == "ecp95" else value


def scores(records: Sequence[Record], sets: Sequence[str], score: str) -> str:
    """A row per set, a column per system: mean ± standard error over splits, standardised units.

    Bold is the best mean, italic what a paired test over the splits does not tell from it.
    """
    found = grouped(records, score)
    systems = list(dict.fromkeys(label(r) for r in records))
    rows = []
    for name in sets:
        of_system = found.get(name, {})
        losses = {
            s: {split: loss(score, v) for split, v in of_split.items()}
            for s, of_split in of_system.items()
        }
        compared = len(losses) > 1 and score != "wcpi95"  # narrow is no virtue in itself
        best, good = contenders(losses) if compared else ("", set())
        cells = []
        for system in systems:
            values = list(of_system.get(system, {}).values())
            text = number(*mean_and_error(values)) if values else "–"
            mark = "**" if system == best else "*" if system in good else ""
            cells.append(f"{mark}{text}{mark}")
        splits = {len(of_split) for of_split in of_system.values()}
        rows.append([name, "–".join(str(n) for n in sorted(splits)), *cells])
    return markdown(["set", "splits", *systems], rows)


def published(records: Sequence[Record], sets: Sequence[str]) -> str:
    """Our NLL beside the printed one, in standardised and original units."""
    found = grouped(records, "nll")
    ours = [s for s in dict.fromkeys(label(r) for r in records) if s in _LABELS.values()]
    rows = []
    for name in sets:
        shift = math.log(literature.STD[name])
        best = min(
            (v, s)
            for s in literature.NLL[name]
            if s != literature.OURS and (v := literature.standardised_nll(name, s)) is not None
        )
        row = [name, f"{shift:+.3f}", f"{best[0]:.2f} ({best[1]})"]
        row.append(f"{literature.NLL[name][literature.OURS]:.2f}")
        for system in ours:
            values = list(found.get(name, {}).get(system, {}).values())
            mean, error = mean_and_error(values) if values else (math.nan, math.nan)
            text = number(mean, error)
            row.append(text if text == "–" else f"{text} ({mean + shift:.2f})")
        rows.append(row)
    header = ["set", "log std(y)", "best other, published", "LA-TNKM, published"]
    return markdown([*header, *(f"{s}, measured" for s in ours)], rows)


def comparison(records: Sequence[Record], sets: Sequence[str]) -> str:
    """All scores, then the published figures beside ours."""
    if not records:
        return "Nothing is finished yet."
    parts = [f"### {title}\n\n{scores(records, sets, key)}" for key, title in SCORES.items()]
    parts.append(
        "### NLL beside the published figures\n\n"
        "Standardised units; in brackets original units, which are log std(y) more. Published "
        "figures are means over the paper's ten splits.\n\n" + published(records, sets)
    )
    return "\n\n".join(parts)
