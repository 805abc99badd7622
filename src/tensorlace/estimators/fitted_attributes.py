"""The fitted model of an estimator, and what scikit-learn's users read of it."""

from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from sklearn.utils.validation import check_is_fitted

from tensorlace._types import Array
from tensorlace.estimators.messages import as_table
from tensorlace.explain.relevance import relevance_of
from tensorlace.fitting.registry import ENGINES
from tensorlace.kinds import Kind
from tensorlace.machines.distrusted import NONE_DISTRUSTED
from tensorlace.machines.fitted_model import FittedModel, HoldsModel
from tensorlace.machines.machine import KernelMachine
from tensorlace.machines.noise_model import NoiseModel
from tensorlace.predictive.checks import Check
from tensorlace.predictive.conformal import Calibration

__all__ = ["HasFittedAttributes"]


class HasFittedAttributes(HoldsModel):
    """Read-only attributes of a fitted estimator.

    Attributes
    ----------
    model_ : FittedModel
        What the fit has learnt.
    predictive : {"linearized", "sampled"}
    n_draws : int
    n_jobs : int or None
        Threads that predict; None uses all cores.
    """

    model_: FittedModel
    predictive: str
    n_draws: int
    n_jobs: int | None
    n_features_in_: int
    feature_names_in_: npt.NDArray[np.object_]

    def fitted_model(self) -> FittedModel:
        """What the fit has learnt, with the arguments that the estimator has now."""
        model = self._predicting()
        params: dict[str, Any] = self.get_params(deep=False)  # type: ignore[attr-defined]
        record = replace(model.record, estimator=type(self).__name__, arguments=params)
        return replace(model, record=record)

    def with_model(self, model: FittedModel) -> Self:
        """Copy of the estimator that holds another model; its arguments are checked.

        Raises
        ------
        sklearn.utils._param_validation.InvalidParameterError
            If the estimator has an argument that `fit` would refuse.
        """
        self._validate_params()  # type: ignore[attr-defined]
        other = copy(self)
        other.model_ = model
        other.n_features_in_ = model.n_columns
        if model.feature_names is not None:
            other.feature_names_in_ = np.array(model.feature_names, dtype=object)
        elif hasattr(other, "feature_names_in_"):
            del other.feature_names_in_
        other.model_ = other.fitted_model()
        return other

    def _predicting(self) -> FittedModel:
        """The model, predicting as arguments say that may have changed since the fit."""
        check_is_fitted(self, "model_")
        return self.model_.predicting(
            n_draws=self.n_draws if self.predictive == "sampled" else 0,
            threads=self._threads(),
            engine=ENGINES[getattr(self, "engine", "numpy")],
        )

    def _threads(self) -> int:
        return effective_n_jobs(-1 if self.n_jobs is None else self.n_jobs)

    def _learnt(self) -> FittedModel:
        check_is_fitted(self, "model_")
        return self.model_

    def _explained(self) -> FittedModel:
        """The model with the relevance of its columns, which is kept from then on."""
        if self._learnt().record.relevance is None:
            self.model_ = self.model_.with_relevance(relevance_of(self._predicting()))
        return self.model_

    @property
    def machines_(self) -> tuple[KernelMachine, ...]:
        """The fitted members."""
        return self._learnt().machines

    @property
    def weights_(self) -> Array:
        """How much each member counts before single rows are looked at (M,)."""
        return self._learnt().weights

    @property
    def noise_(self) -> NoiseModel:
        """Noise that the members share."""
        return self._learnt().noise

    @property
    def kinds_(self) -> dict[str, Kind]:
        """Kind of each column, inferred or chosen."""
        return self._learnt().kinds

    @property
    def calibration_(self) -> Calibration | None:
        """What `calibrate` learnt from held-out rows."""
        return self._learnt().calibration

    @property
    def check_(self) -> Check | None:
        """How predictions did on rows held out or left out, if there were enough."""
        return self._learnt().record.check

    @property
    def search_results_(self) -> Any:
        """All candidates that were tried; None with a fixed rank."""
        return self._learnt().record.search_results

    @property
    def noise_results_(self) -> Any:
        """All kinds of noise that were tried; None with a fixed rank."""
        return self._learnt().record.noise_results

    @property
    def distrusted_(self) -> Any:
        """Training rows that a fit with tails distrusts, those of least weight first.

        Their number in the table, counted from 0, ``y``, the ``prediction``, and the ``weight``
        that each has in the fit, where others have about one; at most 200 are listed. Empty where
        the fit has no tails: see ``noise``.
        """
        found = self._learnt().record.distrusted
        return as_table((NONE_DISTRUSTED if found is None else found).table())

    @property
    def log_evidence_(self) -> float:
        """Laplace evidence of the standardised target, averaged over members."""
        return self._learnt().record.log_evidence

    @property
    def noise_precision_(self) -> float:
        """Noise precision in units of y."""
        return self._learnt().record.noise_precision

    @property
    def n_rows_(self) -> int:
        """Rows it was fitted to."""
        return self._learnt().record.n_rows

    @property
    def n_iter_(self) -> int:
        """Steps of the longest run."""
        return self._learnt().record.n_iter

    @property
    def n_dropped_(self) -> int:
        """Posterior directions cut off, over all members."""
        return self._learnt().record.n_dropped

    @property
    def n_pruned_(self) -> int:
        """Weights that their prior precisions switched off, over all members."""
        return self._learnt().record.n_pruned

    @property
    def relevance_(self) -> Array:
        """Share of the variance of y that each column of the table accounts for, (D,).

        Shapley effects of the predictive mean: its variance over training rows, shared out among
        columns and in units of the variance of y. No share is negative, and together they are what
        the predictions explain, at most 1; all are near zero if y is noise. Interactions, and what
        correlated columns have in common, are split between them. So a column may have a share
        because it tells about others, though it has no effect of its own.

        Between pairs of rows, columns take the values of the other row one after the other in
        random orders, and those that are correlated with them follow. With a fixed seed and 16,384
        predictions, shares are good to about one hundredth. Columns of a rotation are reported as
        they are in the table. In the order of ``feature_names_in_``. Computed when first asked
        for.
        """
        return relevance_of(self._explained()).copy()
