"""The figures of the page of speed: seconds against sizes, seconds and NLL against rows."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tensorlace_lab.writing.charts import save, subplots

__all__ = ["peers", "scaling"]

OURS, PAPER = "#1b5e9e", "#999999"
AXES = [("N", "streamed"), ("I", "in memory"), ("R", "in memory"), ("D", "in memory")]
NAMES = {"N": "rows N", "I": "basis functions I", "R": "rank R", "D": "columns D"}
COLOURS = [OURS, "#c44e52", "#dd8452", "#55a868", "#8172b3", "#937860", "#da8bc3"]


def scaling(
    points: Mapping[tuple[str, str], Sequence[tuple[int, float]]],
    slopes: Mapping[tuple[str, str], Mapping[str, Any]],
    path: Path,
) -> Path:
    """Log-log panels of seconds per sweep, with the fitted line and the paper's slope."""
    drawn, panels = subplots(1, 4, figsize=(11, 3.1))
    for panel, (axis, where) in zip(panels[0], AXES, strict=True):
        slope = slopes.get((axis, where))
        if slope is None:
            panel.set_visible(False)
            continue
        x, y = np.array(points[axis, where], dtype=float).T
        centre = np.exp(np.mean(np.log(y)) - slope["exponent"] * np.mean(np.log(x)))
        panel.loglog(x, y[0] * (x / x[0]) ** slope["paper"], "--", color=PAPER)
        panel.loglog(x, centre * x ** slope["exponent"], color=OURS, alpha=0.5)
        panel.loglog(x, y, "o", color=OURS)
        panel.set_title(
            f"fitted {slope['exponent']:.2f} (line), paper {slope['paper']} (dashed)", fontsize=8
        )
        panel.set_xlabel(f"{NAMES[axis]}, {where}")
        if axis != "N":
            panel.set_xticks(x, [f"{value:.0f}" for value in x])
            panel.set_xticks([], minor=True)
    panels[0][0].set_ylabel("seconds per sweep")
    return save(drawn, path)


def peers(rows: Sequence[Mapping[str, Any]], path: Path) -> Path:
    """Fit time and NLL of every system against the number of rows."""
    systems = list(dict.fromkeys(r["system"] for r in rows))
    drawn, ((time, nll),) = subplots(1, 2, figsize=(9, 3.4))
    for system, colour in zip(systems, COLOURS, strict=False):
        found = [r for r in rows if r["system"] == system and "nll" in r]
        x = [r["N"] for r in found]
        look: dict[str, Any] = {"color": colour, "marker": "o", "label": system}
        look["linewidth"] = 2.5 if system.startswith("tensorlace") else 1.2
        time.plot(x, [r["fit_s"] for r in found], **look)
        nll.plot(x, [r["nll"] for r in found], **look)
    sizes = sorted({r["N"] for r in rows})
    for panel in (time, nll):
        panel.set_xscale("log")
        panel.set_xticks(sizes, [f"{N:,}" for N in sizes])
        panel.set_xticks([], minor=True)
        panel.set_xlabel("training rows")
    time.set_yscale("log")
    time.set_ylabel("seconds to fit")
    nll.set_ylabel("negative log likelihood of test rows")
    nll.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return save(drawn, path)
