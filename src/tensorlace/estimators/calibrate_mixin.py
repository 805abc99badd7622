"""Intervals and quantiles of an estimator, and their calibration with held-out rows."""

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import _check_y, check_consistent_length

from tensorlace._types import Array
from tensorlace.columns.raw import numeric_target
from tensorlace.errors import InputError, MisspecificationWarning
from tensorlace.estimators.fitted_attributes import HasFittedAttributes
from tensorlace.estimators.tables import row_weights, weight_factor
from tensorlace.predictive.checks import Check
from tensorlace.predictive.conformal import Calibration, check_calibrated
from tensorlace.predictive.distributions import Distribution
from tensorlace.predictive.quantile_residuals import residuals
from tensorlace.sources.weighting import WeightSums

__all__ = ["Calibrates"]


class Calibrates(HasFittedAttributes):
    """Intervals and quantiles, as the fit gives them or calibrated with held-out rows."""

    weights: str

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
            A weight is a number of repetitions of its row; see ``weights``.
        """
        calibration = None
        if X is not None:
            dist, target, weight = self._held_out(X, y, sample_weight)
            calibration = Calibration.of(residuals(target, dist), weight)
        self.model_ = replace(self._learnt(), calibration=calibration)
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
        return self._learnt().interval(self.predict_dist(X), coverage)

    def predict_quantiles(self, X: Any, q: float | Sequence[float] = (0.05, 0.5, 0.95)) -> Array:
        """Predictive quantiles, (n, k) for k levels or (n,) for one. They never cross.

        After `calibrate` they are the ends of calibrated intervals.
        """
        return self._learnt().quantiles(self.predict_dist(X), q)

    def _held_out(self, X: Any, y: Any, weight: Any) -> tuple[Distribution, Array, Array | None]:
        if y is None:
            raise InputError("the target y of the held-out rows is None: give X and y")
        dist = self.predict_dist(X)
        target = _check_y(numeric_target(y), y_numeric=True, estimator=self).astype(np.float64)
        check_consistent_length(dist, target)
        if weight is None:
            return dist, target, None
        values = row_weights(weight, target)
        factor = weight_factor(WeightSums.of(values), self.weights, stacklevel=3)
        return dist, target, values if factor == 1.0 else factor * values
