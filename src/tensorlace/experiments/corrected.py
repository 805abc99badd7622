"""The paper's method done right: its model and grid, one inference for selection and final fit.

Both precisions follow from its Gamma-VI, appendix A.2; the authors' code holds that of the weights
at 1e-5, which leaves products of ten columns next to free. To infer it takes a posterior of all
weights, so the Hessian is GGN where N (DIR)² allows; with many rows to a weight the prior matters
little, and the last core will do.

The MAP weights are the minimum of the objective, but ALS ends where its start leads: on yacht the
score of a fold differs by up to ten nats between starts. So every fit here is the best of three
starts by Laplace evidence.
"""

import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.model_selection import RepeatedKFold

from tensorlace.bases.basis import Array
from tensorlace.errors import CompilerError
from tensorlace.estimators import TNKMRegressor
from tensorlace.experiments.published import THRESHOLDS, grid
from tensorlace.experiments.refits import Refit
from tensorlace.native.library import library
from tensorlace.predictive import Distribution

__all__ = ["choose", "fit", "select"]

N_SPLITS, N_REPEATS, SEED, STARTS = 3, 2, 1, 3

GGN_ROWS = 2_000
"""Training rows up to which all weights have a distribution, if no Hessian is asked for."""


@lru_cache(maxsize=1)
def engine() -> str:
    """Compiled where there is a compiler: a third of the time at the high ranks of the grid."""
    try:
        library()
    except CompilerError:
        return "numpy"
    return "compiled"


def fit(
    X: Array,
    y: Array,
    size: tuple[int, int],
    threshold: float | None,
    curvature: str,
    **others: Any,
) -> TNKMRegressor:
    """Fit ``TNKMRegressor.paper`` of a size (R, I) from three starts; the one of most evidence."""
    found = []
    for start in range(SEED, SEED + STARTS):
        how = {"curvature": curvature, "prior_precision": "vi", "engine": engine(), **others}
        model = TNKMRegressor.paper(*size, threshold, random_state=start, **how)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # fifty sweeps, converged or not
            found.append(model.fit(X, y))
    return max(found, key=lambda model: model.log_evidence_)


def choose(
    X: Array,
    y: Array,
    curvature: str,
    sizes: Sequence[tuple[int, int]],
    thresholds: Sequence[float] = THRESHOLDS,
    **others: Any,
) -> tuple[int, int, float]:
    """(R, I, t) of the best mean log-likelihood of left-out rows, three folds repeated twice.

    All thresholds share one MAP fit and one eigen-decomposition; the noise precision of each is
    its own (`Refit.noise_precision`). ``others`` are arguments of `TNKMRegressor.paper`.
    """
    folds = RepeatedKFold(n_splits=N_SPLITS, n_repeats=N_REPEATS, random_state=SEED)
    scores = {(R, I, t): 0.0 for R, I in sizes for t in thresholds}
    for train, test in folds.split(X):
        for R, I in sizes:
            model = fit(X[train], y[train], (R, I), None, curvature, **others)
            refit = Refit.of(model, X[train], y[train])
            for t in thresholds:
                beta = refit.noise_precision(t)
                density = refit.machine(t, beta).linearized(X[test]).logpdf(y[test])
                scores[R, I, t] += float(np.mean(density))
    return max(scores, key=lambda option: np.nan_to_num(scores[option], nan=-np.inf))


def select(
    X: Array, y: Array, X_test: Array, curvature: str | None = None, **others: Any
) -> tuple[Distribution, dict[str, Any]]:
    """Choose, fit and predict: the distribution of the test rows, and what was chosen."""
    curvature = curvature or ("ggn" if len(y) <= GGN_ROWS else "last")
    R, I, t = choose(X, y, curvature, grid(*X.shape), **others)
    model = fit(X, y, (R, I), t, curvature, **others)
    about = {
        **{"rank": R, "n_basis": I, "threshold": t, "noise_precision": model.noise_precision_},
        **{"prior_precision": float(model.machines_[0].fit.gamma[0].flat[0])},
        **{"curvature": curvature, "engine": model.engine},
    }
    return model.predict_dist(X_test), about
