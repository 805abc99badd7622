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
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import _check_y, check_consistent_length

from tensorlace._types import Array
from tensorlace.errors import InputError, MisspecificationWarning
from tensorlace.estimators.tables import numeric_target, row_weights
from tensorlace.predictive.checks import Check, check, check_residuals
from tensorlace.predictive.conformal import Calibration
from tensorlace.predictive.distributions import Distribution
from tensorlace.predictive.quantile_residuals import from_residuals, residuals

__all__ = ["Calibrates", "check_calibrated"]


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
        the calibrated quantiles after `calibrate`. See `tensorlace.predictive.checks`.
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
