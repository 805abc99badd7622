"""scikit-learn's Bayesian linear regression."""

from typing import Any, Self, final

from sklearn import linear_model
from sklearn.utils.validation import check_is_fitted

from tensorlace.predictive.distributions import Normal
from tensorlace_lab.systems.regressor import System

__all__ = ["BayesianRidge"]


@final
class BayesianRidge(System):
    """A line with both precisions by evidence, on the columns as they are.

    Parameters
    ----------
    random_state : None
        Nothing is random; here because all systems have it.

    Examples
    --------
    >>> model = BayesianRidge().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    >>> float(model.predict([[3.0]])[0].round(2))
    7.0
    """

    def __init__(self, random_state: Any = None) -> None:
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to X (N, D) and y (N,)."""
        X, y = self._checked(X, y)
        self.model_ = linear_model.BayesianRidge().fit(X, y)
        return self

    def predict_dist(self, X: Any) -> Normal:
        """Predictive distributions of new targets for the n rows of X."""
        check_is_fitted(self, "model_")
        mean, std = self.model_.predict(self._rows(X), return_std=True)
        return Normal(mean, std, 0.0)
