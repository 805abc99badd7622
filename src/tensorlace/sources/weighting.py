"""What weights of rows mean: numbers of repetitions, or shares that only count beside each other.

Sums over rows know repetitions only: a table whose weights sum to n says as much as n rows. Weights
that were normalised, or are inverse variances in some unit, would say far too little or too much.
Scaled to a mean of one they say as much as there are rows.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar, final

import numpy as np

from tensorlace._types import Array
from tensorlace.errors import InputError
from tensorlace.sources.table import Chunk, Table

__all__ = [
    "MEANINGS",
    "USUAL_MEAN",
    "RescaledTable",
    "WeightSums",
    "refuse_impossible",
    "weight_sums",
]

T = TypeVar("T")

USUAL_MEAN = (0.5, 2.0)
"""Means of weights that are not whole numbers within which "auto" takes them for repetitions.
decisions.md#weights-of-rows"""

FEWEST_REPETITIONS = 2.0
"""Least sum of weights that are repetitions: a fit needs two rows."""


@final
@dataclass(frozen=True)
class WeightSums:
    """What is to be known of the weights of a table.

    Attributes
    ----------
    n_rows : int
        Rows of positive weight.
    total : float
    whole : bool
        All weights are whole numbers.
    """

    n_rows: int
    total: float
    whole: bool

    @classmethod
    def of(cls, weight: Array, first_row: int = 0) -> "WeightSums":
        """Sums of weights (n,) of the rows from ``first_row`` on.

        >>> WeightSums.of(np.array([0.0, 1.0, 3.0]))
        WeightSums(n_rows=2, total=4.0, whole=True)
        """
        refuse_impossible(weight, first_row)
        whole = bool(np.all(weight == np.floor(weight)))
        with np.errstate(over="ignore"):
            return cls(int(np.count_nonzero(weight)), float(weight.sum()), whole)

    def __add__(self, other: "WeightSums") -> "WeightSums":
        """Sums of both tables together."""
        return WeightSums(
            self.n_rows + other.n_rows, self.total + other.total, self.whole and other.whole
        )

    @property
    def factor(self) -> float:
        """On the weights, for a mean of one over the rows of positive weight."""
        with np.errstate(all="ignore"):
            factor = float(np.divide(self.n_rows, self.total))
        if not 0.0 < factor < np.inf:
            raise InputError(
                f"sample_weight sums to {self.total:g}: the sum must be above 0 and finite"
            )
        return factor


def _repetitions(sums: WeightSums) -> float:
    if sums.total < FEWEST_REPETITIONS:
        raise InputError(
            f"sample_weight sums to {sums.total:g} repetitions, fewer than "
            f"{FEWEST_REPETITIONS:g}: give weights='relative' if it has other units"
        )
    return 1.0


def _relative(sums: WeightSums) -> float:
    return sums.factor


def _usual(sums: WeightSums) -> float:
    low, high = USUAL_MEAN
    factor = sums.factor
    return 1.0 if sums.whole or low <= 1.0 / factor <= high else factor


MEANINGS: Mapping[str, Callable[[WeightSums], float]] = {
    "auto": _usual,
    "repetitions": _repetitions,
    "relative": _relative,
}
"""Factor on the weights by what they mean."""


def refuse_impossible(weight: Array, first_row: int = 0) -> None:
    """Refuse weights (n,) of the rows from ``first_row`` on: missing, infinite or negative ones."""
    wrong = ~(weight >= 0.0) | np.isinf(weight)
    if np.any(wrong):
        row = int(np.argmax(wrong))
        raise InputError(
            f"sample_weight is {weight[row]:g} in row {first_row + row}: a weight is a number of "
            f"repetitions, give 0 or more"
        )


def weight_sums(table: Table, threads: int = 1) -> WeightSums:
    """Sums of the weights of a table that has some, in one pass that looks at nothing else."""
    return table.reduce(_sums, WeightSums.__add__, threads=threads)


def _sums(chunk: Chunk) -> WeightSums:
    assert chunk.weight is not None
    return WeightSums.of(chunk.weight, chunk.first_row)


@final
class RescaledTable(Table):
    """A table with weights, each times the same factor.

    Parameters
    ----------
    table : Table
    factor : float
    """

    def __init__(self, table: Table, factor: float) -> None:
        self.names, self.target, self.weight = table.names, table.target, table.weight
        self.n_rows, self.missing, self.in_memory = table.n_rows, table.missing, table.in_memory
        self._table, self._factor = table, factor

    def reduce(
        self, work: Callable[[Chunk], T], merge: Callable[[T, T], T], *, threads: int = 1
    ) -> T:
        """As the table itself does it, wherever its pieces are."""
        rescaled = partial(_on_rescaled, work, self._factor)
        return self._table.reduce(rescaled, merge, threads=threads)

    def whole(self, memory_budget: int) -> Chunk | None:
        """All rows, where the table gives them."""
        chunk = self._table.whole(memory_budget)
        return None if chunk is None else _rescaled(chunk, self._factor)


def _rescaled(chunk: Chunk, factor: float) -> Chunk:
    assert chunk.weight is not None
    return Chunk(chunk.X, chunk.y, factor * chunk.weight, chunk.first_row)


def _on_rescaled(work: Callable[[Chunk], T], factor: float, chunk: Chunk) -> T:
    return work(_rescaled(chunk, factor))
