"""Training rows that a fit with tails has distrusted."""

from dataclasses import dataclass, replace
from typing import Self, final

import numpy as np
import numpy.typing as npt

from tensorlace._types import Array
from tensorlace.likelihoods.student import DISTRUSTED, row_weights
from tensorlace.machines.ensemble import Ensemble
from tensorlace.scales import Scale

__all__ = ["MOST_LISTED", "NONE_DISTRUSTED", "DistrustedRows", "Judge", "distrusted_of"]

MOST_LISTED = 200
"""Most rows that are listed; all of them are counted. docs/decisions.md, A fit with tails."""


@final
@dataclass(frozen=True, eq=False)
class DistrustedRows:
    """Rows whose targets are so far from what the model says that they hardly count.

    Attributes
    ----------
    n_rows : int
        How many there are; the furthest of them are listed, the furthest first.
    row : (k,) int array
        Numbers in the table, counted from 0.
    y, prediction : (k,) array
        Target and predictive mean.
    weight : (k,) array
        What each counts for in the fit, on average over the members, where other rows count for
        one: below `student.DISTRUSTED`.
    """

    n_rows: int
    row: npt.NDArray[np.int64]
    y: Array
    prediction: Array
    weight: Array

    def __add__(self, other: "DistrustedRows") -> "DistrustedRows":
        """Both, and of their rows those to list."""
        parts = ("row", "y", "prediction", "weight")
        both = [np.concatenate([getattr(self, p), getattr(other, p)]) for p in parts]
        return DistrustedRows(self.n_rows + other.n_rows, *both).listed(MOST_LISTED)

    def listed(self, most: int) -> Self:
        """At most so many, those of least weight first; of equal ones the first in the table."""
        first = np.lexsort((self.row, self.weight))[:most]
        y, prediction, weight = (a[first] for a in (self.y, self.prediction, self.weight))
        return type(self)(self.n_rows, self.row[first], y, prediction, weight)

    def numbered(self, numbers: npt.NDArray[np.intp]) -> Self:
        """The same rows of a larger table, in which they are the rows ``numbers``."""
        return replace(self, row=numbers[self.row].astype(np.int64))

    def seen_through(self, scale: Scale) -> Self:
        """The same rows, of whose targets ``y`` and ``prediction`` are what is observed."""
        y, prediction = scale.forward(self.y), scale.forward(self.prediction)
        return replace(self, y=y, prediction=prediction)

    def table(self) -> dict[str, npt.NDArray[np.float64] | npt.NDArray[np.int64]]:
        """Columns by name."""
        return {
            "row": self.row,
            "y": self.y,
            "prediction": self.prediction,
            "weight": self.weight,
        }


NONE_DISTRUSTED = DistrustedRows(0, np.empty(0, np.int64), np.empty(0), np.empty(0), np.empty(0))
"""No row."""


@final
@dataclass(frozen=True, eq=False)
class Judge:
    """Who distrusts rows: fits with tails.

    Attributes
    ----------
    ensemble : Ensemble
    least : float
        What a row has to count for in them, on average over the members, to be trusted.
    """

    ensemble: Ensemble
    least: float = DISTRUSTED

    def trust(self, X: Array, y: Array) -> Array:
        """What each of n rows counts for, where others count for one; from (n, D) and (n,)."""
        total = np.zeros(len(y))
        for machine, share in zip(self.ensemble.machines, self.ensemble.weights, strict=True):
            fit = machine.fit
            if np.isinf(fit.degrees):
                total += share
                continue
            z = (y - machine.mean(X, engine=self.ensemble.engine)) / machine.target.scale
            total += share * row_weights(fit.beta * z * z, fit.degrees)
        return total


def distrusted_of(
    judge: Judge, X: Array, y: Array, weight: Array | None = None, first_row: int = 0
) -> DistrustedRows:
    """Those of n rows that are distrusted.

    Parameters
    ----------
    judge : Judge
    X : (n, D) array
    y : (n,) array
    weight : (n,) array, optional
        Repetitions; a row without any is none.
    first_row : int
        Number of the first.
    """
    counts_for = judge.trust(X, y)
    low = counts_for < judge.least
    if weight is not None:
        low &= weight > 0.0
    rows = np.flatnonzero(low)
    prediction = judge.ensemble.mean(X[rows]) if rows.size else np.empty(0)
    found = DistrustedRows(
        int(rows.size), rows.astype(np.int64) + first_row, y[rows], prediction, counts_for[rows]
    )
    return found.listed(MOST_LISTED)
