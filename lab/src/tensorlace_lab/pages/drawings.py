"""Inline SVG of the page: ranks and calibration. Strings only, no plotting library."""

import math
from collections.abc import Sequence
from html import escape

import numpy as np

from tensorlace._types import Array
from tensorlace_lab.measuring.cells import Record
from tensorlace_lab.measuring.scores import LEVELS
from tensorlace_lab.measuring.statistics import Ranking, ranking
from tensorlace_lab.paper.score_tables import grouped, label, systems_of

__all__ = ["calibration", "critical_difference", "ranks"]


def ranks(records: Sequence[Record], sets: Sequence[str]) -> str:
    """Critical-difference diagram of the mean NLL over the sets that all systems have."""
    found = grouped(records, "nll")
    systems = systems_of(records)
    common = [s for s in sets if all(system in found.get(s, {}) for system in systems)]
    if len(systems) < 2 or len(common) < 2:
        return ""
    scores = np.array([[np.mean(list(found[s][k].values())) for k in systems] for s in common])
    order = ranking(systems, scores)
    return (
        f"<h3>Ranks over {len(common)} sets</h3><p>Mean rank by NLL; Friedman's test that all are "
        f"alike: p = {order.p:.2g}. Systems joined by a bar differ by less than Nemenyi's critical "
        f"difference, {order.critical:.2f}.</p>{critical_difference(order)}"
    )


def critical_difference(order: Ranking) -> str:
    """The diagram of Demšar (2006)."""
    k, width, left, right = len(order.systems), 840, 250.0, 590.0
    height = 70 + 22 * math.ceil(k / 2) + 12

    def x(rank: float) -> float:
        return left + (right - left) * (rank - 1) / max(k - 1, 1)

    parts = [_line(left, 40, right, 40)]
    for tick in range(1, k + 1):
        parts += [_line(x(tick), 36, x(tick), 40), _text(x(tick), 30, str(tick), "middle")]
    half = math.ceil(k / 2)
    for j, (name, rank) in enumerate(zip(order.systems, order.ranks, strict=True)):
        first = j < half
        y = 72 + 22 * (j if first else k - 1 - j)
        edge = left - 14 if first else right + 14
        parts.append(_line(x(rank), 40, x(rank), y))
        parts.append(_line(x(rank), y, edge, y))
        side, anchor = (-6, "end") if first else (6, "start")
        parts.append(_text(edge + side, y + 4, f"{name} {rank:.2f}", anchor))
    bar, reach = 48.0, 0
    for j in range(k):
        end = max(i for i in range(k) if order.ranks[i] - order.ranks[j] <= order.critical)
        if end > max(j, reach):
            parts.append(_line(x(order.ranks[j]) - 3, bar, x(order.ranks[end]) + 3, bar, 4))
            bar, reach = bar + 6, end
    return _svg(width, height, parts, "critical difference")


def calibration(records: Sequence[Record], sets: Sequence[str]) -> str:
    """Empirical over nominal coverage, a panel per system: a line per set, and their mean."""
    panels = []
    for system in systems_of(records):
        lines = []
        for name in sets:
            of = [
                r["metrics"]["coverages"]
                for r in records
                if r["set"] == name and label(r) == system and "coverages" in r["metrics"]
            ]
            if of:
                lines.append(np.mean(of, axis=0))
        if not lines:
            continue
        parts = [_line(30, 200, 200, 30, 1, "#999", dash=True)]
        parts += [_line(30, 200, 200, 200), _line(30, 200, 30, 30)]
        parts += [_text(115, 218, "nominal", "middle"), _text(30, 18, system, "start")]
        parts += [_curve(line, "#9aa5b8", 1) for line in lines]
        parts.append(_curve(np.mean(lines, axis=0), "#1b5e9e", 2.5))
        panels.append(_svg(240, 224, parts, f"calibration of {system}"))
    return (
        "<h3>Calibration</h3><p>Share of test rows inside the central interval over its nominal "
        "coverage: a thin line per set, the mean thick. Above the diagonal is too cautious, below "
        f'too sure.</p><div class="grid">{"".join(panels)}</div>'
    )


def _curve(coverages: Array, colour: str, width: float) -> str:
    points = " ".join(
        f"{30 + 170 * level:.1f},{200 - 170 * c:.1f}"
        for level, c in zip((0, *LEVELS, 1), (0, *coverages, 1), strict=True)
    )
    return (
        f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{width:g}" '
        'stroke-linejoin="round"/>'
    )


def _svg(width: float, height: float, parts: Sequence[str], title: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" role="img" aria-label="{escape(title)}">{"".join(parts)}</svg>'
    )


def _line(
    x: float, y: float, x2: float, y2: float, width: float = 1, colour: str = "currentColor",
    *, dash: bool = False,
) -> str:  # fmt: skip
    dashes = ' stroke-dasharray="4 3"' if dash else ""
    return (
        f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
        f'stroke-width="{width:g}"{dashes}/>'
    )


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="12" text-anchor="{anchor}" '
        f'fill="currentColor">{escape(text)}</text>'
    )
