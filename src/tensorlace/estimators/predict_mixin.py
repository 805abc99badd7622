"""What a fitted ensemble of machines can be asked for."""

from abc import ABC
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from tensorlace._types import Array
from tensorlace.columns.encoding import Encoding
from tensorlace.estimators.tables import nameless, numeric_table
from tensorlace.fitting.registry import ENGINES
from tensorlace.machines.ensemble import Ensemble
from tensorlace.machines.machine import KernelMachine
from tensorlace.machines.noise_model import NoiseModel
from tensorlace.predictive.distributions import Distribution
from tensorlace.sources.dask import is_collection, predict_collection

__all__ = ["PredictsDistributions"]


class PredictsDistributions(ABC):
    """The predicting half of an estimator; the fitting half sets what it reads.

    Attributes
    ----------
    machines_ : tuple of KernelMachine
    predictive : {"linearized", "sampled"}
    n_draws : int
    n_jobs : int or None
        Threads that predict; None uses all cores.
    engine : {"numpy", "compiled"}
    """

    machines_: tuple[KernelMachine, ...]
    weights_: Array
    noise_: NoiseModel
    predictive: str
    n_draws: int
    n_jobs: int | None
    engine: str
    _draw_seed: int
    _sharp: bool
    _encoding: Encoding

    def predict(self, X: Any, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Predictive mean (n,), and with ``return_std`` the standard deviation of a new y (n,)."""
        if is_collection(X):
            return self._predict_lazily(X, return_std)
        if return_std:
            dist = self.predict_dist(X)
            return dist.mean, dist.std
        if self.predictive == "sampled":
            return self.predict_dist(X).mean
        return self._ensemble.mean(self._table(X), self._threads())

    def predict_dist(self, X: Any) -> Distribution:
        """Predictive distributions of n rows, a `Normal` or a `Mixture`."""
        table, threads = self._table(X), self._threads()
        if self.predictive == "linearized":
            return self._ensemble.dist(table, threads)
        parts = [
            machine.sampled(
                table, self.n_draws, np.random.default_rng([self._draw_seed, k]), threads
            )
            for k, machine in enumerate(self.machines_)
        ]
        return self._ensemble.mixed(parts, table, threads)

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> Array:
        """Draws of new targets (n, n_samples); a column is one joint draw over all rows."""
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
        linearized = self.predictive == "linearized"
        return self._ensemble.draws(self._table(X), n_samples, rng, linearized, self._threads())

    def extrapolated(self, X: Any) -> npt.NDArray[np.bool_]:
        """Rows (n,) with a value beyond what its column had in training.

        That is a number beyond the range, a category never seen, or a missing value in a column
        that had none. Where all members rotate the columns, it is a number beyond the range of a
        component.
        """
        table = self._table(X)
        known = [m.columns for m in self.machines_ if m.columns.rotation is None]
        columns = known[0] if known else self.machines_[0].columns
        return np.any(columns.outside(table), axis=1)

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that values may be missing or categories."""
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = tags.input_tags.categorical = True
        return tags

    @property
    def _ensemble(self) -> Ensemble:
        check_is_fitted(self)
        engine = ENGINES[getattr(self, "engine", "numpy")]
        return Ensemble(self.machines_, self.weights_, self._sharp, self.noise_, engine)

    def _threads(self) -> int:
        return effective_n_jobs(-1 if self.n_jobs is None else self.n_jobs)

    def _predict_lazily(self, X: Any, return_std: bool) -> Any:
        """Dask collections in, Dask arrays out."""
        check_is_fitted(self)
        plain = nameless(self)

        def block(table: Array) -> Array:
            return np.stack(plain.predict(table, return_std=True), axis=1)

        if not return_std:
            return predict_collection(lambda t: plain.predict(t)[:, None], X, 1)[:, 0]
        both = predict_collection(block, X, 2)
        return both[:, 0], both[:, 1]

    def _table(self, X: Any) -> Array:
        check_is_fitted(self)
        return numeric_table(self, X, reset=False)
