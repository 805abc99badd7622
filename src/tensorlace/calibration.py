"""Intervals that keep their promise: split conformal calibration on held-out rows.

The residual ``z = Φ⁻¹(F(y))`` of a held-out row says where in its predictive distribution the
target fell. A new row, exchangeable with n held-out ones, has ``P(z ≤ z_(k)) ≥ k / (n + 1)`` for
the k-th smallest of them, whatever the model got wrong. So the interval of coverage ``1 - α`` goes
from residual ``z_(⌊(n+1)α/2⌋)`` to ``z_(⌈(n+1)(1-α/2)⌉)``, taken through each row's own
distribution: wide where that is wide, moved where predictions are biased, and nested.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from scipy.special import ndtri
from sklearn.utils.validation import _check_y, check_consistent_length

from tensorlace.bases.basis import Array
from tensorlace.checks import Check, check, check_residuals
from tensorlace.errors import InputError, MisspecificationWarning
from tensorlace.predictive import Distribution
from tensorlace.residuals import from_residuals, residuals
from tensorlace.tables import numeric_target, row_weights

__all__ = ["Calibrates", "Calibration", "check_calibrated"]

_MOST = 1365
"""Residuals kept, with two cumulative weights each: 4095 numbers."""

_TAIL = 256
"""Of these at each end, where every one counts."""


@final
@dataclass(frozen=True, eq=False)
class Calibration:
    """Sorted residuals of held-out rows, thinned out in the middle if there are many.

    A residual that was left out is replaced by the next one outwards, so that coverage is at least
    what was asked for; it is above by at most 0.12 %.

    Attributes
    ----------
    z : (k,) array
        Residuals, rising.
    below, upto : (k,) arrays
        Weight of all rows before each, and up to and with it.
    n_rows : float
        Rows, or their total weight.
    std_factor : float
        Root mean square residual: predicted standard deviations times it are right in the mean.
    """

    z: Array
    below: Array
    upto: Array
    n_rows: float
    std_factor: float

    @classmethod
    def of(cls, z: Array, weight: Array | None = None) -> Self:
        """Calibration from residuals (n,) of held-out rows; a weight is a number of repetitions.

        >>> Calibration.of(np.array([0.3, -2.0, 1.1])).residual([0.25, 0.75])
        array([-2. ,  1.1])
        """
        w = np.ones(len(z)) if weight is None else weight
        z, w = z[w > 0], w[w > 0]
        if not z.size or not np.all(np.isfinite(z)):
            raise InputError(
                f"{np.count_nonzero(~np.isfinite(z))} of {z.size} rows to calibrate with cannot be "
                f"compared with their prediction: give at least one row, and a model with noise"
            )
        order = np.argsort(z, kind="stable")
        upto = np.cumsum(w[order])
        n, kept = len(z), np.arange(len(z))
        if n > _MOST:
            middle = np.linspace(_TAIL, n - 1 - _TAIL, _MOST - 2 * _TAIL).astype(int)
            kept = np.concatenate([kept[:_TAIL], middle, kept[-_TAIL:]])
        below = np.concatenate([[0.0], upto[:-1]])
        factor = float(np.sqrt(w @ z**2 / w.sum()))
        return cls(z[order][kept], below[kept], upto[kept], float(upto[-1]), factor)

    @property
    def largest_coverage(self) -> float:
        """Largest coverage of a finite interval, ``(n - 1) / (n + 1)``."""
        return max(0.0, 1.0 - 2.0 * max(1.0, self.upto[0]) / (self.n_rows + 1.0))

    def residual(self, q: Sequence[float] | Array) -> Array:
        """Residuals (k,) whose quantiles are valid for the levels ``q`` (k,), rising with q.

        At or below the value for q > ½ a new target is with probability q or more, at or above that
        for q < ½ with probability 1 - q or more. Infinite where n rows cannot promise that.
        """
        p = np.asarray(q, dtype=float)
        rank, slack = (self.n_rows + 1.0) * p, 1e-9 * (self.n_rows + 1.0)
        up = np.searchsorted(self.upto, rank - slack)  # the first with at least that weight
        down = np.searchsorted(self.below, rank - 1.0 + slack, side="right") - 1
        padded = np.concatenate([[-np.inf], self.z, [np.inf]])
        upper, lower = padded[up + 1], padded[down + 1]
        half = abs(2.0 * p - 1.0) < 1e-12
        with np.errstate(invalid="ignore"):
            middle = np.where(np.isinf(lower) | np.isinf(upper), 0.0, (lower + upper) / 2.0)
        out = np.where(half, middle, np.where(p > 0.5, upper, lower))
        return np.where(p <= 0.0, -np.inf, np.where(p >= 1.0, np.inf, out))

    def standardised(self, z: Array) -> Array:
        """Residuals (n,) relative to the held-out ones: standard normal if rows are like those."""
        knots = np.concatenate([self.below[:1], self.upto])
        count = knots[np.searchsorted(self.z, z, side="right")]
        out: Array = ndtri((count + 0.5) / (self.n_rows + 1.0))
        return out


def check_calibrated(
    y: Array, dist: Distribution, weight: Array | None, calibration: Calibration | None
) -> Check:
    """`check`, of the calibrated quantiles if there is a calibration."""
    found = check(y, dist, sample_weight=weight)
    if calibration is None:
        return found
    return check_residuals(
        calibration.standardised(residuals(y, dist)),
        sample_weight=weight,
        reference=calibration.n_rows,
        log_scores=(found.log_score, found.expected_log_score),
    )


class Calibrates(ABC):
    """Intervals and quantiles of an estimator, and what held-out rows do to them.

    Attributes
    ----------
    calibration_ : Calibration or None
        Set by `calibrate`, removed by a new fit or by ``calibrate(None)``.
    """

    calibration_: Calibration | None = None

    @abstractmethod
    def predict_dist(self, X: Any) -> Distribution:
        """Predictive distributions of n rows."""

    def calibrate(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Make intervals and quantiles valid with rows that were not used for the fit.

        Afterwards an interval of `predict_interval` holds a new target with at least its coverage
        on average over rows like these, whatever the model got wrong (split conformal prediction).
        With n rows the largest coverage is ``(n - 1) / (n + 1)``: 39 rows for 95 %, 199 for 99 %;
        more is refused. `predict`, `predict_dist` and `sample_y` stay what the model says, and so
        does its standard deviation: ``calibration_.std_factor`` times it fits the rows given here.

        Parameters
        ----------
        X : (n, D) table, or None to remove a calibration
        y : (n,) array
        sample_weight : (n,) array, optional
            A weight is a number of repetitions of its row.
        """
        if X is None:
            self.calibration_ = None
            return self
        dist, target, weight = self._held_out(X, y, sample_weight)
        self.calibration_ = Calibration.of(residuals(target, dist), weight)
        return self

    def check_calibration(self, X: Any, y: Any, sample_weight: Any = None) -> Check:
        """Compare predictions with rows that were used neither for the fit nor to calibrate.

        Gives a `MisspecificationWarning` if the rows contradict the predictive distributions, or
        the calibrated quantiles after `calibrate`. See `tensorlace.checks`.
        """
        dist, target, weight = self._held_out(X, y, sample_weight)
        found = check_calibrated(target, dist, weight, self.calibration_)
        if found.contradicted:
            remedy = "calibrate(X, y) with held-out rows mends intervals"
            if self.calibration_ is not None:
                remedy = "these rows are unlike those it was calibrated with"
            warnings.warn(f"{found.message}: {remedy}", MisspecificationWarning, stacklevel=2)
        return found

    def predict_interval(self, X: Any, coverage: float = 0.9) -> tuple[Array, Array]:
        """Central predictive interval: lower (n,), upper (n,); see `calibrate`."""
        if self.calibration_ is None:
            return self.predict_dist(X).interval(coverage)
        if not 0 < coverage < 1:
            raise InputError(f"coverage must be within (0, 1), got {coverage}")
        ends = self.predict_quantiles(X, [(1.0 - coverage) / 2.0, (1.0 + coverage) / 2.0])
        return ends[:, 0], ends[:, 1]

    def predict_quantiles(self, X: Any, q: float | Sequence[float] = (0.05, 0.5, 0.95)) -> Array:
        """Predictive quantiles, (n, k) for k levels or (n,) for one. They never cross.

        After `calibrate` they are the ends of calibrated intervals.
        """
        dist, table = self.predict_dist(X), self.calibration_
        if table is None:
            return dist.quantile(q)
        p = np.asarray(q, dtype=float)
        if p.ndim > 1 or not np.all((p >= 0) & (p <= 1)):
            raise InputError(f"q must be a number or a vector within [0, 1], got {q!r}")
        z = table.residual(p.ravel())
        if np.any(np.isinf(z) & (p.ravel() > 0) & (p.ravel() < 1)):
            far = float(np.max(abs(2.0 * p[(p > 0) & (p < 1)] - 1.0)))
            raise InputError(
                f"{table.n_rows:.6g} rows cannot calibrate a coverage of {far:.6g}: ask for at "
                f"most {table.largest_coverage:.4g}, or calibrate with {_rows_for(far)} rows"
            )
        return from_residuals(z, dist).reshape(len(dist), *p.shape)

    def _held_out(self, X: Any, y: Any, weight: Any) -> tuple[Distribution, Array, Array | None]:
        if y is None:
            raise InputError("the target y of the held-out rows is None: give X and y")
        dist = self.predict_dist(X)
        target = _check_y(numeric_target(y), y_numeric=True, estimator=self).astype(np.float64)
        check_consistent_length(dist, target)
        return dist, target, None if weight is None else row_weights(weight, target)


def _rows_for(coverage: float) -> int:
    """Fewest rows with ``(n - 1) / (n + 1) >= coverage``."""
    return int(np.ceil(2.0 / (1.0 - coverage) - 1.0 - 1e-9))
