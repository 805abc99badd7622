"""scikit-learn's Gaussian process regression."""

from typing import Any, final

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from tensorlace.predictive.distributions import Normal
from tensorlace_lab.systems.regressor import Array, Baseline

__all__ = ["SklearnGP"]


@final
class SklearnGP(Baseline):
    """An exact Gaussian process with a length scale per column, one search from where it starts.

    Parameters
    ----------
    length_scale, noise : float
        Where the search starts, for standardised data; signal and noise are variances.
    length_scale_bounds : tuple of float
    hyper_rows : int
        Most rows that the search sees, drawn at random.
    exact_rows : int or None
        Most rows of the posterior; None for all.
    random_state : int, RandomState or None
        Which rows.

    Attributes
    ----------
    model_ : GaussianProcessRegressor
        For standardised data.

    Examples
    --------
    >>> X = np.linspace(-3, 3, 40)[:, None]
    >>> noise = 0.1 * np.random.default_rng(0).standard_normal(40)
    >>> model = SklearnGP(noise=0.1).fit(X, np.sin(X[:, 0]) + noise)
    >>> bool(abs(model.predict([[1.0]])[0] - np.sin(1.0)) < 0.2)
    True
    """

    def __init__(
        self,
        length_scale: float = 1.0,
        noise: float = 1.0,
        length_scale_bounds: tuple[float, float] = (1e-5, 1e5),
        hyper_rows: int = 2000,
        exact_rows: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.length_scale = length_scale
        self.noise = noise
        self.length_scale_bounds = length_scale_bounds
        self.hyper_rows = hyper_rows
        self.exact_rows = exact_rows
        self.random_state = random_state

    def _fit(self, X: Array, y: Array, rng: np.random.Generator) -> None:
        scales = np.full(X.shape[1], self.length_scale)
        kernel = ConstantKernel(1.0) * RBF(scales, self.length_scale_bounds)
        order = rng.permutation(len(X))
        some = order[: self.hyper_rows]
        model = GaussianProcessRegressor(kernel + WhiteKernel(self.noise)).fit(X[some], y[some])
        kept = order[: self.exact_rows]
        if len(kept) > len(some):
            model = GaussianProcessRegressor(model.kernel_, optimizer=None).fit(X[kept], y[kept])
        self.model_ = model

    def _predict(self, X: Array) -> Normal:
        mean, std = self.model_.predict(X, return_std=True)
        return Normal(mean, std, 0.0)
