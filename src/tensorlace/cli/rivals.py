"""Other regressors with predictive distributions, to compare with on the user's own table."""

from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from tensorlace._types import Array
from tensorlace.baselines import laboratory
from tensorlace.errors import InputError
from tensorlace.predictive.distributions import Distribution

__all__ = ["EXACT_GP", "Rival", "from_laboratory", "numbers", "rivals"]

Rival = Callable[[Array, Array, Array, int], Distribution]
"""From training rows (N, D), targets (N,), test rows (n, D) and a seed to n distributions."""

EXACT_GP = {"length_scale": 3.0, "length_scale_bounds": (0.1, 1e4), "noise": 0.5}
"""Where the search of the Gaussian process starts, for standardised data."""


def from_laboratory(module: str) -> ModuleType:
    """A module of the laboratory, for a command; without it the command cannot be done."""
    try:
        return laboratory(module)
    except ModuleNotFoundError as error:
        raise InputError(str(error)) from error


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
    few = {"hyper_rows": gp_rows, "exact_rows": gp_rows}
    settings: dict[str, tuple[str, dict[str, Any]]] = {
        "exact GP": ("scikit-learn GP", {**EXACT_GP, **few}),
        "BayesianRidge": ("BayesianRidge", {}),
        "NGBoost": ("NGBoost", {}),
        "LightGBM quantiles": ("LightGBM quantiles", {}),
    }
    systems, found = from_laboratory("systems").SYSTEMS, dict[str, Rival]()
    for name, (system, how) in settings.items():
        try:
            cls = systems[system]
        except ModuleNotFoundError:  # the library that it is of is not installed
            continue
        found[name] = partial(_predicted, cls, how)
    return found


def _predicted(
    cls: Any, settings: dict[str, Any], X: Array, y: Array, T: Array, seed: int
) -> Distribution:
    found: Distribution = cls(**settings, random_state=seed).fit(X, y).predict_dist(T)
    return found
