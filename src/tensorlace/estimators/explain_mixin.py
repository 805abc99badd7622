"""What a fitted ensemble can say about itself: relevance, effects of single columns, a summary."""

from abc import ABC, abstractmethod
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tensorlace._types import Array
from tensorlace.columns.encoding import Encoding
from tensorlace.errors import InputError
from tensorlace.estimators.summary import Overview, overview
from tensorlace.estimators.tables import column_names
from tensorlace.explain.effects import Effects, chosen_values, effects_of
from tensorlace.explain.relevance import sampled_effects, total_effects
from tensorlace.machines.ensemble import Ensemble
from tensorlace.machines.machine import KernelMachine
from tensorlace.sources.reference_rows import Background

__all__ = ["Explains", "training_rows"]


class Explains(ABC):
    """The explaining part of an estimator; the fitting half sets what it reads."""

    machines_: tuple[KernelMachine, ...]
    n_features_in_: int
    _encoding: Encoding
    _background: Background | None
    _relevance: Array | None

    @property
    @abstractmethod
    def _ensemble(self) -> Ensemble: ...

    @abstractmethod
    def _threads(self) -> int: ...

    @property
    def relevance_(self) -> Array:
        """Share of the variance of y that each column of the table accounts for, (D,).

        The part of that variance which the predictive mean loses, on average over training rows,
        when the column is replaced by its own distribution: the total Sobol index, interactions
        included, in units of the variance of y and not of the prediction. So all entries are near
        zero if y is noise, and where columns interact they sum to more than the share explained.
        In closed form, except for rotated columns and for mixtures whose members count differently
        from row to row, where values of some other rows stand for the distribution.
        Columns of a rotation are reported as they are in the table. In the order of
        ``feature_names_in_``.
        """
        if not hasattr(self, "_background"):
            raise AttributeError("relevance_ is there after fit")
        if self._relevance is None:
            rows, ensemble, D = training_rows(self), self._ensemble, self.n_features_in_
            if ensemble.plain:
                self._relevance = total_effects(self.machines_, ensemble.weights, rows, D)
            else:
                mean = partial(ensemble.mean, threads=self._threads())
                scale = self.machines_[0].target.scale
                self._relevance = sampled_effects(mean, rows, D) / scale**2
        return self._relevance.copy()

    def partial_effects(
        self, column: str | int, grid: Any = None, n_points: int = 50, coverage: float = 0.9
    ) -> Effects:
        """Average prediction as one column varies, with a band that says how sure it is.

        The average is over training rows (4096 at most), each given the value in question. The band
        comes from the linearised posterior of the average itself, whatever ``predictive`` is.

        Parameters
        ----------
        column : str or int
            Name or position of a column of the table.
        grid : array-like of shape (k,), optional
            Values as they stand in the table; by default the range of the column, or all
            categories.
        n_points : int, default=50
            Values of the default grid.
        coverage : float, default=0.9
            Probability of the band, for the average function at each value.

        Returns
        -------
        Effects
        """
        check_is_fitted(self)
        d = column_number(column, column_names(self, self.n_features_in_))
        rows = training_rows(self)
        values, raw = chosen_values(self._encoding, rows, d, grid, n_points)
        mean, std, lower, upper = effects_of(
            self._ensemble, rows, d, values, coverage, self._threads()
        )
        name = column_names(self, self.n_features_in_)[d]
        return Effects(name, self._encoding.kinds[d], raw, mean, std, lower, upper, coverage)

    def summary(self) -> Overview:
        """What was chosen and found, to be printed: a page of text for a terminal."""
        check_is_fitted(self)
        return overview(self)


def training_rows(model: Any) -> Background:
    """The training rows that a fitted estimator keeps.

    Raises
    ------
    InputError
        If it comes from a file that was to hold none.
    """
    rows: Background | None = model._background
    if rows is None:
        raise InputError(
            "effects are averages over training rows, and this model was saved with "
            "background=False, so it has none: save it with them, or fit it again"
        )
    return rows


def column_number(column: str | int, names: tuple[str, ...]) -> int:
    """Position of a column that is given by name or position."""
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
