"""A part of the rows that depends on nothing but row numbers: where a fit of many rows begins.

A row belongs to a part of ``size`` out of N rows if the hash of its number is below ``size / N`` of
all hashes. So parts are nested, and the same for a table in memory, on disk or on a cluster,
however it is cut.
"""

from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np
import numpy.typing as npt

from tensorlace._types import Array
from tensorlace.columns.columns import Columns
from tensorlace.columns.warps import Standardise
from tensorlace.sources.sampling import Hashes, hashes, largest_hash
from tensorlace.sources.table import Chunk, Table

__all__ = ["Sample", "gather", "stages"]

FIRST_ROWS = 10_000
"""Rows of the first stage where weights are few: enough for steps that take no time."""


ROWS_PER_WEIGHT = 10
"""Rows of the first stage per weight: fewer would leave weights to the prior that all rows
determine."""


GROWTH = 8.0
"""Factor between stages, about: a step on one costs an eighth of a step on the next."""


MOST_NUMBERS = 1 << 22
"""Numbers in the largest part: it has to fit next to a table that does not."""


def stages(
    n_rows: int,
    n_weights: int,
    n_columns: int,
    *,
    first_rows: int = FIRST_ROWS,
    rows_per_weight: int = ROWS_PER_WEIGHT,
    most_numbers: int = MOST_NUMBERS,
) -> tuple[int, ...]:
    """Sizes of the growing parts, in geometric steps up to the whole; () if it is too small.

    >>> stages(1_000_000, 500, 8)
    (10000, 100000)
    """
    first = max(first_rows, rows_per_weight * n_weights)
    count = round(np.log(max(n_rows / first, 1.0)) / np.log(GROWTH))
    sizes = (round(first * (n_rows / first) ** (k / count)) for k in range(count))
    return tuple(size for size in sizes if size * (n_columns + 2) <= most_numbers)


@final
@dataclass(frozen=True, eq=False)
class Sample:
    """Some rows of a table, in the order of the table.

    Attributes
    ----------
    u : (D, n) array
        Warped variables.
    y : (n,) array
        Standardised target.
    weight : (n,) array or None
        Row weights; rows of weight zero are left out.
    key : (n,) array
        Hashes of the row numbers.
    """

    u: Array
    y: Array
    weight: Array | None
    key: Hashes

    def part(self, size: int, n_rows: int) -> "Sample":
        """The part of about ``size`` out of ``n_rows`` rows."""
        return self[self.key <= largest_hash(size, n_rows)]

    def __getitem__(self, chosen: npt.NDArray[np.bool_]) -> "Sample":
        """Rows where ``chosen``."""
        weight = None if self.weight is None else self.weight[chosen]
        return Sample(self.u[:, chosen], self.y[chosen], weight, self.key[chosen])


def gather(
    table: Table, columns: Columns, target: Standardise, size: int, threads: int = 1
) -> Sample:
    """About ``size`` rows of the table, in one pass."""
    choose = partial(_choose, columns, target, largest_hash(size, table.n_rows))
    return table.reduce(choose, _concatenate, threads=threads)


def _choose(columns: Columns, target: Standardise, largest: np.uint64, chunk: Chunk) -> Sample:
    """Rows whose hashes are at most ``largest`` and that have weight."""
    key = hashes(chunk.first_row, chunk.n_rows)
    chosen, weight = key <= largest, chunk.weight
    if weight is not None:
        chosen &= weight > 0.0
        weight = weight[chosen]
    u = columns.variables(np.ascontiguousarray(chunk.X[chosen]))
    return Sample(u, target(chunk.y[chosen]), weight, key[chosen])


def _concatenate(a: Sample, b: Sample) -> Sample:
    weight = None if a.weight is None or b.weight is None else np.append(a.weight, b.weight)
    return Sample(
        np.concatenate([a.u, b.u], axis=1),
        np.concatenate([a.y, b.y]),
        weight,
        np.concatenate([a.key, b.key]),
    )
