"""Figures of a report."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri
from scipy.stats import binom

from tensorlace._types import Array
from tensorlace.displays.effects import MOST_CATEGORIES, most_frequent
from tensorlace.displays.spectrum import eigenvalues
from tensorlace.explain.effects import Effects
from tensorlace.kinds import Datetime
from tensorlace.machines.fitted_model import FittedModel
from tensorlace.report.drawing import Plot, bars
from tensorlace.report.reported_rows import ReportedRows

__all__ = [
    "calibration",
    "effect",
    "observed",
    "pit",
    "relevance",
    "residual_plot",
    "spectrum",
    "trace",
]

_MOST_POINTS = 1500
_MOST_STEMS = 300


def _even(n: int, most: int) -> Any:
    """Row numbers, at most so many, evenly spread."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(int))


def _span(*arrays: Any) -> tuple[float, float]:
    values = np.concatenate([np.ravel(a) for a in arrays])
    values = values[np.isfinite(values)]
    low, high = float(values.min()), float(values.max())
    return low - 0.04 * (high - low), high + 0.04 * (high - low)


def observed(rows: ReportedRows) -> str:
    """Predicted against observed, with 95 % intervals of some rows."""
    assert rows.y is not None
    mean = rows.dist.mean
    dots, stems = _even(len(rows), _MOST_POINTS), _even(len(rows), _MOST_STEMS)
    both = _span(mean, rows.y)
    title = f"Predicted against observed values of {len(rows)} rows; on the line they agree"
    plot = Plot(both, both, title=title, xlabel="predicted mean", ylabel="observed", height=400)
    plot.stems(mean[stems], rows.ends[stems, 0], rows.ends[stems, 3])
    plot.line(both, both, "ref")
    inside = rows.inside(0.95)[dots]
    plot.points(mean[dots][inside], rows.y[dots][inside])
    return plot.points(mean[dots][~inside], rows.y[dots][~inside], "dots out", 2.6).svg()


def calibration(rows: ReportedRows) -> str:
    """Observed against nominal coverage of central intervals."""
    check = rows.check
    assert check is not None
    levels = np.linspace(0.0, 1.0, 101)
    inside = np.sort(np.abs(2.0 * check.pit - 1.0))
    share = np.searchsorted(inside, levels, side="right") / len(inside)
    n = max(round(check.n_effective), 1)
    low, high = (binom.ppf(q, n, levels) / n for q in (0.025, 0.975))
    percent = [(k, f"{100 * k:.0f} %") for k in (0.0, 0.25, 0.5, 0.75, 1.0)]
    title = "Share of observed values inside intervals, by the coverage the intervals promise"
    plot = Plot(
        (0, 1), (0, 1), title=title, xlabel="promised coverage", ylabel="observed", xticks=percent
    )
    return plot.area(levels, low, high).line((0, 1), (0, 1), "ref").line(levels, share).svg()


