"""Other regressors with predictive distributions, to compare with on the user's own table."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import BayesianRidge

from tensorlace._types import Array
from tensorlace.predictive.distributions import Distribution, Normal, Samples

__all__ = ["Rival", "numbers", "rivals"]

Rival = Callable[[Array, Array, Array, int], Distribution]
"""From training rows (N, D), targets (N,), test rows (n, D) and a seed to n distributions."""

_LEVELS = (np.arange(19) + 0.5) / 19


def numbers(train: Any, test: Any) -> tuple[Array, Array]:
    """Both tables as standardised numbers without gaps, by what the training rows say.

    Categories become indicators (the 20 most frequent ones), dates days, and a missing number the
    median and an indicator.
    """
    import pandas as pd

    parts: list[tuple[Array, Array]] = []
    for name in train:
        a, b = train[name], test[name]
        if a.dtype.kind == "M":
            start = a.min()
            a, b = ((c - start) / pd.Timedelta(days=1) for c in (a, b))
        if a.dtype.kind in "biuf" and b.dtype.kind in "biuf":
            x, z = (c.to_numpy(dtype=np.float64, na_value=np.nan) for c in (a, b))
            middle = float(np.nanmedian(x)) if np.isfinite(x).any() else 0.0
            parts.append((np.nan_to_num(x, nan=middle), np.nan_to_num(z, nan=middle)))
            if np.isnan(x).any():
                parts.append((np.isnan(x).astype(float), np.isnan(z).astype(float)))
        else:
            for level in a.value_counts().index[:20]:
                parts.append(tuple((c == level).to_numpy(dtype=np.float64) for c in (a, b)))
    X, T = (np.stack(side, axis=1) for side in zip(*parts, strict=True))
    mean, std = X.mean(axis=0), X.std(axis=0)
    kept = std > 0.0
    if not kept.any():
        return np.zeros((len(X), 1)), np.zeros((len(T), 1))
    return (X[:, kept] - mean[kept]) / std[kept], (T[:, kept] - mean[kept]) / std[kept]


def rivals(gp_rows: int) -> dict[str, Rival]:
    """Those that can be run here, by name; the Gaussian process sees at most ``gp_rows`` rows."""

    def exact_gp(X: Array, y: Array, T: Array, seed: int) -> Distribution:
        rows = np.random.default_rng(seed).permutation(len(y))[:gp_rows]
        kernel = ConstantKernel(1.0) * RBF(np.full(X.shape[1], 3.0), (0.1, 1e4))
        gp = GaussianProcessRegressor(kernel + WhiteKernel(0.5), normalize_y=True)
        mean, std = gp.fit(X[rows], y[rows]).predict(T, return_std=True)
        return Normal(mean, std, 0.0)

    out: dict[str, Rival] = {"exact GP": exact_gp, "BayesianRidge": _bayesian_ridge}
    if find_spec("ngboost"):
        out["NGBoost"] = _ngboost
    if find_spec("lightgbm"):
        out["LightGBM quantiles"] = _lightgbm
    return out


def _bayesian_ridge(X: Array, y: Array, T: Array, _seed: int) -> Distribution:
    mean, std = BayesianRidge().fit(X, y).predict(T, return_std=True)
    return Normal(mean, std, 0.0)


def _ngboost(X: Array, y: Array, T: Array, seed: int) -> Distribution:
    from ngboost import NGBRegressor

    found = NGBRegressor(verbose=False, random_state=seed).fit(X, y).pred_dist(T)
    return Normal(found.params["loc"], 0.0, found.params["scale"])


def _lightgbm(X: Array, y: Array, T: Array, seed: int) -> Distribution:
    """One model per quantile; sorted, since they may cross."""
    from lightgbm import LGBMRegressor

    how: dict[str, Any] = {"objective": "quantile", "n_estimators": 100, "verbose": -1, "n_jobs": 1}
    models = (LGBMRegressor(alpha=q, random_state=seed, **how) for q in _LEVELS)
    return Samples(np.sort([m.fit(X, y).predict(T) for m in models], axis=0))
