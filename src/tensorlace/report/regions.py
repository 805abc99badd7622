"""Coverage of intervals in parts of the table, by a column or by the prediction."""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import binom

from tensorlace._types import Array
from tensorlace.report.drawing import Plot, label
from tensorlace.report.reported_rows import ReportedRows

__all__ = ["regions"]

_BINS, _CATEGORIES = 5, 6


def regions(rows: ReportedRows, d: int | None = None) -> str | None:
    """Coverage of 50 % and 95 % intervals by column ``d``, or by the prediction.

    Numbers are cut into bins of about equally many rows; of categories the most frequent are shown.
    None if there is nothing to cut.
    """
    name = "the prediction" if d is None else rows.names[d]
    values = rows.dist.mean if d is None else rows.X[:, d]
    encoding = rows.model.encoding
    labels = None if d is None else encoding.labels(d)
    if labels is not None:
        bins, ticks = _by_category(values, labels)
    else:
        bins, edges = _by_size(values)
        ticks = [(float(k), _word(encoding, d, e)) for k, e in enumerate(edges)]
        if max((len(text) for _, text in ticks), default=0) > 7:  # such as dates
            ticks = ticks[::2]
    counts = np.bincount(bins[bins >= 0])
    if len(counts) < 2:
        return None
    plot = Plot(
        (0, len(counts)),
        (0, 1.06),
        title=f"Coverage of 50 % and 95 % intervals by {name}",
        xlabel=name if labels is not None else f"bins of {name}",
        ylabel="coverage",
        xticks=ticks,
        height=230,
    )
    middle, n = np.arange(len(counts)) + 0.5, np.maximum(counts, 1)
    for level, style in ((0.95, "s0"), (0.5, "s1")):
        share = np.bincount(bins[bins >= 0], rows.inside(level)[bins >= 0], len(counts)) / n
        low, high = (binom.ppf(q, n, level) / n for q in (0.025, 0.975))
        plot.boxes(middle - 0.32, middle + 0.32, low, high, "area band").level(level, "", "ref")
        plot.points(middle[counts > 0], share[counts > 0], f"dots {style}", 4.5)
    return plot.svg()


def _by_size(values: Array) -> tuple[npt.NDArray[np.intp], Array]:
    """Bin of each value (n,), -1 if it is missing, and the edges of the bins."""
    present = ~np.isnan(values)
    shares = np.linspace(0.0, 1.0, _BINS + 1)
    edges = np.unique(np.quantile(values[present], shares)) if present.any() else np.empty(0)
    if len(edges) < 2:
        return np.full(len(values), -1), edges
    bins = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    return np.where(present, bins, -1), edges


def _by_category(
    values: Array, labels: list[Any]
) -> tuple[npt.NDArray[np.intp], list[tuple[float, str]]]:
    """Place of each value (n,) among the most frequent categories, -1 if none; their names."""
    known = values >= 0.0  # not so for NaN
    counts = np.bincount(values[known].astype(int), minlength=len(labels))
    top = [k for k in np.argsort(-counts, kind="stable")[:_CATEGORIES] if counts[k]]
    bins = np.full(len(values), -1)
    for place, k in enumerate(top):
        bins[values == k] = place
    texts = [str(labels[k]) for k in top]
    short = [t if len(t) <= 10 else t[:9] + "…" for t in texts]
    return bins, [(place + 0.5, text) for place, text in enumerate(short)]


def _word(encoding: Any, d: int | None, x: float) -> str:
    """Edge of a bin as a value of the table, shortened."""
    shown = x if d is None else encoding.decoded(d, np.array([x]))[0]
    if isinstance(shown, np.datetime64):
        return str(shown.astype("M8[D]"))
    return label(float(f"{float(shown):.3g}"))
