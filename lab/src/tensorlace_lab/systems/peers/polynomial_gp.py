"""scikit-learn's Gaussian process with a polynomial kernel."""

from typing import Any, Self, final

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct, WhiteKernel
from sklearn.utils.validation import check_is_fitted

from tensorlace.predictive.distributions import Normal
from tensorlace_lab.systems.regressor import System

__all__ = ["PolynomialGP"]

_WIDE = (1e-6, 1e6)


@final
class PolynomialGP(System):
    """An exact Gaussian process ``s (c + x·x')^degree``, on the columns as they are.

    Parameters
    ----------
    degree : int
    noise_std : float or None
        In units of y, if it is known; else it is learnt.
    random_state : None
        Nothing is random; here because all systems have it.

    Examples
    --------
    >>> x = np.linspace(-2, 2, 20)[:, None]
    >>> model = PolynomialGP(noise_std=0.1).fit(x, x[:, 0] ** 3)
    >>> bool(abs(model.predict([[1.5]])[0] - 1.5**3) < 0.1)
    True
    """

    def __init__(
        self, degree: int = 3, noise_std: float | None = None, random_state: Any = None
    ) -> None:
        self.degree = degree
        self.noise_std = noise_std
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to X (N, D) and y (N,)."""
        X, y = self._checked(X, y)
        kernel = ConstantKernel(1.0, _WIDE) * DotProduct(1.0, _WIDE) ** self.degree
        if self.noise_std is None:
            model = GaussianProcessRegressor(kernel + WhiteKernel())
        else:
            model = GaussianProcessRegressor(kernel, alpha=self.noise_std**2)
        self.model_ = model.fit(X, y)
        return self

    def predict_dist(self, X: Any) -> Normal:
        """Predictive distributions of new targets for the n rows of X."""
        check_is_fitted(self, "model_")
        mean, std = self.model_.predict(self._rows(X), return_std=True)
        return Normal(mean, std, np.float64(self.noise_std or 0.0))
