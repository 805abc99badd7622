"""The paper's selection of rank, basis size and threshold: repeated cross-validation.

The inference is that of the final fit throughout. A family of models that differ in the threshold
costs one fit per fold.
"""

import warnings
from collections.abc import Callable, Sequence
from copy import copy
from functools import wraps
from inspect import signature
from numbers import Integral
from time import perf_counter
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import BaseEstimator, RegressorMixin, _fit_context, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import RepeatedKFold
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import _check_y, check_consistent_length, check_is_fitted
from threadpoolctl import threadpool_limits

from tensorlace._types import Array
from tensorlace.columns.raw import numeric_target
from tensorlace.errors import CurvatureWarning, IllConditionedWarning, InputError
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
from tensorlace.estimators.parameters import CONSTRAINTS, PAPER
from tensorlace.estimators.regressor import TNKMRegressor
from tensorlace.estimators.tables import fit_encoding
from tensorlace.fitting.registry import CURVATURES
from tensorlace.machines.fitted_model import FittedModel, HoldsModel
from tensorlace.rows.stop import part_of_more
from tensorlace.sources.dask import is_collection

__all__ = ["TNKMRegressorCV"]

F = TypeVar("F", bound=Callable[..., Any])

_AT_LEAST_ONE, _AT_LEAST_TWO = (Interval(Integral, k, None, closed="left") for k in (1, 2))


def _of_best(method: F) -> F:
    """A method of `TNKMRegressor` that the best estimator answers."""

    @wraps(method)
    def answer(self: "TNKMRegressorCV", *args: Any, **kwargs: Any) -> Any:
        check_is_fitted(self, "best_estimator_")
        return method(self.best_estimator_, *args, **kwargs)

    return answer  # type: ignore[return-value]


def _learnt_by_best(name: str) -> Any:
    """An attribute that a fitted `TNKMRegressor` has, of the best estimator."""

    def value(self: "TNKMRegressorCV") -> Any:
        check_is_fitted(self, "best_estimator_")
        return getattr(self.best_estimator_, name)

    return property(value, doc=getattr(getattr(TNKMRegressor, name, None), "__doc__", None))


def _sending_on(init: F) -> F:
    """The constructor, with an error that says where an argument of the model is given."""
    own = signature(init).parameters

    @wraps(init)
    def construct(self: "TNKMRegressorCV", *args: Any, **kwargs: Any) -> None:
        if "curvature" in kwargs:
            raise TypeError("curvature: give curvatures, a sequence, or an estimator that has it")
        names = [name for name in kwargs if name in CONSTRAINTS and name not in own]
        if names:
            given = ", ".join(f"{name}=..." for name in names)
            raise TypeError(
                f"{', '.join(names)}: give what belongs to the model to the estimator, "
                f"TNKMRegressorCV(TNKMRegressor.paper({given}), ...)"
            )
        init(self, *args, **kwargs)

    return construct  # type: ignore[return-value]


