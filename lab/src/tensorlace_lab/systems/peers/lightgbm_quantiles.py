"""LightGBM: one boosted model per quantile."""

from collections.abc import Sequence
from typing import Any, Self, final

import numpy as np
from joblib import Parallel, delayed
from lightgbm import LGBMRegressor, early_stopping
from sklearn.model_selection import train_test_split
from sklearn.utils.validation import check_is_fitted

from tensorlace.predictive.distributions import Samples
from tensorlace_lab.systems.regressor import Array, System

__all__ = ["LightGBMQuantiles"]

MIDDLES = tuple((k + 0.5) / 19 for k in range(19))
"""Middles of 19 parts of equal probability."""

_INNER, _PATIENCE, _MOST_TREES = 0.2, 30, 1_000


@final
class LightGBMQuantiles(System):
    """Boosted trees (Ke et al. 2017), one model per quantile; sorted, since they may cross.

    Tables are handed on as they are: categories and missing values are LightGBM's own business. The
    predictive has the quantiles as equally likely values.

    Parameters
    ----------
    levels : sequence of float
        Of the quantiles.
    n_trees : int or "early stopping"
        Found on an inner fifth of the rows if not given; then all rows are used.
    learning_rate, n_leaves : float, int
    mean : bool
        Whether one more model is fitted, for `point`.
    n_jobs : int or None
        Threads of each model. With 1 the models are fitted side by side.
    random_state : int or None
    """

    def __init__(
        self,
        levels: Sequence[float] = MIDDLES,
        n_trees: int | str = 100,
        learning_rate: float = 0.1,
        n_leaves: int = 31,
        mean: bool = False,
        n_jobs: int | None = 1,
        random_state: Any = None,
    ) -> None:
        self.levels = levels
        self.n_trees = n_trees
        self.learning_rate = learning_rate
        self.n_leaves = n_leaves
        self.mean = mean
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to X (N, D) and y (N,)."""
        X, y = self._checked(X, y, as_it_is=True)
        objectives = [{"objective": "quantile", "alpha": float(q)} for q in self.levels]
        if self.mean:
            objectives.append({"objective": "l2"})
        jobs = (delayed(self._fitted)(X, y, **objective) for objective in objectives)
        self.models_ = Parallel(-1 if self.n_jobs == 1 else 1, prefer="threads")(jobs)
        return self

    def predict_dist(self, X: Any) -> Samples:
        """Predictive distributions of new targets for the n rows of X."""
        return Samples(self.quantiles(X).T)

    def quantiles(self, X: Any) -> Array:
        """Quantiles (n, L) at the levels, from small to large."""
        check_is_fitted(self, "models_")
        X = self._rows(X, as_it_is=True)
        found = [model.predict(X) for model in self.models_[: len(self.levels)]]
        return np.sort(np.column_stack(found), axis=1)

    def point(self, X: Any) -> Array:
        """Predictions (n,) by the model of the mean; only with ``mean``."""
        check_is_fitted(self, "models_")
        return np.asarray(self.models_[len(self.levels)].predict(self._rows(X, as_it_is=True)))

    def _fitted(self, X: Any, y: Array, **objective: Any) -> Any:
        how = {
            **objective,
            "learning_rate": self.learning_rate,
            "num_leaves": self.n_leaves,
            "random_state": self.random_state,
            "n_jobs": self.n_jobs,
            "verbose": -1,
        }
        n_trees = self.n_trees
        if n_trees == "early stopping":
            A, B, a, b = train_test_split(X, y, test_size=_INNER, random_state=self.random_state)
            stop = early_stopping(_PATIENCE, verbose=False)
            inner = LGBMRegressor(n_estimators=_MOST_TREES, **how)
            n_trees = inner.fit(A, a, eval_set=[(B, b)], callbacks=[stop]).best_iteration_
        return LGBMRegressor(n_estimators=n_trees, **how).fit(X, y)
