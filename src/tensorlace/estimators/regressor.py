"""The scikit-learn estimator and nothing else: arguments in, attributes out."""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator, RegressorMixin

from tensorlace.estimators.calibrate_mixin import Calibrates
from tensorlace.estimators.explain_mixin import Explains
from tensorlace.estimators.fit_mixin import FitsTables
from tensorlace.estimators.parameters import CONSTRAINTS, PAPER
from tensorlace.estimators.predict_mixin import PredictsDistributions
from tensorlace.kinds import Kind
from tensorlace.rows.memory import MEMORY_BUDGET

__all__ = ["TNKMRegressor"]


class TNKMRegressor(
    FitsTables, PredictsDistributions, Calibrates, Explains, RegressorMixin, BaseEstimator
):
    """Bayesian tensor-network kernel machine: regression that knows how sure it is.

    Each column x_d becomes a few basis functions φ_d(x_d); the model is a sum of ``rank`` products
    of one-column functions, ``f(x) = Σ_r Π_d φ_d(x_d)ᵀ v_r^(d)``. Its weights have a Gaussian prior
    and, at their most probable value, a Gaussian (Laplace) posterior, from which every prediction
    carries an honest standard deviation.

    Parameters
    ----------
    rank : int or "auto", default="auto"
        Number R of products. "auto" fits many candidates that differ in all arguments that are
        "auto", judges them on rows they have not seen, and predicts with a mixture of them. With a
        number, one model is fitted, and other arguments that are "auto" have the fixed values in
        brackets. 0 with ``additive=True`` is a sum of one-column functions and nothing else (and
        has no last core to be uncertain of).
    network : {"cpd", "tt"}, default="cpd"
        How functions of the columns are put together: "cpd", a sum of ``rank`` products; "tt", a
        tensor train: a chain of matrices of at most ``rank`` rows and columns, one per column.
    likelihood : str, default="gaussian"
        How targets scatter about the response: "gaussian", or the name of a registered likelihood,
        which needs a number for ``rank``.
    n_basis : int, sequence of int or "auto", default="auto" (6)
        Basis functions I per column; one number, or one per column.
    basis : str or sequence of str, default="cosine"
        "cosine", "sine", "fourier", "chebyshev", "legendre", "polynomial", "unit_polynomial" (the
        paper's), "bspline" or "indicator"; one name, or one per column.
    warp : str or sequence of str, default="auto" ("mixed")
        How a column is brought to the home interval of its basis: "minmax", "quantile", "mixed"
        (half of each), "standardise" (for the polynomial bases) or "identity".
    columns : dict or None, default=None
        Kinds of columns by name or position, where they are not what the table says:
        ``{"hour": Periodic(24), "shop": Categorical()}``, see `tensorlace.kinds`. Categorical and
        periodic columns have a basis of their own; the three arguments above are for the others.
    solver : {"auto", "gauss_newton", "als", "matrix_free"}, default="auto"
        "auto" takes Gauss-Newton, without its matrix from 5,000 rows; ALS where both are dear.
    curvature : {"ggn", "last", "block", "diag", "full"}, default="ggn"
        Which Hessian the posterior is made of.
    core : int or None, default=None
        The Bayesian core of ``curvature="last"``; -1 is the paper's (last column), None takes the
        column with the highest evidence.
    predictive : {"linearized", "sampled"}, default="linearized"
        Closed-form predictive of the linearised model, or a mixture over ``n_draws`` networks.
    n_draws : int, default=100
        Draws for ``predictive="sampled"``.
    threshold : float or None, default=None
        Eigenvalues of the Hessian below it are cut off (the paper's t̂). None keeps all that are
        positive.
    relative_threshold : bool, default=False
        Measure ``threshold`` in units of the largest eigenvalue.
    extrapolation : {"cautious", "plain"}, default="cautious"
        Beyond what training rows have shown: "cautious" keeps the mean within bounds around the
        targets and lets the standard deviation grow, with the distance from the range of a column
        and where the model is less sure than it was of any training row; "plain" is the bare
        posterior.
    target_scale : {"auto", "clip", "identity", "log", "logit"}, default="auto"
        What is modelled, and what values the target can have. "clip" keeps predictions within its
        bounds: where a distribution reaches beyond, what is there counts as being on the bound.
        "log" models the logarithm of a positive target, "logit" the log odds of shares. "identity"
        knows no bounds. "auto" is "clip" where targets are never below 0, and from 0 to 1 where
        they are shares; with ``rank="auto"`` and a skewed table in memory it is "log" or "logit"
        where rows held out are sure that this is better.
    target_range : (float, float) or None, default=None
        Least and largest value that a target can have, infinite if there is none. None takes 0
        where no target of 50 rows or more is below it, and 1 where moreover none is above that.
    noise : {"auto", "gaussian", "student", "varying", "varying_student"}, default="auto"
        Constant or varying with x (with ``rank="auto"`` only), with normal or heavier tails; "auto"
        lets the data decide. Where wild rows ask for heavier tails, the fit has them too, so that
        such rows hardly count: see ``distrusted_``.
        With a fixed rank and fewer than 50 rows "auto" has the tails of Student's t, since so few
        do not know their noise.
    noise_precision : "evidence", "vi" or float, default="evidence"
        1 / noise variance, in units of y (of its logarithm, if that is modelled); or how to find
        it.
    prior_precision : "evidence", "vi" or float, default="evidence"
        Precision of the weights for a target of unit variance, or how to find it; 0 is flat.
    prior_groups : str, default="auto" ("all")
        Weights that share a prior precision: "all" of them, those of a "column", of an "order" of
        basis function, of both ("column_order"), or of a rank-one term ("rank"). In products the
        categories of a column count as one order, and rare ones have a larger precision.
    additive : bool or "auto", default="auto" (False)
        Add a sum of one-column functions to the sum of products.
    rotate : bool or "auto", default="auto" (False)
        Replace the columns of numbers by their principal components.
    time_budget : float or None, default=None
        Seconds that ``rank="auto"`` may take on ``n_jobs`` threads if nothing else runs, within
        about a factor of 1.5: processor time by a cost model that knows the speed of this machine,
        and not by the clock, so that a busy machine chooses the same. None: what a reference
        machine does in half a minute for hundreds of rows and minutes for thousands, the same on
        any machine.
    time_limit : float or None, default=None
        Seconds by the clock after which a fit ends with the best it has, and a
        ``TimeBudgetWarning``. So it does at the first Ctrl-C, unless there is nothing yet or it
        has a checkpoint; the second interrupts as usual.
    n_members : int or "auto", default="auto" (1)
        Most members of the mixture that ``rank="auto"`` ends with: fewer make predictions quicker.
        With a fixed rank, independent restarts; predictions are their equal mixture.
    max_sweeps : int, default=300
        Largest number of solver steps.
    tol : float, default=1e-6
        Relative gradient at which the solver stops. Short of it a ``ConvergenceWarning`` is given.
    weights : {"auto", "repetitions", "relative"}, default="auto"
        What ``sample_weight`` means. "repetitions": a row of weight 2 is two rows. "relative":
        weights only count beside each other and are scaled to a mean of one over the rows that have
        any. "auto" takes whole numbers, and weights with a mean of about one, as repetitions;
        others as relative, and says so in a ``RowWeightWarning``.
    random_state : int, RandomState or None, default=None
        Where the weights start, and the draws.
    n_jobs : int or None, default=None
        Threads, or processes for many small fits; None uses all cores. With a number for ``rank``
        no bit of the result depends on it; with "auto" more of them try more candidates in the
        same time.
    row_dtype : {"float64", "float32"}, default="float64"
        Precision of features and partial products of single rows; sums over rows are always double.
        "float32" halves memory and traffic and leaves about six digits.
    engine : {"numpy", "compiled"}, default="numpy"
        "compiled" sums the Gram matrices of ALS and evaluates the network at new rows with small C
        routines, built once with the C compiler of this machine.
    grow_rows : bool or "auto", default="auto"
        Start large fits on a growing part of the rows; the last steps always see all of them.
    memory_budget : int, default=2 GiB
        Bytes that features and partial products kept between passes may take each. A table on disk
        that does not fit is read again in every pass.
    verbose : int, default=0
        1 prints a line of progress every two seconds, 2 one per step: objective, gradient, rows per
        second (a step passes all rows) and how long it can take at most.

    Attributes
    ----------
    machines_ : tuple of KernelMachine
        The fitted members.
    weights_ : (M,) array
        How much each counts before ``rank="auto"`` looks at single rows: there a member counts
        the more the surer it is.
    noise_ : Noise
        What is left of the noise when each machine has its own, see `tensorlace.machines.noise`.
    search_results_, noise_results_ : DataFrame or None
        All candidates and all kinds of noise that were tried; None with a fixed rank.
    distrusted_ : DataFrame
        Rows that a fit with tails distrusts: number, target, prediction, and weight in the fit.
    kinds_ : dict
        Kind of each column, inferred or chosen.
    log_evidence_ : float
        Laplace evidence ``log p(y | β, γ)`` for the standardised target, averaged over members
        by how much they count in the training rows.
    noise_precision_ : float
        Noise precision in units of y: where noise varies, of its mean square over training rows.
    n_rows_ : int
        Rows it was fitted to.
    n_iter_ : int
        Steps of the longest run.
    n_dropped_ : int
        Posterior directions cut off, over all members.
    calibration_ : Calibration or None
        What `calibrate` learnt from held-out rows.
    relevance_ : (D,) array
        Share of the variance of y that each column accounts for; they sum to 1 at most.
    n_pruned_ : int
        Weights that their prior precisions switched off and that are gone, over all members.

    Examples
    --------
    >>> import numpy as np
    >>> from tensorlace import TNKMRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(200, 2))
    >>> y = np.sin(X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(200)
    >>> model = TNKMRegressor(rank=4, random_state=0).fit(X, y)
    >>> mean, std = model.predict(X[:3], return_std=True)
    >>> bool(np.all(np.abs(y[:3] - mean) < 4 * std))
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = CONSTRAINTS

    def __init__(
        self,
        *,
        rank: int | str = "auto",
        network: str = "cpd",
        likelihood: str = "gaussian",
        n_basis: int | str | Sequence[int] = "auto",
        basis: str | Sequence[str] = "cosine",
        warp: str | Sequence[str] = "auto",
        columns: dict[Any, Kind] | None = None,
        solver: str = "auto",
        curvature: str = "ggn",
        core: int | None = None,
        predictive: str = "linearized",
        n_draws: int = 100,
        threshold: float | None = None,
        relative_threshold: bool = False,
        extrapolation: str = "cautious",
        target_scale: str = "auto",
        target_range: Sequence[float] | None = None,
        noise: str = "auto",
        noise_precision: str | float = "evidence",
        prior_precision: str | float = "evidence",
        prior_groups: str = "auto",
        additive: bool | str = "auto",
        rotate: bool | str = "auto",
        time_budget: float | None = None,
        time_limit: float | None = None,
        n_members: int | str = "auto",
        max_sweeps: int = 300,
        tol: float = 1e-6,
        weights: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        row_dtype: str = "float64",
        engine: str = "numpy",
        grow_rows: bool | str = "auto",
        memory_budget: int = MEMORY_BUDGET,
        verbose: int = 0,
    ) -> None:
        self.rank = rank
        self.network = network
        self.likelihood = likelihood
        self.n_basis = n_basis
        self.basis = basis
        self.warp = warp
        self.columns = columns
        self.solver = solver
        self.curvature = curvature
        self.core = core
        self.predictive = predictive
        self.n_draws = n_draws
        self.threshold = threshold
        self.relative_threshold = relative_threshold
        self.extrapolation = extrapolation
        self.target_scale = target_scale
        self.target_range = target_range
        self.noise = noise
        self.noise_precision = noise_precision
        self.prior_precision = prior_precision
        self.prior_groups = prior_groups
        self.additive = additive
        self.rotate = rotate
        self.time_budget = time_budget
        self.time_limit = time_limit
        self.n_members = n_members
        self.max_sweeps = max_sweeps
        self.tol = tol
        self.weights = weights
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.row_dtype = row_dtype
        self.engine = engine
        self.grow_rows = grow_rows
        self.memory_budget = memory_budget
        self.verbose = verbose

    @classmethod
    def paper(
        cls, rank: int = 4, n_basis: int = 6, threshold: float | None = None, **others: Any
    ) -> Self:
        """The configuration of Saiapin & Batselier (2026), done right.

        Unit-norm polynomials on standardised columns, ALS, last core, linearised predictive,
        Gamma-VI for the noise and γ = 1e-5. ``others`` override single arguments. The paper chose
        rank, basis size and threshold by cross-validation, as `TNKMRegressorCV` does.
        """
        size = {"rank": rank, "n_basis": n_basis, "threshold": threshold}
        return cls(**{**size, **PAPER, **others})