class TNKMRegressorCV(HoldsModel, RegressorMixin, BaseEstimator):
    """Tensor-network kernel machine chosen by cross-validation, the way of the paper.

    Every combination of rank, basis size, threshold (and curvature) is fitted to all but one part
    of the rows in turn and scored by the mean log density of the rows left out; the best is fitted
    to all rows. Defaults are those of Saiapin & Batselier (2026): its model, its grid, three parts,
    two repetitions. `TNKMRegressor` chooses by itself too, from more kinds of models and faster.

    Parameters
    ----------
    estimator : TNKMRegressor or None, default=None
        What is fitted, but for what is chosen, ``random_state`` and ``n_jobs``. None is the model
        of the paper, see ``TNKMRegressor.paper``.
    ranks : sequence of int, default=(2, 4, 8, 16, 24, 32, 48, 64)
    n_bases : sequence of int, default=(2, 4, 8, 16, 24, 32, 48, 64)
        Ranks R and numbers of basis functions I to choose from.
    thresholds : sequence of float or None, default=(1e-5, 1e-3, 1e-1)
        Values of t̂. More of them cost next to nothing.
    curvatures : sequence of str or None, default=None
        Hessians to choose from; None takes that of the estimator.
    max_weights : int or None, default=1000
        Combinations with more weights ``R·I·D`` than this, or than rows, are left out (the smallest
        stays). None tries all.
    n_splits, n_repeats : int, default=3, 2
        Parts of the rows, and how often they are drawn anew.
    random_state : int, RandomState or None, default=None
        A whole number s splits like ``RepeatedKFold(random_state=s)``, and every fit has
        ``random_state=s``; otherwise such a number is drawn.
    n_jobs : int or None, default=None
        Fits side by side, in threads. None uses all cores; no bit depends on it.
    verbose : int, default=0
        1 prints a line per fit to standard error.

    Attributes
    ----------
    best_params_ : dict
        Rank, n_basis, curvature and threshold.
    best_score_ : float
        Their score: mean log density of left-out rows (minus the NLL), averaged over the folds.
    best_index_ : int
        Their place in ``cv_results_``.
    best_estimator_ : TNKMRegressor
        Fitted to all rows. What it has learnt (``machines_``, ``noise_precision_``, ...) and what
        it can do is here too.
    cv_results_ : dict of arrays
        One entry per combination, as `sklearn.model_selection.GridSearchCV` has it: ``params``,
        ``param_rank``, ..., ``split0_test_score``, ..., ``mean_test_score``, ``std_test_score``,
        ``rank_test_score`` and ``mean_fit_time`` (of the fit that a family shares).

    Examples
    --------
    >>> import numpy as np
    >>> from tensorlace import TNKMRegressor, TNKMRegressorCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(120, 2))
    >>> y = X[:, 0] * X[:, 1] + 0.1 * rng.standard_normal(120)
    >>> paper = TNKMRegressor.paper(tol=1e-2)
    >>> model = TNKMRegressorCV(paper, ranks=[1, 2], n_bases=[2, 3], random_state=0).fit(X, y)
    >>> sorted(model.best_params_)
    ['curvature', 'n_basis', 'rank', 'threshold']
    >>> len(model.cv_results_["params"])
    12
    """

    best_estimator_: TNKMRegressor

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{name: CONSTRAINTS[name] for name in ("random_state", "n_jobs", "verbose")},
        **{name: ["array-like"] for name in ("ranks", "n_bases", "thresholds")},
        "estimator": [TNKMRegressor, None],
        "curvatures": ["array-like", None],
        "max_weights": [_AT_LEAST_ONE, None],
        "n_splits": [_AT_LEAST_TWO],
        "n_repeats": [_AT_LEAST_ONE],
    }

    @_sending_on
    def __init__(
        self,
        estimator: TNKMRegressor | None = None,
        *,
        ranks: Sequence[int] = SIZES,
        n_bases: Sequence[int] = SIZES,
        thresholds: Sequence[float | None] = THRESHOLDS,
        curvatures: Sequence[str] | None = None,
        max_weights: int | None = MOST_WEIGHTS,
        n_splits: int = 3,
        n_repeats: int = 2,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.ranks = ranks
        self.n_bases = n_bases
        self.thresholds = thresholds
        self.curvatures = curvatures
        self.max_weights = max_weights
        self.n_splits = n_splits
        self.n_repeats = n_repeats
        self.random_state = random_state
        self.n_jobs = n_jobs
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
        base = TNKMRegressor(**PAPER) if self.estimator is None else clone(self.estimator)
        table, _ = fit_encoding(clone(base), X)
        N, D = table.shape
        rows = X if hasattr(X, "columns") or isinstance(X, np.ndarray | list) else table
        target = _check_y(numeric_target(y), y_numeric=True, estimator=self).astype(np.float64)
        check_consistent_length(table, target)
        if self.n_splits * 2 > N:
            raise InputError(
                f"n_splits={self.n_splits} but n_samples={N}: give at least {2 * self.n_splits} "
                f"rows, or fewer splits"
            )
        grid = self._grid(base, N, D)
        seed = self.random_state
        if not isinstance(seed, Integral):
            seed = int(check_random_state(seed).randint(2**31 - 1))
        base.set_params(random_state=int(seed))
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
            scores = fold_scores(grid[k], base, *seen, *held_out)
            say(grid[k], f, scores)
            return scores, perf_counter() - start

        threads = effective_n_jobs(-1 if self.n_jobs is None else self.n_jobs)
        with threadpool_limits(1, user_api="blas"), warnings.catch_warnings(), part_of_more():
            # what did not go well in the one fit that remains is told by that fit
            for kind in (ConvergenceWarning, CurvatureWarning, IllConditionedWarning):
                warnings.simplefilter("ignore", kind)
            workers = Parallel(threads, prefer="threads", require="sharedmem")
            done = dict(zip(jobs, workers(delayed(job)(*j) for j in jobs), strict=True))
        self.cv_results_ = results_table(grid, done)
        self.best_index_ = int(np.argmin(self.cv_results_["rank_test_score"]))
        self.best_params_ = self.cv_results_["params"][self.best_index_]
        self.best_score_ = float(self.cv_results_["mean_test_score"][self.best_index_])
        base.set_params(**self.best_params_, n_jobs=self.n_jobs)
        self.best_estimator_ = base.fit(rows, target)
        return self

    def fitted_model(self) -> FittedModel:
        """What the best estimator has learnt."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.fitted_model()

    def with_model(self, model: FittedModel) -> Self:
        """Copy whose best estimator holds another model; its arguments are checked."""
        self._validate_params()
        check_is_fitted(self, "best_estimator_")
        other = copy(self)
        other.best_estimator_ = self.best_estimator_.with_model(model)
        return other

    def calibrate(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Make intervals and quantiles valid with held-out rows, see `TNKMRegressor.calibrate`."""
        check_is_fitted(self, "best_estimator_")
        self.best_estimator_.calibrate(X, y, sample_weight)
        return self

    predict = _of_best(TNKMRegressor.predict)
    predict_dist = _of_best(TNKMRegressor.predict_dist)
    predict_interval = _of_best(TNKMRegressor.predict_interval)
    predict_quantiles = _of_best(TNKMRegressor.predict_quantiles)
    sample_y = _of_best(TNKMRegressor.sample_y)
    extrapolated = _of_best(TNKMRegressor.extrapolated)
    novelty = _of_best(TNKMRegressor.novelty)
    check_calibration = _of_best(TNKMRegressor.check_calibration)
    partial_effects = _of_best(TNKMRegressor.partial_effects)
    summary = _of_best(TNKMRegressor.summary)

    n_features_in_ = _learnt_by_best("n_features_in_")
    feature_names_in_ = _learnt_by_best("feature_names_in_")
    model_ = _learnt_by_best("model_")
    machines_ = _learnt_by_best("machines_")
    weights_ = _learnt_by_best("weights_")
    noise_ = _learnt_by_best("noise_")
    kinds_ = _learnt_by_best("kinds_")
    calibration_ = _learnt_by_best("calibration_")
    check_ = _learnt_by_best("check_")
    search_results_ = _learnt_by_best("search_results_")
    noise_results_ = _learnt_by_best("noise_results_")
    distrusted_ = _learnt_by_best("distrusted_")
    log_evidence_ = _learnt_by_best("log_evidence_")
    noise_precision_ = _learnt_by_best("noise_precision_")
    n_rows_ = _learnt_by_best("n_rows_")
    n_iter_ = _learnt_by_best("n_iter_")
    n_dropped_ = _learnt_by_best("n_dropped_")
    n_pruned_ = _learnt_by_best("n_pruned_")
    relevance_ = _learnt_by_best("relevance_")

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that values may be missing or categories."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.categorical = True
        return tags

    def _grid(self, base: TNKMRegressor, n_rows: int, n_columns: int) -> list[Family]:
        ranks, n_bases = (whole_numbers(n, getattr(self, n)) for n in ("ranks", "n_bases"))
        curvatures = [base.curvature] if self.curvatures is None else list(self.curvatures)
        if not curvatures or not all(curvature in CURVATURES for curvature in curvatures):
            raise InputError(
                f"curvatures is {curvatures}: choose from {', '.join(sorted(CURVATURES))}"
            )
        return families(
            sizes_within(ranks, n_bases, n_columns, n_rows, self.max_weights),
            cut_levels("thresholds", self.thresholds),
            curvatures,
        )
