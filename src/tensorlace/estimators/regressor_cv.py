"""The paper's selection of rank, basis size and threshold: repeated cross-validation.

The inference is that of the final fit throughout. A family of models that differ in the threshold
costs one fit per fold.
"""

import warnings
from collections.abc import Sequence
from numbers import Integral
from time import perf_counter
from typing import Any, ClassVar, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, RegressorMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import RepeatedKFold
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import _check_y, check_consistent_length
from threadpoolctl import threadpool_limits

from tensorlace._types import Array
from tensorlace.columns.raw import numeric_target
from tensorlace.errors import CurvatureWarning, IllConditionedWarning, InputError
from tensorlace.estimators.calibrate_mixin import Calibrates
from tensorlace.estimators.cv_folds import Reporter, fold_scores, results_table
from tensorlace.estimators.cv_grid import (
    MOST_WEIGHTS,
    SIZES,
    THRESHOLDS,
    Family,
    cut_levels,
    families,
    sizes_within,
    whole_numbers,
)
from tensorlace.estimators.explain_mixin import Explains
from tensorlace.estimators.parameters import CONSTRAINTS, PAPER
from tensorlace.estimators.predict_mixin import PredictsDistributions
from tensorlace.estimators.regressor import TNKMRegressor
from tensorlace.estimators.tables import fit_encoding
from tensorlace.kinds import Kind
from tensorlace.rows.memory import MEMORY_BUDGET
from tensorlace.sources.dask import is_collection

__all__ = ["TNKMRegressorCV"]

_PASSED_ON = (
    *("basis", "warp", "columns", "solver", "core", "predictive", "n_draws", "relative_threshold"),
    *("noise_precision", "prior_precision", "prior_groups", "n_members", "max_sweeps", "tol"),
    "memory_budget",
)
"""Arguments that mean what they mean to `TNKMRegressor`."""

_AT_LEAST_ONE, _AT_LEAST_TWO = (Interval(Integral, k, None, closed="left") for k in (1, 2))


