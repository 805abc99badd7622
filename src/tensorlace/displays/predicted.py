"""Predictions with their intervals beside what was observed."""

from typing import Any, Self, final

import numpy as np

from tensorlace._types import Array
from tensorlace.displays.canvas import COLORS, GREY, RED, axes, choice, finish
from tensorlace.errors import InputError

__all__ = ["PredictiveDisplay"]

_GRID = 300
_MARGIN = 0.05
_KINDS = ("curve", "observed", "sorted")


@final
class PredictiveDisplay:
    """Predicted means and central intervals, and the targets if they are known.

    Parameters
    ----------
    mean, lower, upper : (n,) arrays
    y : (n,) array or None
    coverage : float
        Of the intervals.
    curve : (4, k) array or None
        For tables of one column: x, mean, lower and upper on a grid.
    x : (n,) array or None
        Values of the one column.
    xlabel, ylabel : str, optional

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    """

    def __init__(
        self,
        mean: Array,
        lower: Array,
        upper: Array,
        y: Array | None = None,
        *,
        coverage: float = 0.9,
        x: Array | None = None,
        curve: Array | None = None,
        xlabel: str = "x",
        ylabel: str = "y",
    ) -> None:
        self.mean, self.lower, self.upper = mean, lower, upper
        self.y: Any = y
        self.x: Any = x
        self.curve: Any = curve
        self.coverage = coverage
        self.xlabel, self.ylabel = xlabel, ylabel
        self.ax_: Any = None
        self.figure_: Any = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        coverage: float = 0.9,
        kind: str = "auto",
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw predictions for the rows of X, by ``predict_interval`` of the estimator.

        Parameters
        ----------
        estimator : TNKMRegressor
        X : (n, D) table
        y : (n,) array, optional
            Only a curve can do without.
        coverage : float
        kind : {"auto", "curve", "observed", "sorted"}
            A curve over the only column of X; predicted against observed; or rows in the order of
            their prediction. "auto" draws a curve if it can, else "observed".
        ax : matplotlib axes, optional
        **options
            For the line of the mean, or for the points.
        """
        choice("kind", kind, ("auto", *_KINDS))
        mean, (lower, upper) = estimator.predict(X), estimator.predict_interval(X, coverage)
        x, grid = _only_column(X) if kind in ("auto", "curve") else (None, None)
        curve = None
        if x is not None:
            along = np.asarray(grid)[:, 0]
            ends = estimator.predict_interval(grid, coverage)
            curve = np.stack([along.astype(float), estimator.predict(grid), *ends])
        display = cls(
            *(mean, lower, upper, None if y is None else np.asarray(y, dtype=float)),
            coverage=coverage,
            x=x,
            curve=curve,
            xlabel=str(next(iter(getattr(X, "columns", ["x"])))),
            ylabel=str(getattr(y, "name", None) or "y"),
        )
        return display.plot(ax, kind=kind, **options)

    def plot(self, ax: Any = None, *, kind: str = "auto", **options: Any) -> Self:
        """Draw on the given or on new axes."""
        choice("kind", kind, ("auto", *_KINDS))
        if kind == "auto":
            kind = "observed" if self.curve is None else "curve"
        if kind == "curve" and self.curve is None:
            raise InputError(
                "a curve needs a table with one column of numbers: use kind='observed'"
            )
        if kind == "observed" and self.y is None:
            raise InputError("kind='observed' compares with y: give y, or use kind='sorted'")
        self.ax_ = axes(ax)
        self.figure_ = self.ax_.figure
        getattr(self, f"_{kind}")(self.ax_, options)
        return self

    @property
    def _interval(self) -> str:
        return f"{100 * self.coverage:.3g} % interval"

    def _hits(self) -> tuple[Any, str]:
        """Targets inside their interval (n,), and how many."""
        inside = (self.lower <= self.y) & (self.y <= self.upper)
        return inside, f"{self._interval}s hold {100 * inside.mean():.3g} % of {len(inside)} rows"

    def _curve(self, ax: Any, options: dict[str, Any]) -> None:
        x, mean, lower, upper = self.curve
        band = {"color": COLORS[0], "alpha": 0.22, "linewidth": 0, "label": self._interval}
        ax.fill_between(x, lower, upper, **band)
        ax.plot(x, mean, **{"color": COLORS[0], "linewidth": 2, "label": "mean", **options})
        title = None
        if self.y is not None:
            inside, title = self._hits()
            for mask, color, label in ((inside, "0.15", "inside"), (~inside, RED, "outside")):
                mark = "o" if label == "inside" else "D"
                ax.plot(self.x[mask], self.y[mask], mark, color=color, ms=3.5, label=label)
        ax.set(xlabel=self.xlabel, ylabel=self.ylabel)
        finish(ax, title)

    def _observed(self, ax: Any, options: dict[str, Any]) -> None:
        inside, title = self._hits()
        y = np.asarray(self.y)
        for mask, color, label in ((inside, COLORS[0], "inside"), (~inside, RED, "outside")):
            bars = np.abs(np.stack([self.lower, self.upper]) - self.mean)[:, mask]
            look = {
                "fmt": "o" if label == "inside" else "D",
                "color": color,
                "ms": 3.5,
                "elinewidth": 0.7,
                "alpha": 0.8,
                "label": f"{label} the interval",
            }
            ax.errorbar(y[mask], self.mean[mask], bars, **{**look, **options})
        ends = [min(y.min(), self.mean.min()), max(y.max(), self.mean.max())]
        ax.plot(ends, ends, color=GREY, linewidth=1, linestyle="--", zorder=3)
        ax.set(xlabel=f"observed {self.ylabel}", ylabel=f"predicted {self.ylabel}")
        finish(ax, title)

    def _sorted(self, ax: Any, options: dict[str, Any]) -> None:
        order = np.argsort(self.mean, kind="stable")
        number = np.arange(1, len(order) + 1)
        band = {"color": COLORS[0], "alpha": 0.22, "linewidth": 0, "label": self._interval}
        ax.fill_between(number, self.lower[order], self.upper[order], step="mid", **band)
        look = {"color": COLORS[0], "linewidth": 2, "label": "mean"}
        ax.plot(number, self.mean[order], **{**look, **options})
        title = None
        if self.y is not None:
            inside, title = self._hits()
            for mask, color, label in ((inside, "0.15", "inside"), (~inside, RED, "outside")):
                mark, at = ("o" if label == "inside" else "D"), mask[order]
                ax.plot(number[at], self.y[order][at], mark, color=color, ms=3, label=label)
        ax.set(xlabel="row, in the order of its prediction", ylabel=self.ylabel)
        finish(ax, title)


def _only_column(X: Any) -> tuple[Any, Any]:
    """Values (n,) of the only column of X if it is one of numbers, and a grid of the same type."""
    table = np.asarray(X)
    if table.ndim != 2 or table.shape[1] != 1 or table.dtype.kind not in "fiu":
        return None, None
    x = table[:, 0].astype(float)
    low, high = np.nanmin(x), np.nanmax(x)
    margin = _MARGIN * (high - low)
    grid = np.linspace(low - margin, high + margin, _GRID)
    if hasattr(X, "columns"):  # a frame of pandas or polars
        return x, type(X)({next(iter(X.columns)): grid})
    return x, grid[:, None]