def pit(rows: ReportedRows) -> str:
    """Histogram of where in their distributions targets fell."""
    check = rows.check
    assert check is not None
    n = len(check.pit)
    k = int(np.clip(n // 25, 5, 20))
    density = np.histogram(check.pit, k, range=(0.0, 1.0))[0] * k / n
    effective = max(round(check.n_effective), 1)
    low, high = (float(binom.ppf(q, effective, 1 / k)) * k / effective for q in (0.025, 0.975))
    edges = np.linspace(0.0, 1.0, k + 1)
    top = 1.1 * max(float(density.max()), high)
    title = "Histogram of the probability below each observed value; flat is right"
    plot = Plot(
        (0, 1),
        (0, top),
        title=title,
        xlabel="probability below the observed value",
        ylabel="density",
    )
    plot.boxes(edges[:-1], edges[1:], np.zeros(k), density)
    return plot.area(np.array([0.0, 1.0]), np.full(2, low), np.full(2, high)).level(1.0).svg()


def residual_plot(rows: ReportedRows) -> str:
    """Standardised residuals against the prediction."""
    some = _even(len(rows), _MOST_POINTS)
    z, mean = np.clip(rows.z, -8.0, 8.0)[some], rows.dist.mean[some]
    top = max(3.2, float(np.abs(z).max()) * 1.05)
    title = "Residuals in standard deviations against the predicted mean"
    plot = Plot(
        _span(mean), (-top, top), title=title, xlabel="predicted mean", ylabel="residual / std"
    )
    edge = float(ndtri(0.975))
    plot.area(np.array(_span(mean)), np.full(2, -edge), np.full(2, edge)).level(0.0)
    return plot.points(mean, z).svg()


def trace(machines: Sequence[Any]) -> str | None:
    """The objective of each member, step by step."""
    lines = [np.asarray(m.fit.history, dtype=float) for m in machines if len(m.fit.history) > 1]
    if not lines:
        return None
    late = np.concatenate([h[len(h) // 4 :] for h in lines])  # the first steps fall far
    title = "Objective of each member, by step of the solver"
    axes: dict[str, Any] = {"xlabel": "step", "ylabel": "objective", "title": title}
    plot = Plot((1, max(map(len, lines))), _span(late), **axes)
    for k, h in enumerate(lines):
        plot.line(np.arange(1, len(h) + 1), h, f"s{k % 5}{' faint' if len(lines) > 5 else ''}")
    return plot.svg()


def spectrum(model: FittedModel) -> tuple[str, str]:
    """Eigenvalues of the posterior precisions with the threshold, and a sentence about them."""
    arguments = model.record.arguments
    threshold, relative = arguments.get("threshold"), arguments.get("relative_threshold")
    spectra = [eigenvalues(m.fit.posterior) for m in model.machines]
    kept = [s for s in spectra if s.size]
    dropped = model.record.n_dropped
    total = sum(map(len, spectra)) + dropped
    words = f"{total:,} directions in all"
    if threshold is None:
        words += "; no threshold t̂ was set, so all directions of positive curvature count."
    else:
        unit = " times the largest eigenvalue" if relative else ""
        cut = f"{dropped:,} were" if dropped else "none was"
        words += f"; with the threshold t̂ = {threshold:g}{unit}, {cut} cut off."
    if not kept:
        return "", words
    low, high = min(float(s[-1]) for s in kept), max(float(s[0]) for s in kept)
    cuts = set()
    if threshold:
        cuts = {threshold * (float(s[0]) if relative else 1.0) for s in kept}
        low = min(low, *cuts)
    title = "Eigenvalues of the posterior precision of each member, largest first"
    plot = Plot(
        (1, max(map(len, kept))),
        (low / 1.5, high * 1.5),
        title=title,
        xlabel="direction",
        ylabel="eigenvalue",
        ylog=True,
    )
    for k, s in enumerate(kept):
        some = _even(len(s), 200)
        plot.line(some + 1, s[some], f"s{k % 5}{' faint' if len(kept) > 5 else ''}")
    for cut in sorted(cuts)[:5]:
        plot.level(cut, "t̂", "cut")
    return plot.svg(), words


def relevance(names: Sequence[str], shares: Array, most: int = 20) -> str:
    """Bars of the most relevant columns."""
    order = np.argsort(-shares, kind="stable")[:most]
    title = "Share of the variance of the target that each column accounts for"
    return bars([names[d] for d in order], [float(shares[d]) for d in order], title)


def effect(effects: Effects, limits: tuple[float, float]) -> str:
    """Average prediction as one column varies, with its band, and where rows are."""
    name, values = effects.column, effects.grid
    title = f"Average prediction as {name} varies, with a {effects.coverage:.0%} band"
    axes: dict[str, Any] = {
        "title": title,
        "xlabel": name,
        "ylabel": "average prediction",
        "height": 230,
    }
    if effects.discrete or len(effects) < 3:
        shown = most_frequent(effects, MOST_CATEGORIES)
        if len(shown) < len(effects):
            axes["xlabel"] = f"{name} (the {len(shown)} most frequent of {len(effects)})"
        k = np.arange(len(shown)) + 0.5
        texts = [_text(v) for v in values[shown]]
        step = max(1, len(texts) // 6)
        ticks = [(p, _short(t)) for p, t in list(zip(k, texts, strict=True))[::step]]
        plot = Plot((0, len(k)), limits, xticks=ticks, **axes)
        return (
            plot.stems(k, effects.lower[shown], effects.upper[shown], "stems wide")
            .points(k, effects.mean[shown], "dots s0", 4)
            .svg()
        )
    dates = isinstance(effects.kind, Datetime)
    x, rows = (
        v.astype("M8[s]").astype(float) if dates else np.asarray(v, dtype=float)
        for v in (values, effects.rows)
    )
    xticks = None
    if dates:
        some = [0, len(x) // 2, len(x) - 1]
        xticks = [(x[i], str(values[i].astype("M8[D]"))) for i in some]
    plot = Plot((x[0], x[-1]), limits, xticks=xticks, **axes)
    plot.area(x, effects.lower, effects.upper).line(x, effects.mean)
    return plot.rug(rows[(rows >= x[0]) & (rows <= x[-1])]).svg()


def _text(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return "missing" if np.isnan(value) else f"{value:g}"
    return "missing" if value is None else str(value)


def _short(text: str, most: int = 10) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
