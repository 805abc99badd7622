"""What compared systems share: the scikit-learn contract, and standardised data inside."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar, final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from tensorlace.metrics import nll
from tensorlace.predictive.distributions import Distribution, Mixture

__all__ = ["Array", "Baseline", "Scale", "System", "UnitBox", "equal_mixture"]
Array = NDArray[np.float64]
_FEW_ROWS = 2000
_Option = TypeVar("_Option")


@final
@dataclass(frozen=True)
class Scale:
    """Location and scale of columns; a constant column has scale 1 and becomes 0."""

    location: Array
    scale: Array

    @classmethod
    def of(cls, values: Array) -> Self:
        """Mean and standard deviation over rows."""
        location, spread = values.mean(axis=0), values.std(axis=0)
        constant = spread <= 1e-12 * np.abs(values).max(axis=0)
        return cls(location, np.where(constant, 1.0, spread))

    def standardise(self, values: Array) -> Array:
        """``(values - location) / scale``."""
        return (values - self.location) / self.scale


@final
@dataclass(frozen=True)
class UnitBox:
    """Maps the range that the columns had in training to [0, 1]; a constant column to 1/2."""

    low: Array
    width: Array

    @classmethod
    def of(cls, X: Array) -> Self:
        """Range of each column of X (N, D)."""
        low, width = X.min(axis=0), np.ptp(X, axis=0)
        constant = width <= 0
        return cls(np.where(constant, low - 0.5, low), np.where(constant, 1.0, width))

    def __call__(self, X: Array) -> Array:
        """Bring X (n, D) to the box; rows beyond the training range stay outside of it."""
        return (X - self.low) / self.width


class System(RegressorMixin, BaseEstimator, ABC):
    """A regressor that predicts distributions."""

    random_state: Any

    @abstractmethod
    def fit(self, X: Any, y: Any) -> Self:
        """Fit to X (N, D) and y (N,)."""

    @abstractmethod
    def predict_dist(self, X: Any) -> Distribution:
        """Predictive distributions of new targets for the n rows of X, in units of y."""

    def predict(self, X: Any, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Predictive mean (n,), and with ``return_std`` the standard deviation of a new y (n,)."""
        dist = self.predict_dist(X)
        return (dist.mean, dist.std) if return_std else dist.mean

    def _checked(self, X: Any, y: Any, *, as_it_is: bool = False) -> tuple[Any, Array]:
        """Training rows as floats, or the table as it is, and targets as floats."""
        if as_it_is:
            X, y = validate_data(self, X, y, skip_check_array=True)
            return X, np.asarray(y, dtype=float)
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        return X, np.asarray(y, dtype=float)

    def _rows(self, X: Any, *, as_it_is: bool = False) -> Any:
        """New rows as floats, or the table as it is; of the columns of the training rows."""
        if as_it_is:
            return validate_data(self, X, reset=False, skip_check_array=True)
        return validate_data(self, X, dtype=np.float64, reset=False)


class Baseline(System):
    """A system whose subclasses see standardised X and y only."""

    @final
    def fit(self, X: Any, y: Any) -> Self:
        """Fit to X (N, D) and y (N,)."""
        X, y = self._checked(X, y)
        self._inputs, self._target = Scale.of(X), Scale.of(y)
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        rng = np.random.default_rng(seed)
        # threads of BLAS spend more time waiting than working on the matrices of so few rows
        with threadpool_limits(1 if len(X) <= _FEW_ROWS else None, user_api="blas"):
            self._fit(self._inputs.standardise(X), self._target.standardise(y), rng)
        self.is_fitted_ = True
        return self

    @final
    def predict_dist(self, X: Any) -> Distribution:
        """Predictive distributions of new targets for the n rows of X, in units of y."""
        check_is_fitted(self, "is_fitted_")
        inside = self._predict(self._inputs.standardise(self._rows(X)))
        return inside.affine(float(self._target.scale), float(self._target.location))

    def _choose(
        self,
        options: Sequence[_Option],
        fit: Callable[[_Option, Array, Array, np.random.Generator], None],
        X: Array,
        y: Array,
        rng: np.random.Generator,
    ) -> None:
        """Fit with the option that is best on a tenth of the rows, held out; all start alike."""
        held, rest = np.split(rng.permutation(len(X)), [max(len(X) // 10, 1)])
        seed, scores = int(rng.integers(2**31 - 1)), []
        for option in options if len(options) > 1 else ():
            fit(option, X[rest], y[rest], np.random.default_rng(seed))
            scores.append(nll(y[held], self._predict(X[held])))
        best = options[int(np.argmin(scores))] if scores else options[0]
        fit(best, X, y, np.random.default_rng(seed))

    @abstractmethod
    def _fit(self, X: Array, y: Array, rng: np.random.Generator) -> None:
        """Fit to standardised X (N, D) and y (N,)."""

    @abstractmethod
    def _predict(self, X: Array) -> Distribution:
        """Predictive distribution of standardised y for standardised X (n, D)."""


def equal_mixture(functions: Array, noise_std: float) -> Mixture:
    """Predictive of draws of the function (M, n) and one noise level."""
    M = len(functions)
    zero = np.zeros_like(functions)
    return Mixture(functions, zero, zero + noise_std, np.full(M, 1 / M))
