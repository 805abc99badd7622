"""Where rows live, and the only place where they are summed.

Rows are cut into blocks of a fixed size on the absolute row index, consecutive blocks are summed
into leaves, and leaves are added pairwise in a fixed tree. So the result does not depend, to the
bit, on how many threads did the work.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Self, final

import numpy as np
import numpy.typing as npt

from tensorlace._types import Array
from tensorlace.columns.bases.basis import Basis
from tensorlace.likelihoods.gaussian import GAUSSIAN
from tensorlace.likelihoods.likelihood import Likelihood
from tensorlace.linalg.blas_threads import one_blas_thread
from tensorlace.networks.block import Block
from tensorlace.networks.engine import NUMPY, Engine
from tensorlace.networks.network import Network
from tensorlace.sources.reduction import tree_reduce

__all__ = ["Block", "MemoryRows", "Rows", "Statistic"]

Statistic = tuple[Array, ...]
"""What a kernel makes of one block; statistics of different blocks add up."""

BLOCKS_PER_LEAF = 4
MEMORY_BUDGET = 2 << 30

_LEAST_CURVATURE = 1e-12
"""Least weight of a row in the working least-squares problem; a slope is divided by it."""


class Rows(ABC):
    """A table of warped variables that can be reduced block by block, again and again.

    Attributes
    ----------
    bases : tuple of Basis
        One per column.
    n_rows : int
    total_weight : float
        Number of rows, repetitions counted.
    memory_budget : int
        Bytes that kept features and environments may take each.
    keeps_blocks : bool
        Blocks live from pass to pass, so that something can be kept for each.
    engine : Engine
        What does the arithmetic of a block.
    likelihood : Likelihood
        How targets scatter about the response.
    """

    bases: tuple[Basis, ...]
    n_rows: int
    total_weight: float
    memory_budget: int
    keeps_blocks: bool
    engine: Engine
    likelihood: Likelihood

    @abstractmethod
    def reduce(self, kernel: Callable[[Block], Statistic], *, light: bool = False) -> Statistic:
        """Sum ``kernel(block)`` over all blocks, in an order that nothing but N can change.

        A ``light`` kernel has so little to do per block that handing it to threads would not pay.
        """

    @abstractmethod
    def close(self) -> None:
        """Stop the threads."""

    def at(self, network: Network) -> "Rows":
        """The rows as the least-squares problem that the likelihood is near ``network``.

        Squared loss is that problem already.
        """
        return self if self.likelihood.squared else _WorkingRows(self, network)

    def __enter__(self) -> Self:
        """Hold BLAS to one thread: the threads are ours, and bits stay the same."""
        one_blas_thread.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        """Give BLAS its threads back and stop ours."""
        one_blas_thread.__exit__(*exception)
        self.close()


@final
class _WorkingRows(Rows):
    """Targets ``f + g / h`` and weights ``w h`` from slope g and curvature h at a network."""

    def __init__(self, rows: Rows, network: Network) -> None:
        self.bases, self.n_rows, self.total_weight = rows.bases, rows.n_rows, rows.total_weight
        self.memory_budget, self.keeps_blocks = rows.memory_budget, rows.keeps_blocks
        self.engine, self.likelihood = rows.engine, GAUSSIAN
        self._rows, self._network = rows, network

    def reduce(self, kernel: Callable[[Block], Statistic], *, light: bool = False) -> Statistic:
        """Over blocks with working targets."""
        likelihood, network = self._rows.likelihood, self._network

        def work(block: Block) -> Statistic:
            f = network.response(block.features())
            slope, curvature = likelihood.slope(block.y, f), likelihood.curvature(block.y, f)
            h = np.maximum(curvature, _LEAST_CURVATURE)
            return kernel(block.working(f + slope / h, block.weighted(h)))

        return self._rows.reduce(work, light=light)

    def close(self) -> None:
        """The rows below have the threads."""


@final
class MemoryRows(Rows):
    """Rows in memory.

    Parameters
    ----------
    u : (D, N) array
        Warped variables, one row per column of the table.
    y : (N,) array
        Standardised target.
    weight : (N,) array or None
        Row weights (repetitions).
    bases : sequence of Basis
        One per column.
    block_rows : int
        Rows per block.
    threads : int
        Threads that work on leaves; BLAS is held to one thread each.
    memory_budget : int
        Bytes that kept features may take; above it they are recomputed in every pass.
    total_weight : float, optional
        Sum of the weights, if known.
    engine : Engine
    dtype : dtype
        Of the features.
    likelihood : Likelihood
    """

    keeps_blocks = True

    def __init__(
        self,
        u: Array,
        y: Array,
        weight: Array | None,
        bases: Sequence[Basis],
        *,
        block_rows: int,
        threads: int = 1,
        memory_budget: int = MEMORY_BUDGET,
        total_weight: float | None = None,
        engine: Engine = NUMPY,
        dtype: npt.DTypeLike = np.float64,
        likelihood: Likelihood = GAUSSIAN,
    ) -> None:
        self.likelihood = likelihood
        self.bases = tuple(bases)
        self.n_rows = u.shape[1]
        if total_weight is None:
            total_weight = float(self.n_rows if weight is None else np.sum(weight))
        self.total_weight = total_weight
        self.memory_budget, self.engine = memory_budget, engine
        per_row = np.dtype(dtype).itemsize * sum(b.n + b.closure().shape[2] for b in self.bases)
        keep = per_row * self.n_rows <= memory_budget
        self.blocks = cut_blocks(
            u, y, weight, self.bases, block_rows, keep=keep, dtype=dtype, engine=engine
        )
        threads = max(1, min(threads, -(-len(self.blocks) // BLOCKS_PER_LEAF)))
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def reduce(self, kernel: Callable[[Block], Statistic], *, light: bool = False) -> Statistic:
        """Leaves on threads, their sums in a fixed tree."""
        leaves = leaves_of(self.blocks)
        results: Iterable[Statistic] = (
            (sum_leaf(kernel, leaf) for leaf in leaves)
            if self._pool is None or light
            else self._pool.map(partial(sum_leaf, kernel), leaves)
        )
        return tree_reduce(results, add)

    def close(self) -> None:
        """Stop the threads."""
        if self._pool is not None:
            self._pool.shutdown()


def cut_blocks(
    u: Array,
    y: Array,
    weight: Array | None,
    bases: Sequence[Basis],
    block_rows: int,
    *,
    keep: bool = False,
    first: int = 0,
    dtype: npt.DTypeLike = np.float64,
    engine: Engine = NUMPY,
) -> list[Block]:
    """Blocks of consecutive rows, numbered from ``first``."""
    return [
        Block(
            first + k,
            np.ascontiguousarray(u[:, start : start + block_rows]),
            y[start : start + block_rows],
            None if weight is None else weight[start : start + block_rows],
            bases,
            keep,
            dtype,
            engine,
        )
        for k, start in enumerate(range(0, u.shape[1], block_rows))
    ]


def leaves_of(blocks: Sequence[Block]) -> Iterator[Sequence[Block]]:
    """Runs of blocks that are summed one after the other."""
    for start in range(0, len(blocks), BLOCKS_PER_LEAF):
        yield blocks[start : start + BLOCKS_PER_LEAF]


def sum_leaf(kernel: Callable[[Block], Statistic], leaf: Sequence[Block]) -> Statistic:
    """Statistic of one leaf, in double precision whatever the rows are in."""
    total = _double(kernel(leaf[0]))
    for block in leaf[1:]:
        total = add(total, kernel(block))
    return total


def _double(statistic: Statistic) -> Statistic:
    return tuple(x.astype(np.float64) if x.dtype == np.float32 else x for x in statistic)


def add(a: Statistic, b: Statistic) -> Statistic:
    """Sum of two statistics."""
    return tuple(x + y for x, y in zip(a, b, strict=True))
