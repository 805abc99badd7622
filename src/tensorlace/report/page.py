"""The report: everything about a fitted model and some rows, in one HTML file."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from tensorlace._atomic import write_atomically
from tensorlace._types import Array
from tensorlace.compact.compaction import compact, deviation, n_bytes
from tensorlace.displays.effects import axis_limits
from tensorlace.errors import InputError
from tensorlace.explain.effects import partial_effects
from tensorlace.explain.relevance import relevance_of
from tensorlace.explain.summary import overview
from tensorlace.linalg.blas_threads import one_blas_thread
from tensorlace.machines.fitted_model import FittedModel, HoldsModel, holder
from tensorlace.report import figures, tables
from tensorlace.report.controls import controls, typical_row
from tensorlace.report.embed import embed
from tensorlace.report.regions import regions
from tensorlace.report.reported_rows import ReportedRows, number

__all__ = ["write_report"]

MOST_BYTES = 2_900_000
"""Bytes of a page, unless the pictures alone are larger."""

_SMALLEST_MODEL = 200_000
_TEXT_PER_BYTE = 1.38
"""Characters of a page for a byte of an array: base64, and some names."""

_EFFECTS, _WORST, _REGIONS = 8, 10, 5

Say = Callable[[str], None]


def write_report(
    model: FittedModel | HoldsModel,
    X: Any,
    y: Any,
    path: str | os.PathLike[str],
    *,
    target: str = "y",
    title: str | None = None,
    notes: Mapping[str, Any] | None = None,
    max_rows: int = 20_000,
    say: Say | None = None,
) -> Path:
    """Write one self-contained HTML page about a fitted model, with a live what-if panel.

    The page asks for nothing from anywhere and stays below 3 MB. It has data, choices, fit,
    predictions against observations, calibration, relevance, effects, remarkable rows, spectrum and
    cost; and a panel that predicts in the browser what Python predicts.

    Parameters
    ----------
    model : TNKMRegressor or FittedModel
    X : (n, D) table
        ReportedRows to report on.
    y : (n,) array or None
        Their targets; without them there are no scores.
    path : path
        Replaced whole, or not at all.
    target : str
        What y is called.
    title : str, optional
    notes : mapping, optional
        More to say under "how to reproduce", such as the file and the command.
    max_rows : int
        Of a longer table, so many rows are reported on, evenly spread.
    say : callable, optional
        Told what is being done.

    Returns
    -------
    Path

    Examples
    --------
    >>> import tempfile
    >>> from tensorlace import TNKMRegressor
    >>> from tensorlace.report import write_report
    >>> X = np.random.default_rng(0).uniform(size=(60, 2))
    >>> y = X[:, 0] ** 2 + 0.1 * np.random.default_rng(1).standard_normal(60)
    >>> model = TNKMRegressor(rank=2, n_basis=4, random_state=0).fit(X[:40], y[:40])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_report(model, X[40:], y[40:], f"{folder}/report.html")
    ...     "What if" in page.read_text(encoding="utf-8")
    True
    """
    try:
        import jinja2
    except ImportError as error:
        raise ImportError("reports need jinja2: pip install 'tensorlace[report]'") from error
    fitted = holder(model).fitted_model()
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(_asset("report.html"))
    tell = say or (lambda _: None)
    with one_blas_thread:  # many small matrices: threads would wait for each other
        tell("predicting the rows")
        rows = ReportedRows.of(fitted, X, y, max_rows)
        tell("explaining the model")
        rows = replace(rows, model=rows.model.with_relevance(relevance_of(rows.model)))
        context = _context(rows, target, dict(notes or {}))
        context |= {"title": title or f"Report on {target}", "target": target, "number": number}
        rest = len(template.render(**context, deviation=None, panel="").encode("utf-8"))
        tell("putting the model into the page")
        panel, away = _panel(rows, context["worst"], MOST_BYTES - rest)
    text = template.render(**context, deviation=away, panel=panel)
    write_atomically(Path(os.path.realpath(path)), text.encode("utf-8"))
    return Path(path)


_ASSETS = {"style": "report.css", "engine": "engine.js", "script": "panel.js"}


def _asset(name: str) -> str:
    return (files("tensorlace.report") / "assets" / name).read_text(encoding="utf-8")


def _context(rows: ReportedRows, target: str, notes: dict[str, Any]) -> dict[str, Any]:
    """Variables of the template, but for the what-if panel."""
    model, record, relevance = rows.model, rows.model.record, relevance_of(rows.model)
    summary = overview(model)
    order = np.argsort(-relevance, kind="stable")
    effects = [partial_effects(model, int(d)) for d in order[:_EFFECTS]]
    know, sentence = rows.trained_on()
    unlike = np.flatnonzero(rows.novelty.unlike)
    farthest = unlike[np.argsort(-rows.novelty.measure[unlike], kind="stable")]
    picture, words = figures.spectrum(model)
    told = {str(record.check), f"{record.held_back}."}
    tried = tables.records(record.search_results)
    found: dict[str, Any] = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "rows": rows,
        "overview": summary,
        "remarks": [r for r in summary.remarks if r not in told],
        "know": know,
        "sentence": sentence,
        "card": tables.data_card(rows, target),
        "choices": tables.choices(record),
        "n_tried": len(tried),
        "search_seconds": sum(float(t["seconds"]) for t in tried),
        "noise": tables.noise_table(record),
        "noise_kind": model.noise.kind.replace("_", " "),
        "trace": figures.trace(model.machines),
        "relevance": figures.relevance(rows.names, relevance),
        "effects": [figures.effect(e, axis_limits(effects)) for e in effects],
        "n_unlike": len(unlike),
        "unlike": tables.row_table(rows, farthest[:_WORST], relevance, why=True),
        "spectrum": picture,
        "spectrum_words": words,
        "ms_per_row": 1e3 * rows.seconds / len(rows),
        "bytes": n_bytes(model),
        "code": tables.code(record),
        "versions": tables.versions(),
        "notes": notes,
        "calibrated": model.calibration,
        "worst": [],
        "scores": rows.scores(),
        "check": None,
        **{key: _asset(name) for key, name in _ASSETS.items()},
    }
    if rows.y is not None:
        worst = np.argsort(-np.abs(rows.z), kind="stable")[:_WORST]
        areas = [None, *map(int, order[:_REGIONS])]
        found |= {
            "worst": worst.tolist(),
            "worst_rows": tables.row_table(rows, worst, relevance),
            "observed": figures.observed(rows),
            "residuals": figures.residual_plot(rows),
            "regions": [area for d in areas if (area := regions(rows, d))],
            "unlike_inside": float(rows.inside(0.95)[unlike].mean()) if len(unlike) else None,
        }
        if rows.check is not None:
            found |= {
                "check": rows.check,
                "calibration": figures.calibration(rows),
                "pit": figures.pit(rows),
            }
    return found


def _panel(rows: ReportedRows, worst: list[int], room: int) -> tuple[str, Any]:
    """JSON of the what-if panel, and how far its model is from the full one."""
    full = replace(rows.model, n_draws=0)  # the page has the closed form
    size = max(int(room / _TEXT_PER_BYTE), _SMALLEST_MODEL)
    while True:
        small = compact(full, size)
        text = _json(_content(small, rows, worst))
        if len(text) <= room or size <= _SMALLEST_MODEL:
            break
        size = int(0.95 * size)
    if small is full:
        return text, None
    dist, novelty = small.dist_and_novelty(rows.X)
    away = deviation(dist, full.ensemble.dist(rows.X))
    measure = rows.novelty.measure
    apart = np.abs(novelty.measure - measure) / np.where(measure > 0.0, measure, 1.0)
    return text, {
        "by": away,
        "members": len(small.machines),
        "of": len(full.machines),
        "novelty": float(np.median(apart)),
        "largest_novelty": float(np.max(apart)),
    }


def _content(model: FittedModel, rows: ReportedRows, worst: list[int]) -> dict[str, Any]:
    full = rows.model
    start = [{"name": "a typical row", "x": _plain(typical_row(full))}]
    for k in [*worst, *range(min(3, len(rows)))]:
        entry: dict[str, Any] = {"name": f"row {rows.numbers[k]:,}", "x": _plain(rows.X[k])}
        if rows.y is not None:
            entry["y"] = float(rows.y[k])
        if entry not in start:
            start.append(entry)
    along = int(np.argmax(relevance_of(full)))
    columns = controls(full, rows.X)
    return {"model": embed(model), "columns": columns, "starts": start, "along": along}


def _plain(row: Array) -> list[float | None]:
    return [None if np.isnan(v) else float(v) for v in row]


def _json(content: dict[str, Any]) -> str:
    """JSON that can stand in a script element."""
    try:
        text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    except ValueError as error:
        raise InputError("the model holds numbers that are not finite: it has no panel") from error
    return text.replace("<", "\\u003c")
