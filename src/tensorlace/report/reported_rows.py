"""Predictions of the rows of a report, beside the observed targets."""

from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Self, final

import numpy as np

from tensorlace import metrics
from tensorlace._types import Array, Mask
from tensorlace.columns.raw import numeric_target
from tensorlace.errors import InputError
from tensorlace.machines.fitted_model import FittedModel
from tensorlace.machines.novelty import Novelty
from tensorlace.predictive.checks import Check
from tensorlace.predictive.conformal import check_calibrated
from tensorlace.predictive.distributions import Distribution
from tensorlace.predictive.quantile_residuals import from_residuals, residuals
from tensorlace.sources.reference_rows import REFERENCE_ROWS, ReferenceRows

__all__ = ["ReportedRows", "number"]


def number(x: Any) -> str:
    """Number with four digits; a dash if it is not finite.

    >>> number(1234.567), number(0.00012345), number(float("nan"))
    ('1235', '0.0001234', '–')
    """
    if x is None or not np.isfinite(x):
        return "–"
    return f"{x:.4g}" if abs(x) < 1e4 or abs(x) >= 1e9 else f"{x:,.0f}"


@final
@dataclass(frozen=True, eq=False)
class ReportedRows:
    """Rows of a report and their predictions.

    Attributes
    ----------
    model : FittedModel
    X : (n, D) array
        As numbers.
    y : (n,) array or None
    numbers : (n,) int array
        Which rows of the table they are, from 1.
    n_given : int
        ReportedRows of the table, of which these are a part if there are too many.
    dist : Distribution
    ends : (n, 4) array
        Quantiles at 2.5, 25, 75 and 97.5 %.
    novelty : Novelty
        How far they are from training rows, and why.
    seconds : float
        That predicting took.
    forgotten : bool
        Whether the model came without training rows; averages are then over these rows.
    """

    model: FittedModel
    X: Array
    y: Array | None
    numbers: Any
    n_given: int
    dist: Distribution
    ends: Array
    novelty: Novelty
    seconds: float
    forgotten: bool = False

    @classmethod
    def of(cls, model: FittedModel, X: Any, y: Any, max_rows: int) -> Self:
        """Predict the rows of a table, or of an even part of them."""
        table = model.encode(X)
        target = None if y is None else np.asarray(numeric_target(y), dtype=np.float64)
        if target is not None and target.shape != (len(table),):
            raise InputError(f"y has shape {target.shape}, but X has {len(table)} rows")
        if max_rows < 1:
            raise InputError(f"max_rows={max_rows} leaves nothing to report on: give 1 or more")
        some = np.unique(np.linspace(0, len(table) - 1, min(len(table), max_rows)).astype(int))
        raw = X if len(some) == len(table) else _part(X, some)
        start = perf_counter()
        dist, novelty = model.dist_and_novelty(model.encode(raw))
        seconds = perf_counter() - start
        ends = _ends(model, dist)
        forgotten = model.rows is None
        if forgotten:
            few = table[some][:REFERENCE_ROWS]
            model = replace(model, rows=ReferenceRows(few, np.full(len(few), 1.0 / len(few))))
        return cls(
            *(model, table[some], None if target is None else target[some], some + 1, len(table)),
            *(dist, ends, novelty, seconds, forgotten),
        )

    def __len__(self) -> int:
        return len(self.X)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.model.names

    @property
    def check(self) -> Check | None:
        """Calibration of the distributions by the targets, if there are two or more."""
        if self.y is None or len(self.y) < 2:
            return None
        return check_calibrated(self.y, self.dist, None, self.model.calibration)

    @property
    def z(self) -> Array:
        """Residuals of the targets on the scale of a standard normal."""
        assert self.y is not None
        return residuals(self.y, self.dist)

    def inside(self, level: float) -> Mask:
        """Whether targets lie in their interval of coverage 0.5 or 0.95."""
        assert self.y is not None
        low, high = self.ends.T[[1, 2] if level == 0.5 else [0, 3]]
        return np.asarray((low <= self.y) & (self.y <= high))

    def scores(self) -> list[tuple[str, str, str]]:
        """Name, value and meaning of each score."""
        if self.y is None:
            return []
        y, dist = self.y, self.dist
        rmse, spread = metrics.rmse(y, dist), float(np.std(y))
        r2 = f"{1.0 - (rmse / spread) ** 2:.4f}" if spread > 0.0 else "–"
        width = float(np.mean(self.ends[:, 3] - self.ends[:, 0]))
        inside = [f"{self.inside(level).mean():.1%}" for level in (0.95, 0.5)]
        return [
            ("RMSE", number(rmse), "typical error, in units of the target"),
            ("R²", r2, "share of the variance explained; 1 is best"),
            ("NLL", number(metrics.nll(y, dist)), "negative log density per row; lower is better"),
            (
                "CRPS",
                number(metrics.crps(y, dist)),
                "error of the whole distribution, in units of y",
            ),
            ("inside 95 %", inside[0], "of the rows; 95 % is best"),
            ("inside 50 %", inside[1], "of the rows; 50 % is best"),
            ("width of 95 %", number(width), "mean width of the intervals; smaller is sharper"),
        ]

    def trained_on(self) -> tuple[str, str]:
        """Whether the rows are among the reference rows: a word and a sentence."""
        if self.forgotten:
            without = "The model was saved without its training rows: averages are over these rows."
            return "rows of unknown origin", without
        known_rows, total = self.model.reference_rows.X, self.model.record.n_rows
        known = {row.tobytes() for row in known_rows + 0.0}
        found, n = sum(row.tobytes() in known for row in self.X + 0.0), len(self)
        among = "the training rows"
        if total > len(known_rows):
            among = f"the {len(known_rows):,} training rows that the model keeps of {total:,}"
        if found == 0:
            return "new rows", f"None of these rows is among {among}."
        flatter = "scores on rows that the model was fitted to flatter it."
        sentence = f"{found:,} of {n:,} rows are like one of {among}: {flatter}"
        all_known = found / n * max(1.0, total / max(len(known_rows), 1)) > 0.95
        return "training rows" if all_known else "some training rows", sentence


def _part(X: Any, rows: Any) -> Any:
    """Some rows of a frame, an array or a list."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X[rows] if hasattr(X, "shape") else [X[k] for k in rows]


def _ends(model: FittedModel, dist: Distribution) -> Array:
    """Quantiles (n, 4), calibrated if the model is and has rows enough."""
    levels = np.array([0.025, 0.25, 0.75, 0.975])
    if model.calibration is None:
        return dist.quantile(levels)
    z = model.calibration.residual(levels)
    return from_residuals(z, dist)
