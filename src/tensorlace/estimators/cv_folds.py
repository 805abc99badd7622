"""What cross-validation does with its folds: fit, score, report, and put in a table."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from threading import Lock
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone

from tensorlace._types import Array
from tensorlace.estimators.cv_grid import Family
from tensorlace.estimators.regressor import TNKMRegressor
from tensorlace.laplace.factorisation import Truncation, truncated

__all__ = ["Reporter", "fold_scores", "results_table"]


def fold_scores(
    family: Family, base: TNKMRegressor, X: Any, y: Array, X_test: Any, y_test: Array
) -> Array:
    """Mean log density (k,) of the rows left out, for each of a family's k thresholds.

    ``base`` says everything about the model that the family does not.
    """
    first, *rest = family.members()
    model = clone(base).set_params(**first, n_jobs=1).fit(X, y)
    models = [model]
    for member in rest:
        cut = Truncation(member["threshold"], model.relative_threshold)
        machines = tuple(
            replace(m, fit=replace(m.fit, posterior=truncated(m.fit.posterior, cut)))
            for m in model.machines_
        )
        ensemble = replace(model.model_.ensemble, machines=machines)
        other = model.with_model(replace(model.model_, ensemble=ensemble))
        models.append(other.set_params(**member))
    return np.array([np.mean(m.predict_dist(X_test).logpdf(y_test)) for m in models])


class Reporter:
    """A line per fit: how many are done, what it was, and the NLL of its best threshold."""

    def __init__(self, count: int, verbose: int) -> None:
        self._count, self._verbose = count, verbose
        self._done, self._start, self._lock = 0, perf_counter(), Lock()

    def __call__(self, family: Family, fold: int, scores: Array) -> None:
        """Print, if anything is to be printed."""
        if not self._verbose:
            return
        with self._lock:
            self._done += 1
            print(
                f"[tensorlace] fit {self._done}/{self._count}  rank {family.rank}  n_basis "
                f"{family.n_basis}  {family.curvature}  fold {fold + 1}  nll {-scores.max():.4g}  "
                f"{perf_counter() - self._start:.0f} s",
                file=sys.stderr,
                flush=True,
            )


def results_table(
    grid: Sequence[Family], done: Mapping[tuple[int, int], tuple[Array, float]]
) -> dict[str, Any]:
    """What `sklearn.model_selection.GridSearchCV` calls ``cv_results_``.

    Parameters
    ----------
    grid : sequence of Family
    done : mapping of (family, fold) to (scores, seconds)
        Scores as from `fold_scores`.
    """
    params = [member for family in grid for member in family.members()]
    folds = range(1 + max(f for _, f in done))
    table = np.concatenate(
        [np.stack([done[k, f][0] for f in folds], axis=1) for k in range(len(grid))]
    )
    mean = table.mean(axis=1)
    comparable = np.where(np.isnan(mean), -np.inf, mean)  # a score that is none is the worst
    better = np.sum(comparable[None, :] > comparable[:, None], axis=1)
    times = [np.mean([done[k, f][1] for f in folds]) for k in range(len(grid))]
    return {
        "params": params,
        **{f"param_{name}": np.array([p[name] for p in params], object) for name in params[0]},
        **{f"split{f}_test_score": table[:, f] for f in folds},
        "mean_test_score": mean,
        "std_test_score": table.std(axis=1),
        "rank_test_score": better.astype(np.int32) + 1,
        "mean_fit_time": np.repeat(times, [len(family.thresholds) for family in grid]),
    }
