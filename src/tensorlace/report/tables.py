"""The tables and sentences of a report."""

import platform
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from tensorlace._types import Array
from tensorlace.estimators.registry import default_arguments
from tensorlace.machines.fitted_model import FitRecord
from tensorlace.report.drawing import sparkline
from tensorlace.report.reported_rows import ReportedRows, number

__all__ = ["choices", "code", "data_card", "noise_table", "records", "row_table", "versions"]

_COLUMNS_SHOWN = 5


def data_card(rows: ReportedRows, target: str) -> list[dict[str, str]]:
    """One line per column and one for the target: kind, gaps, range, distribution."""
    encoding = rows.model.encoding
    lines = []
    histogram: Any
    for d, name in enumerate(rows.names):
        column = rows.X[:, d]
        present = column[~np.isnan(column)]
        labels = encoding.labels(d)
        if labels is not None:
            counts = np.bincount(present[present >= 0].astype(int), minlength=len(labels))
            top = np.argsort(-counts, kind="stable")[:3]
            words = ", ".join(f"{labels[k]} ({counts[k]:,})" for k in top if counts[k])
            rest = int((counts > 0).sum()) - min(3, int((counts > 0).sum()))
            words += f" and {rest} more" if rest else ""
            unseen = int((present < 0).sum())
            words += f"; {unseen:,} never seen in training" if unseen else ""
            histogram = np.sort(counts)[::-1][:30]
        elif present.size:
            ends = np.array([present.min(), np.median(present), present.max()])
            shown = encoding.decoded(d, ends)
            words = " … ".join(_value(v) for v in shown)
            histogram = np.histogram(present, min(24, max(len(np.unique(present)), 1)))[0]
        else:
            words, histogram = "no value", np.zeros(1)
        kind = type(encoding.kinds[d]).__name__.lower()
        period = getattr(encoding.kinds[d], "period", None)
        lines.append(
            {
                "name": name,
                "kind": kind if period is None else f"{kind} ({period:g})",
                "missing": f"{len(column) - present.size:,}" if present.size < len(column) else "",
                "range": words,
                "distinct": f"{len(np.unique(present)):,}",
                "spark": sparkline(histogram),
            }
        )
    if rows.y is not None:
        ends = np.array([rows.y.min(), np.median(rows.y), rows.y.max()])
        lines.append(
            {
                "name": f"{target} (target)",
                "kind": "numeric",
                "missing": "",
                "range": " … ".join(number(v) for v in ends),
                "distinct": f"{len(np.unique(rows.y)):,}",
                "spark": sparkline(np.histogram(rows.y, 24)[0]),
            }
        )
    return lines


def _value(value: Any) -> str:
    if isinstance(value, np.datetime64):
        return "–" if np.isnat(value) else str(value).replace("T00:00:00", "").replace("T", " ")
    if isinstance(value, int | float | np.number) and not isinstance(value, bool):
        return number(float(value))
    return "missing" if value is None else str(value)


def records(table: Any) -> list[dict[str, Any]]:
    """Rows of results, which are a data frame where pandas is installed."""
    if table is None:
        return []
    return list(table.to_dict("records") if hasattr(table, "to_dict") else table)


_CHOICES = {
    "warp": "warp",
    "rank": "rank",
    "n_basis": "functions per column",
    "prior_groups": "prior precisions",
    "lengthscale": "lengthscale",
    "additive": "additive part",
    "rotate": "rotation",
    "basis": "basis",
}


def choices(record: FitRecord) -> list[dict[str, Any]]:
    """Values that a search tried for each argument, with the best score of each."""
    tried = records(record.search_results)
    lines = []
    for key, name in _CHOICES.items():
        best: dict[str, tuple[float, float]] = {}
        for result in tried:
            value = _chosen(result.get(key))
            score, weight = best.get(value, (-np.inf, 0.0))
            best[value] = max(score, result["held_out_log_score"]), weight + result["weight"]
        if len(best) > 1:
            ranked = sorted(best.items(), key=lambda item: -item[1][0])
            lines.append(
                {
                    "name": name,
                    "values": [
                        {"value": value, "score": f"{score:.3f}", "weight": f"{weight:.0%}"}
                        for value, (score, weight) in ranked
                    ],
                }
            )
    return lines


def _chosen(value: Any) -> str:
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return "none"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, int | float | np.number) else str(value)


def noise_table(record: FitRecord) -> list[dict[str, str]]:
    """All kinds of noise that were tried."""
    return [
        {
            "noise": str(line["noise"]).replace("_", " "),
            "factor": number(line["factor"]),
            "degrees": _if_any(line.get("degrees"), infinite="normal tails"),
            "strength": _if_any(line.get("strength")),
            "score": f"{line['held_out_log_score']:.4f}",
            "rows": str(line.get("rows", "held out")),
            "chosen": "chosen" if line["chosen"] else "",
        }
        for line in records(record.noise_results)
    ]


def _if_any(value: float | None, infinite: str = "") -> str:
    """A parameter of a noise, empty where it has none of that name."""
    if value is None or np.isnan(value):
        return ""
    return number(value) if np.isfinite(value) else infinite


def row_table(
    rows: ReportedRows, which: Iterable[int], relevance: Array, *, why: bool = False
) -> dict[str, Any]:
    """Single rows with their predictions and the columns that matter most.

    With ``why`` also how far they are from training rows, and the reason.
    """
    columns = np.argsort(-relevance, kind="stable")[:_COLUMNS_SHOWN]
    columns = np.sort(columns)
    known = rows.y is not None
    head = ["row", *(["why", "novelty"] if why else [])]
    head += [*(["observed"] if known else []), "predicted", "95 % interval"]
    head += ["residual / std"] if known else []
    head += [rows.names[d] for d in columns]
    z = rows.z if known else None
    lines = []
    for k in which:
        line = [f"{rows.numbers[k]:,}"]
        if why:
            line += [rows.novelty.reasons[k], number(rows.novelty.measure[k])]
        if rows.y is not None:
            line.append(number(rows.y[k]))
        line += [number(rows.dist.mean[k])]
        line.append(f"{number(rows.ends[k, 0])} … {number(rows.ends[k, 3])}")
        if z is not None:
            line.append(f"{z[k]:+.2f}")
        line += [_cell(rows, d, k) for d in columns]
        lines.append(line)
    return {"head": head, "lines": lines, "words": 1 if why else None}


def _cell(rows: ReportedRows, d: int, k: int) -> str:
    value = rows.X[k, d]
    if np.isnan(value):
        return "missing"
    shown = rows.model.encoding.decoded(d, np.array([value]))[0]
    return "never seen" if shown is None else _value(shown)


def code(record: FitRecord) -> str:
    """Python that fits such a model, with the arguments that are not the default."""
    name, params = record.estimator, record.arguments.items()
    defaults = default_arguments(name)
    given = [f"{k}={v!r}" for k, v in params if repr(v) != repr(defaults[k])]
    inside = ", ".join(given) if len(given) < 3 else "".join(f"\n    {g}," for g in given) + "\n"
    return f"from tensorlace import {name}\n\nmodel = {name}({inside})\nmodel.fit(X, y)"


def versions(names: Sequence[str] = ("tensorlace", "numpy", "scipy", "scikit-learn")) -> str:
    """Versions of the libraries, of Python and of the operating system."""
    found = []
    for name in names:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:  # run from a source tree
            continue
    return ", ".join([*found, f"Python {platform.python_version()}", platform.platform(terse=True)])
