"""How far rows are from what training rows support, and why."""

from collections import Counter
from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from tensorlace._types import Array
from tensorlace.columns.columns import Columns
from tensorlace.columns.warps import FARTHEST

__all__ = ["COMBINATION", "Novelty", "novelty_of"]

COMBINATION = "the combination of values"
"""Cause of a row each of whose values is like those of training."""


@final
@dataclass(frozen=True, eq=False)
class Novelty:
    """How far rows are from what training rows support.

    Attributes
    ----------
    measure : (n,) array
        At most 1 where a row is like those of training. Above: by as many halves of a column's
        range as a value lies beyond it, or the members' epistemic standard deviation in units of
        the largest that a training row had, whichever is more. A category that was never seen, or
        a value missing where none was, counts 2.
    reasons : tuple of n str
        What is unlike, in words: a single value, or else the combination; empty where the measure
        is at most 1.
    causes : tuple of n str
        The column whose value it is, or "the combination of values"; empty where the measure is at
        most 1.
    """

    measure: Array
    reasons: tuple[str, ...]
    causes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.reasons)

    @property
    def unlike(self) -> npt.NDArray[np.bool_]:
        """Rows (n,) whose measure is above 1."""
        return self.measure > 1.0

    @property
    def most_common(self) -> str:
        """The most frequent cause and in how many rows it is; empty if no row is unlike.

        >>> found = Novelty(np.array([2.0, 0.1, 3.0]), ("a ...", "", "a ..."), ("a", "", "a"))
        >>> found.most_common
        'a (2 rows)'
        """
        found = Counter(cause for cause in self.causes if cause).most_common(1)
        return "".join(f"{cause} ({n} row{'s' * (n > 1)})" for cause, n in found)


def novelty_of(columns: Columns, X: Array, ratio: Array) -> Novelty:
    """Novelty of rows: of single values, and of their combination.

    Parameters
    ----------
    columns : Columns
        Of the table, see `Ensemble.columns`.
    X : (n, D) array
        Numbers, as `FittedModel.encode` makes them.
    ratio : (n,) array
        How unsure a model is of the rows, see `Ensemble.dist_and_ratio`.
    """
    names = [c.name for c in columns.columns]
    beyond, outside = columns.beyond(X), columns.outside(X).T
    amounts = np.where(outside, np.where(beyond > 0.0, 1.0 + beyond, 2.0), 0.0)
    worst = np.argmax(amounts, axis=0)
    single = amounts[worst, np.arange(len(X))]
    joint = np.where(np.isnan(ratio), FARTHEST, np.minimum(ratio, FARTHEST))
    reasons, causes = [""] * len(X), [""] * len(X)
    for n in np.flatnonzero(np.maximum(single, joint) > 1.0):
        d = worst[n]
        if single[n] <= 1.0:
            times = _short(joint[n])
            reasons[n] = (
                f"combination of values, of which the model is {times} times as unsure as of any "
                f"training row"
            )
            causes[n] = COMBINATION
            continue
        causes[n] = names[d]
        if beyond[d, n] > 0.0:
            far = _short(0.5 * beyond[d, n])
            reasons[n] = f"{names[d]} is {far} ranges beyond its training range"
        else:
            reasons[n] = f"{names[d]} has a value that no training row had"
    return Novelty(np.maximum(single, joint), tuple(reasons), tuple(causes))


def _short(x: float) -> str:
    """Three digits of a positive number, without an exponent.

    >>> _short(1.23456), _short(123456.0), _short(1e-9)
    ('1.23', '123,456', 'less than 0.001')
    """
    if x < 1e-3:
        return "less than 0.001"
    return f"{x:.3g}" if x < 999.5 else f"{x:,.0f}"
