"""Who is asked: the default at several budgets, and what users would take instead.

Each is fitted to a frame as it comes and predicts distributions. The others are given what they
need: one-hot codes, filled gaps, dates as seconds.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from tensorlace import TNKMRegressor
from tensorlace._types import Array
from tensorlace.predictive.distributions import Distribution, Normal
from tensorlace_lab.systems import SYSTEMS
from tensorlace_lab.trust.tables import MOST_TRAIN

__all__ = [
    "BOOSTED",
    "CATBOOST",
    "FIXED",
    "GP",
    "GP_MOST_ROWS",
    "GP_SEARCH_ROWS",
    "NAMES",
    "OURS",
    "RIDGE",
    "SETTINGS",
    "STUDENT",
    "Asked",
    "Predict",
    "ask",
]

Predict = Callable[[Any], Distribution]
"""From a frame of n rows to their predictive distributions."""

Asked = tuple[Predict, Any]
"""Predictions of a fitted model, and the model itself if it is ours, else None."""

FIXED, STUDENT = "tnkm rank 4", "tnkm 2 s student"
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "tnkm 2 s": {"time_budget": 2},
    "tnkm 10 s": {"time_budget": 10},
    "tnkm": {},
    FIXED: {"rank": 4},
    STUDENT: {"time_budget": 2, "noise": "student"},
}
"""Ours, by name: arguments of the estimator."""

OURS = ("tnkm 2 s", "tnkm 10 s", "tnkm")
"""The default, at three budgets of seconds."""

RIDGE, BOOSTED, CATBOOST, GP = "BayesianRidge", "boosted trees", "CatBoost", "scikit-learn GP"
GP_MOST_ROWS, GP_SEARCH_ROWS = 2_000, 500
MOST_LEVELS = 254  # scikit-learn's boosted trees have bins for 255 values
INNER_SHARE, MOST_TREES, PATIENCE, FOLDS = 0.2, 2_000, 50, 5

NAMES = {
    "tnkm 2 s": "tensorlace, 2 s",
    "tnkm 10 s": "tensorlace, 10 s",
    "tnkm": "tensorlace, default",
    FIXED: "tensorlace, rank 4",
    STUDENT: 'tensorlace, 2 s, noise="student"',
    RIDGE: "BayesianRidge, one-hot",
    BOOSTED: "boosted trees (scikit-learn)",
    CATBOOST: "CatBoost",
    GP: "exact GP",
}
"""On the page, in its order."""


def ask(system: str, X: Any, y: Array, seed: int, weights: Array | None = None) -> Asked:
    """Fit a system by name; only ours take weights."""
    if system in SETTINGS:
        model = TNKMRegressor(random_state=seed, **SETTINGS[system])
        model.fit(X, y, sample_weight=weights)
        return model.predict_dist, model
    return PEERS[system](X, y, seed), None


def _dates_as_seconds(frame: Any) -> Any:
    """Numbers for dates; a gap stays one."""
    import pandas as pd

    dates = [c for c in frame.columns if pd.api.types.is_datetime64_any_dtype(frame[c])]
    start = pd.Timestamp(0)
    return frame.assign(**{c: (frame[c] - start).dt.total_seconds() for c in dates})


def _encoder() -> Any:
    """One-hot codes, gaps filled by the median with an indicator beside, unit scale."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

    numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    codes = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = make_column_transformer(
        (codes, make_column_selector(dtype_include="category")),
        (numbers, make_column_selector(dtype_include=["number", "bool"])),
    )
    return make_pipeline(FunctionTransformer(_dates_as_seconds), columns)


def _encoded(name: str, X: Any, y: Array, seed: int, **settings: Any) -> Predict:
    """A compared system on encoded columns."""
    encoder = _encoder()
    made: Any = SYSTEMS[name]
    model = made(random_state=seed, **settings).fit(encoder.fit_transform(X), y)
    return lambda rows: model.predict_dist(encoder.transform(rows))


def ridge(X: Any, y: Array, seed: int) -> Predict:
    """A line by scikit-learn's BayesianRidge."""
    return _encoded("BayesianRidge", X, y, seed)


def gaussian_process(X: Any, y: Array, seed: int) -> Predict:
    """An exact Gaussian process; its hyperparameters are found on at most `GP_SEARCH_ROWS` rows."""
    return _encoded("scikit-learn GP", X, y, seed, hyper_rows=GP_SEARCH_ROWS)


def boosted(X: Any, y: Array, seed: int) -> Predict:
    """scikit-learn's boosted trees twice: for the mean, and for the variance.

    They give no distribution. Here a second model is fitted to the squares of the errors that the
    first makes in cross-validation, by its gamma loss, which is the likelihood of a normal
    distribution's variance; the prediction is normal.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.model_selection import cross_val_predict

    how = {"categorical_features": "from_dtype", "random_state": seed}
    kept = _frequent_levels(X)
    X = _for_trees(X, kept)
    mean = HistGradientBoostingRegressor(early_stopping=True, **how)
    variance = HistGradientBoostingRegressor(loss="gamma", early_stopping=True, **how)
    # threads spend more time waiting than working on so few rows where others work, too
    with threadpool_limits(1 if len(y) <= MOST_TRAIN else None, user_api="openmp"):
        squares = (y - cross_val_predict(mean, X, y, cv=min(FOLDS, len(y)))) ** 2
        squares = np.maximum(squares, 1e-6 * np.mean(squares))  # the gamma loss has no zeros
        mean.fit(X, y)
        variance.fit(X, squares)

    def predict(rows: Any) -> Distribution:
        rows = _for_trees(rows, kept)
        return Normal(mean.predict(rows), 0.0, np.sqrt(variance.predict(rows)))

    return predict


def _frequent_levels(X: Any) -> dict[str, Any]:
    """The most frequent levels of each column of categories."""
    names = X.select_dtypes("category").columns
    return {name: list(X[name].value_counts().index[:MOST_LEVELS]) for name in names}


def _for_trees(X: Any, kept: Mapping[str, Any]) -> Any:
    levels = {name: X[name].cat.set_categories(found) for name, found in kept.items()}
    return _dates_as_seconds(X).assign(**levels)


def catboost(X: Any, y: Array, seed: int) -> Predict:
    """CatBoost with its loss RMSEWithUncertainty, which learns mean and variance.

    It stops when a fifth of the rows, held out, has not become better for `PATIENCE` trees.
    """
    from catboost import CatBoostRegressor
    from sklearn.model_selection import train_test_split

    names = list(X.select_dtypes("category").columns)
    A, B, a, b = train_test_split(_words(X, names), y, test_size=INNER_SHARE, random_state=seed)
    model = CatBoostRegressor(
        loss_function="RMSEWithUncertainty",
        iterations=MOST_TREES,
        cat_features=names,
        random_seed=seed,
        allow_writing_files=False,
        verbose=False,
    )
    model.fit(A, a, eval_set=(B, b), early_stopping_rounds=PATIENCE)

    def predict(rows: Any) -> Distribution:
        mean, variance = model.predict(_words(rows, names)).T
        return Normal(mean, 0.0, np.sqrt(variance))

    return predict


def _words(X: Any, names: list[str]) -> Any:
    """Categories as text, with a word for a gap."""
    words = {name: X[name].astype(object).fillna("missing").astype(str) for name in names}
    return _dates_as_seconds(X).assign(**words)


PEERS: Mapping[str, Callable[[Any, Array, int], Predict]] = {
    RIDGE: ridge,
    BOOSTED: boosted,
    CATBOOST: catboost,
    GP: gaussian_process,
}
