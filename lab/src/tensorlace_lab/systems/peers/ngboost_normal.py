"""NGBoost: natural gradient boosting of a normal distribution."""

from typing import Any, Self, final

from ngboost import NGBRegressor
from sklearn.utils.validation import check_is_fitted

from tensorlace.predictive.distributions import Normal
from tensorlace_lab.systems.regressor import System

__all__ = ["NGBoost"]


@final
class NGBoost(System):
    """Natural gradient boosting (Duan et al. 2020), as it comes.

    Parameters
    ----------
    random_state : int, RandomState or None
    """

    def __init__(self, random_state: Any = None) -> None:
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to X (N, D) and y (N,)."""
        X, y = self._checked(X, y)
        self.model_ = NGBRegressor(verbose=False, random_state=self.random_state).fit(X, y)
        return self

    def predict_dist(self, X: Any) -> Normal:
        """Predictive distributions of new targets for the n rows of X."""
        check_is_fitted(self, "model_")
        found = self.model_.pred_dist(self._rows(X))
        return Normal(found.params["loc"], 0.0, found.params["scale"])
