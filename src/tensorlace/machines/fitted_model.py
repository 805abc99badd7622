"""A fitted model: everything that a fit has learnt, and the questions it answers.

The estimators hold one and delegate to it; model files, exports, reports and servers take one.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt

from tensorlace._types import Array
from tensorlace.columns.encoding import Encoding, RawColumn
from tensorlace.columns.raw import raw_columns, refuse_infinite
from tensorlace.errors import InputError
from tensorlace.kinds import Kind
from tensorlace.machines.distrusted import DistrustedRows
from tensorlace.machines.ensemble import Ensemble
from tensorlace.machines.machine import KernelMachine
from tensorlace.machines.noise_model import NoiseModel
from tensorlace.machines.novelty import Novelty, novelty_of
from tensorlace.networks.engine import Engine
from tensorlace.predictive.checks import Check
from tensorlace.predictive.conformal import Calibration
from tensorlace.predictive.distributions import Distribution
from tensorlace.predictive.held_back import HeldBackTest
from tensorlace.predictive.transformed import seen_through
from tensorlace.scales import IDENTITY, Scale
from tensorlace.sources.reference_rows import ReferenceRows

__all__ = ["FitRecord", "FittedModel", "HoldsModel", "holder"]


@final
@dataclass(frozen=True, eq=False)
class FitRecord:
    """What a fit says about itself.

    Attributes
    ----------
    estimator : str
        Class that fitted the model.
    arguments : mapping
        Arguments of the estimator by name.
    n_rows : int
        Rows it was fitted to.
    log_evidence : float
        Laplace evidence of the standardised target, averaged over members.
    noise_precision : float
        In units of y; where noise varies, of its mean square over reference rows.
    n_iter : int
        Steps of the longest run.
    n_dropped, n_pruned : int
        Posterior directions cut off, and weights switched off, over all members.
    draw_seed : int
        Of the draws of ``predictive="sampled"``.
    check : Check or None
        How predictions did on rows held out or left out.
    search_results, noise_results : DataFrame, list of dict or None
        Candidates, and kinds of noise, that were tried.
    relevance : (D,) array or None
        Share of the variance of y that each column accounts for, if it has been computed.
    distrusted : DistrustedRows or None
        Training rows that hardly counted; None of a fit without tails.
    held_back : HeldBackTest or None
        How it did on rows that were held back from everything; None if there were none.
    """

    estimator: str
    arguments: Mapping[str, Any]
    n_rows: int
    log_evidence: float
    noise_precision: float
    n_iter: int
    n_dropped: int
    n_pruned: int
    draw_seed: int
    check: Check | None = None
    search_results: Any = None
    noise_results: Any = None
    relevance: Array | None = None
    distrusted: DistrustedRows | None = None
    held_back: HeldBackTest | None = None


@final
@dataclass(frozen=True, eq=False)
class FittedModel:
    """How columns become numbers, the ensemble that predicts from them, and what is known of both.

    Tables of n rows are arrays (n, D) of numbers, as `encode` makes them.

    Attributes
    ----------
    encoding : Encoding
    ensemble : Ensemble
    rows : ReferenceRows or None
        Training rows that explanations average over; None if the model was saved without.
    record : FitRecord
    feature_names : tuple of str or None
        Names of the columns, if the table of the fit had any.
    calibration : Calibration or None
        What held-out rows said about intervals.
    n_draws : int
        Networks that are drawn from the posterior of each member to predict (LA); 0 predicts with
        the linearised model in closed form (LLA).
    threads : int
        That predict; no bit depends on it.
    scale : Scale
        From what the ensemble says to y.
    """

    encoding: Encoding
    ensemble: Ensemble
    rows: ReferenceRows | None
    record: FitRecord
    feature_names: tuple[str, ...] | None = None
    calibration: Calibration | None = None
    n_draws: int = 0
    threads: int = field(default=1, kw_only=True)
    scale: Scale = field(default=IDENTITY, kw_only=True)

    def fitted_model(self) -> Self:
        """The model itself."""
        return self

    @property
    def machines(self) -> tuple[KernelMachine, ...]:
        """Members of the ensemble."""
        return self.ensemble.machines

    @property
    def weights(self) -> Array:
        """Overall weights (M,) of the members."""
        return self.ensemble.weights

    @property
    def noise(self) -> NoiseModel:
        """Noise that the members share."""
        return self.ensemble.noise

    @property
    def n_columns(self) -> int:
        """Columns D of the table."""
        return len(self.encoding.kinds)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns: those of the table, or ``column 0``, ``column 1``, ..."""
        if self.feature_names is not None:
            return self.feature_names
        return tuple(f"column {d}" for d in range(self.n_columns))

    @property
    def kinds(self) -> dict[str, Kind]:
        """Kind of each column."""
        return dict(zip(self.names, self.encoding.kinds, strict=True))

    @property
    def reference_rows(self) -> ReferenceRows:
        """The training rows that are kept.

        Raises
        ------
        InputError
            If the model comes from a file that was to hold none.
        """
        if self.rows is None:
            raise InputError(
                "effects are averages over training rows, and this model was saved with "
                "background=False, so it has none: save it with them, or fit it again"
            )
        return self.rows

    def column(self, column: str | int) -> int:
        """Position of a column that is given by name or position."""
        names = self.names
        if isinstance(column, int | np.integer) and not isinstance(column, bool):
            if -len(names) <= column < len(names):
                return int(column) % len(names)
            raise InputError(f"column {column} does not exist: the table has {len(names)} columns")
        if column not in names:
            some = ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
            raise InputError(
                f"column {column!r} does not exist: choose from {some}, or give a position"
            )
        return names.index(column)

    def encode(self, X: Any) -> Array:
        """Numbers (n, D) of a frame, array or list of rows; missing values are NaN.

        Raises
        ------
        InputError
            For other columns than those of the fit, and for infinite values.
        """
        raw, D = raw_columns(X), self.n_columns
        table = np.empty((0, 0)) if raw is not None else np.asarray(X, dtype=np.float64)
        if raw is None and table.ndim != 2:
            raise InputError(f"X has shape {table.shape}: give a table of {D} columns")
        width = table.shape[1] if raw is None else len(raw)
        given = tuple(getattr(X, "columns", ()))
        if width != D or (self.feature_names and given and given != self.feature_names):
            what = ", ".join(map(str, given))[:200] if given and width == D else f"{width} columns"
            raise InputError(
                f"X has {what}; the model was fitted to {D}: {', '.join(self.names)[:200]}"
            )
        if raw is None and not self.encoding.plain:
            raw = [RawColumn(column) for column in table.T]
        if raw is not None:
            table = self.encoding(raw)
        refuse_infinite(table, self.names)
        return table

    def mean(self, X: Array) -> Array:
        """Predictive mean (n,)."""
        if self.n_draws or not self.scale.trivial:
            return self.dist(X).mean
        return self.ensemble.mean(X, self.threads)

    def dist(self, X: Array) -> Distribution:
        """Predictive distributions of n rows."""
        return seen_through(self._unscaled(X), self.scale)

    def _unscaled(self, X: Array) -> Distribution:
        """What the ensemble says of n rows."""
        if not self.n_draws:
            return self.ensemble.dist(X, self.threads)
        seed = self.record.draw_seed
        parts = [
            machine.sampled(X, self.n_draws, np.random.default_rng([seed, k]), self.threads)
            for k, machine in enumerate(self.machines)
        ]
        return self.ensemble.mixed(parts, X, self.threads)

    def draws(self, X: Array, n_samples: int, rng: np.random.Generator) -> Array:
        """Draws of new targets (n, n_samples); a column is one joint draw over all rows."""
        u = self.ensemble.draws(X, n_samples, rng, not self.n_draws, self.threads)
        return self.scale.forward(u)

    def quantiles(self, dist: Distribution, q: float | Sequence[float] | Array) -> Array:
        """Quantiles (n, k), or (n,) for one level, of predictive distributions of this model.

        Those of a calibrated model are the ends of its calibrated intervals.
        """
        return dist.quantile(q) if self.calibration is None else self.calibration.quantiles(dist, q)

    def interval(self, dist: Distribution, coverage: float) -> tuple[Array, Array]:
        """Lower and upper end (n,) of central intervals, calibrated if the model is."""
        if self.calibration is None:
            return dist.interval(coverage)
        return self.calibration.interval(dist, coverage)

    def extrapolated(self, X: Array) -> npt.NDArray[np.bool_]:
        """Rows (n,) unlike those of training, by a value or by a combination: see `novelty`."""
        return self.novelty(X).unlike

    def novelty(self, X: Array) -> Novelty:
        """How far n rows are from what training rows support, and why.

        Where all members rotate the columns, values are those of the components.
        """
        return self._novelty(X, self.ensemble.dist_and_ratio(X, self.threads)[1])

    def dist_and_novelty(self, X: Array) -> tuple[Distribution, Novelty]:
        """`dist` and `novelty` of n rows, at once."""
        dist, ratio = self.ensemble.dist_and_ratio(X, self.threads)
        dist = self._unscaled(X) if self.n_draws else dist
        return seen_through(dist, self.scale), self._novelty(X, ratio)

    def _novelty(self, X: Array, ratio: Array) -> Novelty:
        return novelty_of(self.ensemble.columns, X, ratio)

    def shares(self) -> Array:
        """How much each member counts on average over reference rows (M,)."""
        if self.rows is None:
            return self.weights
        return np.asarray(self.ensemble.shares(self.rows.X) @ self.rows.weight)

    def predicting(self, *, n_draws: int, threads: int, engine: Engine) -> Self:
        """The same model with another way to compute predictions."""
        if (self.n_draws, self.threads, self.ensemble.engine) == (n_draws, threads, engine):
            return self
        ensemble = replace(self.ensemble, engine=engine)
        return replace(self, ensemble=ensemble, n_draws=n_draws, threads=threads)

    def with_relevance(self, relevance: Array) -> Self:
        """The same model, whose record has the relevance (D,) of its columns."""
        return replace(self, record=replace(self.record, relevance=relevance))

    def with_held_back(self, test: HeldBackTest) -> Self:
        """The same model, whose record says how it did on rows held back."""
        return replace(self, record=replace(self.record, held_back=test))

    def unlisted(self) -> Self:
        """The same model without the targets of rows that were distrusted; their number stays."""
        found = self.record.distrusted
        if found is None:
            return self
        return replace(self, record=replace(self.record, distrusted=found.listed(0)))


class HoldsModel(ABC):
    """An estimator that holds a fitted model."""

    @abstractmethod
    def fitted_model(self) -> FittedModel:
        """What it has learnt, predicting as its arguments say."""

    @abstractmethod
    def with_model(self, model: FittedModel) -> Self:
        """Copy of the estimator that holds another model."""


def holder(model: Any) -> FittedModel | HoldsModel:
    """``model``, whose ``fitted_model`` may be asked for.

    Raises
    ------
    InputError
        If it is neither a fitted model nor an estimator that can hold one.
    """
    if isinstance(model, FittedModel | HoldsModel):
        return model
    raise InputError(f"a {type(model).__name__} is no fitted model: give a fitted TNKMRegressor")
