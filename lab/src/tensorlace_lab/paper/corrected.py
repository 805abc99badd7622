"""The paper's method done right: its model and grid, one inference for selection and final fit.

Both precisions follow from its Gamma-VI, appendix A.2; the authors' code holds that of the weights
at 1e-5, which leaves products of ten columns next to free. To infer it takes a posterior of all
weights, not of one core: that of Block, which costs no more than ALS itself. Which Hessian the
predictions are made with is chosen as rank, basis size and threshold are, by cross-validation.

The MAP weights are the minimum of the objective, but ALS ends where its start leads: on yacht the
score of a fold differs by up to ten nats between starts. So every fit here is the best of three
starts by Laplace evidence.
"""

import warnings
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.model_selection import RepeatedKFold

from tensorlace._types import Array
from tensorlace.errors import CompilerError
from tensorlace.estimators.regressor import TNKMRegressor
from tensorlace.fitting.registry import CURVATURES
from tensorlace.laplace.curvature import Last
from tensorlace.networks.native.library import library
from tensorlace.predictive.distributions import Distribution
from tensorlace_lab.paper.published import THRESHOLDS, grid
from tensorlace_lab.paper.refits import Refit

__all__ = ["HESSIANS", "choose", "fit", "select"]

N_SPLITS, N_REPEATS, SEED, STARTS = 3, 2, 1, 3
HESSIANS = ("ggn", "block", "last")
Choice = tuple[int, int, float, str]
"""R, I, t̂ and Hessian."""


@lru_cache(maxsize=1)
def engine() -> str:
    """Compiled where there is a compiler, for the high ranks of the grid."""
    try:
        library()
    except CompilerError:
        return "numpy"
    return "compiled"


def fit(X: Array, y: Array, size: tuple[int, int], **others: Any) -> TNKMRegressor:
    """Fit ``TNKMRegressor.paper`` of a size (R, I) from three starts; the one of most evidence."""
    found = []
    for start in range(SEED, SEED + STARTS):
        how = {"curvature": "block", "prior_precision": "vi", "engine": engine(), **others}
        model = TNKMRegressor.paper(*size, random_state=start, **how)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # fifty sweeps, converged or not
            found.append(model.fit(X, y))
    return max(found, key=lambda model: np.nan_to_num(model.log_evidence_, nan=-np.inf))


def refits(
    model: TNKMRegressor, X: Array, y: Array, hessians: Sequence[str]
) -> Iterator[tuple[str, Refit]]:
    """Other Hessians at the weights and prior precision of a fit; the last core is the paper's."""
    for name in hessians:
        curvature = Last(X.shape[1] - 1) if name == "last" else CURVATURES[name]
        yield name, Refit.of(model, X, y, curvature)


def choose(
    X: Array,
    y: Array,
    hessians: Sequence[str],
    sizes: Sequence[tuple[int, int]],
    thresholds: Sequence[float] = THRESHOLDS,
    **others: Any,
) -> Choice:
    """The best mean log-likelihood of left-out rows, three folds repeated twice.

    All Hessians and thresholds share one MAP fit, and thresholds one eigen-decomposition; the noise
    precision of each is its own (`Refit.noise_precision`). ``others`` are arguments of
    `TNKMRegressor.paper`.
    """
    folds = RepeatedKFold(n_splits=N_SPLITS, n_repeats=N_REPEATS, random_state=SEED)
    scores = {(R, I, t, h): 0.0 for R, I in sizes for t in thresholds for h in hessians}
    for train, test in folds.split(X):
        for R, I in sizes:
            model = fit(X[train], y[train], (R, I), **others)
            for h, refit in refits(model, X[train], y[train], hessians):
                for t in thresholds:
                    machine = refit.machine(t, refit.noise_precision(t))
                    density = machine.linearized(X[test]).logpdf(y[test])
                    scores[R, I, t, h] += float(np.mean(density))
    return max(scores, key=lambda option: np.nan_to_num(scores[option], nan=-np.inf))


def select(
    X: Array, y: Array, X_test: Array, hessians: Sequence[str] = HESSIANS, **others: Any
) -> tuple[Distribution, dict[str, Any]]:
    """Choose, fit and predict: the distribution of the test rows, and what was chosen."""
    R, I, t, h = choose(X, y, hessians, grid(*X.shape), **others)
    model = fit(X, y, (R, I), **others)
    ((_, refit),) = refits(model, X, y, (h,))
    beta = refit.noise_precision(t)
    about = {"rank": R, "n_basis": I, "threshold": t, "curvature": h, "engine": model.engine}
    scale = refit.base.target.scale
    about |= {"noise_precision": beta / scale**2, "prior_precision": refit.prior_precision}
    return refit.machine(t, beta).linearized(X_test), about
