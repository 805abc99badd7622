"""Predictions of an estimator that holds a fitted model."""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from tensorlace._types import Array
from tensorlace.estimators.fitted_attributes import HasFittedAttributes
from tensorlace.estimators.tables import nameless, numeric_table
from tensorlace.machines.novelty import Novelty
from tensorlace.predictive.distributions import Distribution
from tensorlace.sources.dask import is_collection, predict_collection

__all__ = ["PredictsDistributions"]


class PredictsDistributions(HasFittedAttributes):
    """Means, distributions and draws for the rows of a table in any form."""

    def predict(self, X: Any, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Predictive mean (n,), and with ``return_std`` the standard deviation of a new y (n,)."""
        if is_collection(X):
            return self._predict_lazily(X, return_std)
        if return_std:
            dist = self.predict_dist(X)
            return dist.mean, dist.std
        return self._predicting().mean(self._table(X))

    def predict_dist(self, X: Any) -> Distribution:
        """Predictive distributions of n rows, a `Normal` or a `Mixture`."""
        return self._predicting().dist(self._table(X))

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> Array:
        """Draws of new targets (n, n_samples); a column is one joint draw over all rows."""
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
        return self._predicting().draws(self._table(X), n_samples, rng)

    def extrapolated(self, X: Any) -> npt.NDArray[np.bool_]:
        """Rows (n,) unlike those of training: where the measure of `novelty` is above 1.

        That is a number beyond the range of its column, a category never seen, a missing value in a
        column that had none, or a combination of values that the model knows less of than of any
        training row; `novelty` says which. Where all members rotate the columns, ranges are those
        of the components. A model with ``extrapolation="plain"`` looks at single values only. It
        takes as long as `predict_dist`.
        """
        return self._predicting().extrapolated(self._table(X))

    def novelty(self, X: Any) -> Novelty:
        """How far rows are from what training rows support, and why.

        A measure (n,), above 1 for rows unlike those of training: for values beyond the range of
        a column, and for combinations of values that the model knows less of than of any training
        row. With each comes the reason in words, see `Novelty`.
        """
        return self._predicting().novelty(self._table(X))

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that values may be missing or categories."""
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = tags.input_tags.categorical = True
        return tags

    def _predict_lazily(self, X: Any, return_std: bool) -> Any:
        """Dask collections in, Dask arrays out."""
        check_is_fitted(self, "model_")
        plain = nameless(self)

        def block(table: Array) -> Array:
            return np.stack(plain.predict(table, return_std=True), axis=1)

        if not return_std:
            return predict_collection(lambda t: plain.predict(t)[:, None], X, 1)[:, 0]
        both = predict_collection(block, X, 2)
        return both[:, 0], both[:, 1]

    def _table(self, X: Any) -> Array:
        check_is_fitted(self, "model_")
        return numeric_table(self, X, self.model_.encoding)
