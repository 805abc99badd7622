"""A table, wherever its rows are: what fits, searches, samples and summaries ask of it.

A table is cut into pieces of `PIECE_ROWS` rows, a pure function is applied to each, and the results
are merged pairwise in a tree that only the number of rows decides. So a sum over rows has the same
bits from memory, from disk and from a cluster, by any number of threads.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar, final

from tensorlace._types import Array

__all__ = ["PIECE_ROWS", "Chunk", "Table"]

T = TypeVar("T")

PIECE_ROWS = 1 << 16
"""Rows per piece: a few megabytes of raw numbers, and enough work to hide the reading."""


@final
@dataclass(frozen=True, eq=False)
class Chunk:
    """Consecutive rows of a table. The arrays may be views: read them, do not write to them.

    Attributes
    ----------
    X : (n, D) array
        Features, float64, C order.
    y : (n,) array
        Target.
    weight : (n,) array or None
        Row weights; a weight is a number of repetitions.
    first_row : int
        Where the chunk starts, counted from row 0 of the whole table.
    """

    X: Array
    y: Array
    weight: Array | None
    first_row: int

    @property
    def n_rows(self) -> int:
        """Number of rows in the chunk."""
        return self.X.shape[0]


class Table(ABC):
    """Rows of features, targets and perhaps weights, over which pure functions are summed.

    Attributes
    ----------
    names : tuple of str
        The D feature columns.
    target, weight : str or None
        Names of the other columns, for messages; ``weight`` is None if rows have no weights.
    n_rows : int
    missing : bool
        Whether a NaN in ``X`` is a missing value; otherwise it is refused.
    in_memory : bool
        Whether the rows are in the memory of this process already.
    """

    names: tuple[str, ...]
    target: str = "y"
    weight: str | None = None
    n_rows: int
    missing: bool = False
    in_memory: bool = False

    @abstractmethod
    def reduce(
        self, work: Callable[[Chunk], T], merge: Callable[[T, T], T], *, threads: int = 1
    ) -> T:
        """Merge ``work(piece)`` over all pieces, in one pass over the rows.

        Parameters
        ----------
        work : callable
            A pure function of a `Chunk`. It may run on a thread here or on another machine, which
            it then has to travel to.
        merge : callable
            Result of two runs of consecutive rows from the result of each.
        threads : int
            Of this process, that read and work; no bit depends on it.
        """

    @abstractmethod
    def whole(self, memory_budget: int) -> Chunk | None:
        """All rows, if they are in memory already or may be read into so many bytes."""
