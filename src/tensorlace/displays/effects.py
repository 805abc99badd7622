"""Display of the effects of single columns."""

from collections.abc import Sequence
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt

from tensorlace.errors import InputError
from tensorlace.explain.effects import Effects, partial_effects
from tensorlace.explain.relevance import relevance_of
from tensorlace.machines.fitted_model import FittedModel, HoldsModel, holder

__all__ = ["EffectsDisplay", "MOST_CATEGORIES", "axis_limits", "most_frequent"]

_MOST_PANELS = 12
MOST_CATEGORIES = 16
_ACROSS = 3
_CUT, _ROOM = 0.01, 0.5
"""Share of the values whose bands may leave the axis, if they are beyond this part of the range of
all averages."""

_LINE, _BAND = "#1f5a99", "#9dc3e6"


@final
class EffectsDisplay:
    """One panel per column: average prediction and band, categories as points with bars.

    Parameters
    ----------
    effects : sequence of Effects
    relevance : sequence of float, optional
        Written above each panel.
    rows : sequence of arrays, optional
        Values of the column in some rows, drawn as ticks along the lower edge; by default those
        of the effects.

    Attributes
    ----------
    figure_ : matplotlib.figure.Figure
    axes_ : ndarray of Axes
        Those with a panel, after `plot`.
    """

    def __init__(
        self,
        effects: Sequence[Effects],
        relevance: Sequence[float] | None = None,
        rows: Sequence[Any] | None = None,
    ) -> None:
        self.effects, self.relevance, self.rows = effects, relevance, rows

    @classmethod
    def from_estimator(
        cls,
        estimator: FittedModel | HoldsModel,
        X: Any = None,
        columns: Sequence[str | int] | None = None,
        ax: Any = None,
        *,
        n_points: int = 50,
        coverage: float = 0.9,
        method: str = "accumulated",
    ) -> Self:
        """Compute the effects of a fitted model and plot them.

        Parameters
        ----------
        estimator : TNKMRegressor or FittedModel
        X : table, optional
            Rows whose values are marked along the lower edge; by default some training rows.
        columns : sequence of str or int, optional
            Default: the most relevant, twelve at most.
        ax : Axes or sequence of Axes, optional
            Where to plot, one per column.
        n_points, coverage, method
            As in `TNKMRegressor.partial_effects`.
        """
        model = holder(estimator).fitted_model()
        relevance = relevance_of(model)
        if columns is None:
            chosen = np.argsort(-relevance, kind="stable")[:_MOST_PANELS].tolist()
        else:
            chosen = [model.column(c) for c in columns]
        if not chosen:
            raise InputError("columns is empty: name at least one column")
        effects = [partial_effects(model, d, None, n_points, coverage, method) for d in chosen]
        rows = None
        if X is not None:
            table = model.encode(X)
            rows = [model.encoding.decoded(d, _few(table[:, d])) for d in chosen]
        return cls(effects, [float(relevance[d]) for d in chosen], rows).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw into ``ax``, one Axes per column, or into a new figure; all on one scale."""
        import matplotlib.pyplot as plt

        n = len(self.effects)
        if ax is None:
            across = min(n, _ACROSS)
            down = -(-n // across)
            figure, grid = plt.subplots(
                down,
                across,
                figsize=(3.4 * across + 0.4, 2.7 * down),
                sharey=True,
                squeeze=False,
                layout="constrained",
            )
            axes = grid.ravel()
            for empty in axes[n:]:
                empty.set_visible(False)
        else:
            axes = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
            if len(axes) < n:
                raise InputError(f"ax has {len(axes)} axes for {n} columns: give one per column")
            figure, across = axes[0].figure, len(axes)
        self.figure_, self.axes_ = figure, axes[:n]
        limits = axis_limits(self.effects)
        for k, (panel, effect) in enumerate(zip(self.axes_, self.effects, strict=True)):
            self._panel(panel, k, effect)
            panel.set_ylim(limits)
            if k % across == 0:
                panel.set_ylabel("average prediction")
        return self

    def _panel(self, ax: Any, k: int, e: Effects) -> None:
        ax.set_xlabel(e.column)
        if e.discrete:
            _points(ax, e)
        else:
            _curve(ax, e)
            _ticks(ax, e.rows if self.rows is None else self.rows[k])
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="y", color="0.9", linewidth=0.8)
        ax.set_axisbelow(True)
        if self.relevance is not None:
            ax.set_title(
                f"{self.relevance[k]:.1%} of variance", fontsize=9, loc="left", color="0.35"
            )


def _curve(ax: Any, e: Effects) -> None:
    ax.fill_between(e.grid, e.lower, e.upper, color=_BAND, alpha=0.6, linewidth=0)
    ax.plot(e.grid, e.mean, color=_LINE, linewidth=1.8, marker="o" if len(e) == 1 else None)
    ax.autoscale_view()
    ax.autoscale(False)
    if e.grid.dtype.kind == "M":
        from matplotlib import dates as untyped

        dates: Any = untyped

        locator = dates.AutoDateLocator(minticks=3, maxticks=5)
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))


def _points(ax: Any, e: Effects) -> None:
    shown = most_frequent(e, MOST_CATEGORIES)
    place, mean = np.arange(len(shown)), e.mean[shown]
    errors = np.stack([mean - e.lower[shown], e.upper[shown] - mean])
    ax.errorbar(
        place,
        mean,
        yerr=np.maximum(errors, 0.0),
        fmt="o",
        color=_LINE,
        ecolor=_BAND,
        elinewidth=min(14.0, 150.0 / len(shown)),
        markersize=4,
    )
    labels = ["missing" if v is None or v != v else str(v) for v in e.grid[shown]]
    labels = [text if len(text) <= 14 else text[:12] + "..." for text in labels]
    crowded = sum(map(len, labels)) > 26
    ax.set_xticks(place, labels, rotation=40 if crowded else 0, ha="right" if crowded else "center")
    ax.set_xlim(-0.6, len(shown) - 0.4)
    if len(shown) < len(e):
        ax.set_xlabel(f"{e.column} (the {len(shown)} most frequent of {len(e)})")


def _ticks(ax: Any, values: Any) -> None:
    """Values of rows as ticks along the lower edge."""
    ax.plot(
        values,
        np.full(len(values), 0.015),
        "|",
        color="0.3",
        markersize=5,
        markeredgewidth=0.5,
        alpha=0.5,
        transform=ax.get_xaxis_transform(),
        scalex=False,
        scaley=False,
    )


def most_frequent(e: Effects, most: int) -> npt.NDArray[np.intp]:
    """Places, in order, of the values of most rows."""
    return np.sort(np.argsort(-e.counts, kind="stable")[:most])


def axis_limits(effects: Sequence[Effects], most: int = MOST_CATEGORIES) -> tuple[float, float]:
    """Lower and upper end of one axis for all effects, of columns the ``most`` frequent categories.

    It has all averages and their bands, but not in full the widest few bands if they are far wider
    than averages differ, as all curves would be flat.
    """
    shown = [(e, most_frequent(e, most) if e.discrete else slice(None)) for e in effects]
    mean = np.concatenate([e.mean[k] for e, k in shown])
    lower = np.concatenate([e.lower[k] for e, k in shown])
    upper = np.concatenate([e.upper[k] for e, k in shown])
    low, high = float(mean.min()), float(mean.max())
    room = _ROOM * (high - low)
    low = max(float(lower.min()), min(low - room, float(np.quantile(lower, _CUT))))
    high = min(float(upper.max()), max(high + room, float(np.quantile(upper, 1.0 - _CUT))))
    room = 0.05 * (high - low) or 0.05 * abs(high) or 0.5
    return low - room, high + room


def _few(x: Any, most: int = 200) -> Any:
    """Evenly spread order statistics, so that the ticks show where rows are dense."""
    present = np.sort(x[~np.isnan(x)])
    return present[np.linspace(0, len(present) - 1, min(len(present), most)).round().astype(int)]
