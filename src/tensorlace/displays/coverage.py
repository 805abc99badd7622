"""Observed against nominal coverage, and the histogram of the PIT."""

from typing import Any, Self, final

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom

from tensorlace.displays.canvas import COLORS, GREY, axes, choice, finish
from tensorlace.predictive.checks import Check, check
from tensorlace.predictive.conformal import check_calibrated
from tensorlace.predictive.distributions import Distribution

__all__ = ["CalibrationDisplay"]

_BAND = 0.95
_LEVELS = np.linspace(0.0, 1.0, 201)


@final
class CalibrationDisplay:
    """How often targets fall where they should.

    Parameters
    ----------
    check : Check
        What `tensorlace.predictive.checks.check` found out.
    sample_weight : (n,) array, optional
    name : str, optional
        What to call the model in the legend.

    Attributes
    ----------
    nominal, observed : (k,) arrays
        Coverage of central intervals, and the share of targets they hold.
    ax_, figure_ : matplotlib axes and figure
    """

    def __init__(
        self, check: Check, *, sample_weight: ArrayLike | None = None, name: str | None = None
    ) -> None:
        self.check, self.name = check, name
        n = len(check.pit)
        w = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        self.weight = w
        order = np.argsort(level := abs(2.0 * check.pit - 1.0))
        share = np.concatenate([[0.0], np.cumsum(w[order]) / w.sum()])
        self.nominal = _LEVELS
        self.observed = share[np.searchsorted(level[order], _LEVELS, side="right")]
        self.ax_: Any = None
        self.figure_: Any = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        kind: str = "coverage",
        name: str | None = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw how an estimator does on rows that it has not seen.

        ``kind`` is "coverage" or "pit"; ``options`` are for the line, or for the bars. If the
        estimator was calibrated, its calibrated quantiles are shown.
        """
        dist, target = estimator.predict_dist(X), np.asarray(y, dtype=float)
        calibration = getattr(estimator, "calibration_", None)
        found = check_calibrated(target, dist, sample_weight, calibration)
        display = cls(found, sample_weight=sample_weight, name=name)
        return display.plot(ax, kind=kind, **options)

    @classmethod
    def from_distribution(
        cls,
        dist: Distribution,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        kind: str = "coverage",
        name: str | None = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw how predictive distributions of any origin do."""
        found = check(y, dist, sample_weight=sample_weight)
        display = cls(found, sample_weight=sample_weight, name=name)
        return display.plot(ax, kind=kind, **options)

    def plot(self, ax: Any = None, *, kind: str = "coverage", **options: Any) -> Self:
        """Draw on the given or on new axes."""
        choice("kind", kind, ("coverage", "pit"))
        self.ax_ = axes(ax)
        self.figure_ = self.ax_.figure
        if kind == "coverage":
            self._coverage(self.ax_, options)
        else:
            self._histogram(self.ax_, options)
        return self

    def _coverage(self, ax: Any, options: dict[str, Any]) -> None:
        n, label = self._sample()
        low, high = (100.0 * edge for edge in _band(_LEVELS, n))
        if not any(line.get_label().startswith("right") for line in ax.lines):
            ax.fill_between(
                *(100.0 * _LEVELS, low, high),
                color="0.88",
                linewidth=0,
                label=label,
            )
            ax.plot([0, 100], [0, 100], color=GREY, linewidth=1, linestyle="--", label="right")
        number = sum(line.get_gid() == "observed" for line in ax.lines)
        look = {
            "color": COLORS[number % len(COLORS)],
            "linewidth": 2,
            "label": self.name or "observed",
        }
        ax.plot(100.0 * self.nominal, 100.0 * self.observed, **{**look, **options}, gid="observed")
        ax.set(
            xlabel="nominal coverage of central intervals (%)",
            ylabel="targets inside (%)",
            xlim=(0, 100),
            ylim=(0, 100),
            aspect="equal",
        )
        finish(ax, loc="upper left")

    def _sample(self) -> tuple[int, str]:
        """Rows that the band stands for, and its label."""
        label = f"{100 * _BAND:.0f} % of right models, {self.check.n_rows:.6g} rows"
        return max(round(self.check.n_effective), 1), label

    def _histogram(self, ax: Any, options: dict[str, Any]) -> None:
        n, label = self._sample()
        bins = int(np.clip(n // 25, 5, 20))
        total = self.weight.sum()
        look = {"color": COLORS[0], "edgecolor": "white", "label": self.name or "observed"}
        weights = bins * self.weight / total
        ax.hist(self.check.pit, bins, range=(0.0, 1.0), weights=weights, **{**look, **options})
        low, high = (bins * edge for edge in _band(np.array([1.0 / bins]), n))
        ax.axhspan(low[0], high[0], color="0.3", alpha=0.2, linewidth=0, label=label)
        ax.axhline(1.0, color=GREY, linewidth=1, linestyle="--", label="right")
        ax.set(xlabel="PIT, F(y)", ylabel="density of targets", xlim=(0, 1))
        ax.set_ylim(top=1.25 * ax.get_ylim()[1])  # room for the legend
        finish(ax, loc="upper center", ncols=2)


def _band(share: Any, n: int) -> tuple[Any, Any]:
    """Shares between which a binomial share of n rows lies with probability 95 %, at each level."""
    tail = (1.0 - _BAND) / 2.0
    return binom.ppf(tail, n, share) / n, binom.ppf(1.0 - tail, n, share) / n