class TNKMRegressorCV(PredictsDistributions, Calibrates, Explains, RegressorMixin, BaseEstimator):
    """Tensor-network kernel machine chosen by cross-validation, the way of the paper.

    Every combination of rank, basis size, threshold (and curvature) is fitted to all but one part
    of the rows in turn and scored by the mean log density of the rows left out; the best is fitted
    to all rows. Defaults are those of Saiapin & Batselier (2026): its model, its grid, three parts,
    two repetitions. `TNKMRegressor` chooses by itself too, from more kinds of models and faster.

    Parameters
    ----------
    ranks : sequence of int, default=(2, 4, 8, 16, 24, 32, 48, 64)
    n_bases : sequence of int, default=(2, 4, 8, 16, 24, 32, 48, 64)
        Ranks R and numbers of basis functions I to choose from.
    thresholds : sequence of float or None, default=(1e-5, 1e-3, 1e-1)
        Values of t̂. More of them cost next to nothing.
    max_weights : int or None, default=1000
        Combinations with more weights ``R·I·D`` than this, or than rows, are left out (the smallest
        stays). None tries all.
    n_splits, n_repeats : int, default=3, 2
        Parts of the rows, and how often they are drawn anew.
    curvature : str or sequence of str, default="last"
        Several are chosen from.
    random_state : int, RandomState or None, default=None
        A whole number s splits like ``RepeatedKFold(random_state=s)``, and every fit has
        ``random_state=s``; otherwise such a number is drawn.
    n_jobs : int or None, default=None
        Fits side by side, in threads. None uses all cores; no bit depends on it.
    verbose : int, default=0
        1 prints a line per fit to standard error.
    basis, warp, columns, solver, core, predictive, n_draws, relative_threshold, noise_precision, \
prior_precision, prior_groups, n_members, max_sweeps, tol, memory_budget
        As in `TNKMRegressor`, with the values of ``TNKMRegressor.paper``.

    Attributes
    ----------
    best_params_ : dict
        Rank, n_basis, curvature and threshold.
    best_score_ : float
        Their score: mean log density of left-out rows (minus the NLL), averaged over the folds.
    best_index_ : int
        Their place in ``cv_results_``.
    best_estimator_ : TNKMRegressor
        Fitted to all rows. What it has learnt (``machines_``, ``noise_precision_``, ...) is here
        too.
    cv_results_ : dict of arrays
        One entry per combination, as `sklearn.model_selection.GridSearchCV` has it: ``params``,
        ``param_rank``, ..., ``split0_test_score``, ..., ``mean_test_score``, ``std_test_score``,
        ``rank_test_score`` and ``mean_fit_time`` (of the fit that a family shares).

    Examples
    --------
    >>> import numpy as np
    >>> from tensorlace import TNKMRegressorCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(120, 2))
    >>> y = X[:, 0] * X[:, 1] + 0.1 * rng.standard_normal(120)
    >>> model = TNKMRegressorCV(ranks=[1, 2], n_bases=[2, 3], tol=1e-2, random_state=0).fit(X, y)
    >>> sorted(model.best_params_)
    ['curvature', 'n_basis', 'rank', 'threshold']
    >>> len(model.cv_results_["params"])
    12
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{name: CONSTRAINTS[name] for name in (*_PASSED_ON, "random_state", "n_jobs", "verbose")},
        **{name: ["array-like"] for name in ("ranks", "n_bases", "thresholds")},
        "curvature": [*CONSTRAINTS["curvature"], "array-like"],
        "max_weights": [_AT_LEAST_ONE, None],
        "n_splits": [_AT_LEAST_TWO],
        "n_repeats": [_AT_LEAST_ONE],
    }

    def __init__(
        self,
        *,
        ranks: Sequence[int] = SIZES,
        n_bases: Sequence[int] = SIZES,
        thresholds: Sequence[float | None] = THRESHOLDS,
        max_weights: int | None = MOST_WEIGHTS,
        n_splits: int = 3,
        n_repeats: int = 2,
        basis: str | Sequence[str] = PAPER["basis"],
        warp: str | Sequence[str] = PAPER["warp"],
        columns: dict[Any, Kind] | None = None,
        solver: str = PAPER["solver"],
        curvature: str | Sequence[str] = PAPER["curvature"],
        core: int | None = PAPER["core"],
        predictive: str = "linearized",
        n_draws: int = 100,
        relative_threshold: bool = False,
        noise_precision: str | float = PAPER["noise_precision"],
        prior_precision: str | float = PAPER["prior_precision"],
        prior_groups: str = PAPER["prior_groups"],
        n_members: int | str = 1,
        max_sweeps: int = PAPER["max_sweeps"],
        tol: float = 1e-6,
        random_state: Any = None,
        n_jobs: int | None = None,
        memory_budget: int = MEMORY_BUDGET,
        verbose: int = 0,
    ) -> None:
        self.ranks = ranks
        self.n_bases = n_bases
        self.thresholds = thresholds
        self.max_weights = max_weights
        self.n_splits = n_splits
        self.n_repeats = n_repeats
        self.basis = basis
        self.warp = warp
        self.columns = columns
        self.solver = solver
        self.curvature = curvature
        self.core = core
        self.predictive = predictive
        self.n_draws = n_draws
        self.relative_threshold = relative_threshold
        self.noise_precision = noise_precision
        self.prior_precision = prior_precision
        self.prior_groups = prior_groups
        self.n_members = n_members
        self.max_sweeps = max_sweeps
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.memory_budget = memory_budget
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any) -> Self:
        """Choose, then fit the choice to all rows.

        Parameters
        ----------
        X : (N, D) array or data frame
            As for `TNKMRegressor.fit`, in memory.
        y : (N,) array
        """
        if is_collection(X):
            raise InputError("X is a Dask collection: compute it first, or fit a TNKMRegressor")
        if y is None:
            raise InputError("TNKMRegressorCV requires y to be passed, but the target y is None")
        table, _ = fit_encoding(self, X)
        N, D = table.shape
        rows = X if hasattr(X, "columns") or isinstance(X, np.ndarray | list) else table
        target = _check_y(numeric_target(y), y_numeric=True, estimator=self).astype(np.float64)
        check_consistent_length(table, target)
        if self.n_splits * 2 > N:
            raise InputError(
                f"n_splits={self.n_splits} but n_samples={N}: give at least {2 * self.n_splits} "
                f"rows, or fewer splits"
            )
        grid = self._grid(N, D)
        seed = self.random_state
        if not isinstance(seed, Integral):
            seed = int(check_random_state(seed).randint(2**31 - 1))
        common = {name: getattr(self, name) for name in _PASSED_ON}
        common |= {"random_state": int(seed)}
        folds = list(
            RepeatedKFold(
                n_splits=self.n_splits, n_repeats=self.n_repeats, random_state=int(seed)
            ).split(np.zeros(N))
        )
        # the largest first, so that no thread is left with it at the end
        order = sorted(range(len(grid)), key=lambda k: -grid[k].rank * grid[k].n_basis)
        jobs = [(k, f) for k in order for f in range(len(folds))]
        say = Reporter(len(jobs), self.verbose)

        def job(k: int, f: int) -> tuple[Array, float]:
            start, (train, test) = perf_counter(), folds[f]
            seen = (_safe_indexing(rows, train), target[train])
            held_out = (_safe_indexing(rows, test), target[test])
            scores = fold_scores(grid[k], common, *seen, *held_out)
            say(grid[k], f, scores)
            return scores, perf_counter() - start

        with threadpool_limits(1, user_api="blas"), warnings.catch_warnings():
            # what did not go well in the one fit that remains is told by that fit
            for kind in (ConvergenceWarning, CurvatureWarning, IllConditionedWarning):
                warnings.simplefilter("ignore", kind)
            workers = Parallel(self._threads(), prefer="threads", require="sharedmem")
            done = dict(zip(jobs, workers(delayed(job)(*j) for j in jobs), strict=True))
        self.cv_results_ = results_table(grid, done)
        self.best_index_ = int(np.argmin(self.cv_results_["rank_test_score"]))
        self.best_params_ = self.cv_results_["params"][self.best_index_]
        self.best_score_ = float(self.cv_results_["mean_test_score"][self.best_index_])
        best = TNKMRegressor(**common, **self.best_params_, n_jobs=self.n_jobs)
        self.best_estimator_ = best.fit(rows, target)
        self.model_ = best.model_
        self.model_ = self.fitted_model()
        return self

    def _grid(self, n_rows: int, n_columns: int) -> list[Family]:
        ranks, n_bases = (whole_numbers(n, getattr(self, n)) for n in ("ranks", "n_bases"))
        curvatures = [self.curvature] if isinstance(self.curvature, str) else list(self.curvature)
        allowed = CONSTRAINTS["curvature"][0].options
        if not curvatures or not set(curvatures) <= allowed:
            raise InputError(f"curvature is {curvatures}: choose from {', '.join(sorted(allowed))}")
        return families(
            sizes_within(ranks, n_bases, n_columns, n_rows, self.max_weights),
            cut_levels("thresholds", self.thresholds),
            curvatures,
        )
