"""Rows that count by how well a network explains them: least squares with Student's tails.

The weight of a row is multiplied by its expected precision ``τ = (ν + 1) / (ν + β r²)`` at a
network that stays the same until somebody makes other rows: a pure function of a block. So all that
is a sum over rows works with tails as it is, in memory, streamed and on a cluster, to the same
bits; and where weights stay, each objective is one of least squares.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from tensorlace._types import Array
from tensorlace.likelihoods.gaussian import GAUSSIAN
from tensorlace.likelihoods.student import log_density, row_weights, size_counts
from tensorlace.networks.network import Network
from tensorlace.rows.memory import Block, Rows, Statistic

__all__ = ["ReweightedRows", "Tails", "counts_of_sizes", "log_likelihood"]


@final
@dataclass(frozen=True)
class Tails:
    """What the weights of rows follow from.

    Attributes
    ----------
    network : Network
        Whose residuals they are computed from.
    precision : float
        β of the core of Student's t.
    degrees : float
        ν.
    """

    network: Network
    precision: float
    degrees: float

    def weighted(self, block: Block) -> Block:
        """The block with other weights; features are shared."""
        squares = _squares(block, self.network, self.precision)
        return block.working(block.y, block.weighted(row_weights(squares, self.degrees)))


@final
class ReweightedRows(Rows):
    """Rows whose weights are multiplied by what tails say of each.

    Parameters
    ----------
    rows : Rows
        With squared loss.
    tails : Tails
    """

    def __init__(self, rows: Rows, tails: Tails) -> None:
        self.bases, self.n_rows, self.total_weight = rows.bases, rows.n_rows, rows.total_weight
        self.memory_budget, self.keeps_blocks = rows.memory_budget, rows.keeps_blocks
        self.engine, self.likelihood = rows.engine, GAUSSIAN
        self.tails, self._rows = tails, rows
        self._blocks: dict[int, Block] | None = {} if rows.keeps_blocks else None

    def reduce(self, kernel: Callable[[Block], Statistic], *, light: bool = False) -> Statistic:
        """Over blocks with other weights, which are kept where blocks are."""
        tails, blocks = self.tails, self._blocks

        def work(block: Block) -> Statistic:
            if blocks is None:
                return kernel(tails.weighted(block))
            known = blocks.get(block.index)
            if known is None:
                known = blocks[block.index] = tails.weighted(block)
            return kernel(known)

        return self._rows.reduce(work, light=light)

    def close(self) -> None:
        """The rows below have the threads."""


def counts_of_sizes(rows: Rows, network: Network, precision: float) -> Array:
    """How many residuals have which size, see `student.size_counts`, in one pass."""

    def kernel(block: Block) -> Statistic:
        return (size_counts(_squares(block, network, precision), block.weight),)

    return rows.reduce(kernel)[0]


def log_likelihood(rows: Rows, tails: Tails) -> float:
    """Logarithm of the density of all targets under Student's t, in one pass."""

    def kernel(block: Block) -> Statistic:
        density = log_density(_squares(block, tails.network, tails.precision), tails.degrees)
        return (np.array(block.weighted(density).sum()),)

    (total,) = rows.reduce(kernel)
    return float(total) + 0.5 * rows.total_weight * float(np.log(tails.precision))


def _squares(block: Block, network: Network, precision: float) -> Array:
    """Squared residuals (n,) in units of the core."""
    residual = block.y - network.response(block.features())
    return precision * (residual * residual)
