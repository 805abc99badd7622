"""Where rows live, and the only place where they are summed.

Rows are cut into blocks of a fixed size on the absolute row index, consecutive blocks are summed
into leaves, and leaves are added pairwise in a fixed tree. So the result does not depend, to the
bit, on how many threads did the work.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self, final

import numpy as np
from threadpoolctl import ThreadpoolController

from tensorlace.bases.basis import Array, Basis
from tensorlace.gram import padded

__all__ = ["Block", "Rows", "Statistic"]

Statistic = tuple[Array, ...]
"""What a kernel makes of one block; statistics of different blocks add up."""

BLOCKS_PER_LEAF = 4


@final
class Block:
    """A run of consecutive rows with its features, computed on demand and kept if asked to.

    Attributes
    ----------
    index : int
        Number of the block, counted from the first row of the table.
    y : (n,) array
        Standardised target.
    weight : (n,) array or None
        Row weights; a weight is a number of repetitions.
    """

    def __init__(
        self,
        index: int,
        u: Array,
        y: Array,
        weight: Array | None,
        bases: Sequence[Basis],
        keep: bool,
    ) -> None:
        self.index, self.y, self.weight = index, y, weight
        self._u, self._bases, self._keep = u, bases, keep
        self._kept: dict[tuple[str, int], Array] = {}

    @property
    def n_rows(self) -> int:
        """Number of rows in the block."""
        return self._u.shape[1]

    def phi(self, d: int) -> Array:
        """Features of column d, (I_d, n)."""
        return self._cached("phi", d, lambda: self._bases[d].phi(self._u[d]))

    def psi(self, d: int) -> Array:
        """Product features of column d times the row weights, as `gram.moments` wants them."""
        return self._cached("psi", d, lambda: padded(self.weighted(self._bases[d].psi(self._u[d]))))

    def features(self) -> list[Array]:
        """``phi`` of all columns."""
        return [self.phi(d) for d in range(len(self._bases))]

    def weighted(self, values: Array) -> Array:
        """``values`` (..., n) times the row weights."""
        return values if self.weight is None else values * self.weight

    def _cached(self, kind: str, d: int, make: Callable[[], Array]) -> Array:
        if not self._keep:
            return make()
        value = self._kept.get((kind, d))
        if value is None:
            value = self._kept[kind, d] = make()
        return value


@final
class Rows:
    """An in-memory table of warped variables ready to be reduced block by block.

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
    """

    def __init__(
        self,
        u: Array,
        y: Array,
        weight: Array | None,
        bases: Sequence[Basis],
        *,
        block_rows: int,
        threads: int = 1,
        memory_budget: int = 2 << 30,
    ) -> None:
        self.bases = tuple(bases)
        self.n_rows = u.shape[1]
        self.total_weight = float(self.n_rows if weight is None else np.sum(weight))
        self.memory_budget = memory_budget
        per_row = 8 * sum(b.n + b.closure().shape[2] for b in self.bases)
        keep = per_row * self.n_rows <= memory_budget
        self.blocks = [
            Block(
                k,
                np.ascontiguousarray(u[:, start : start + block_rows]),
                y[start : start + block_rows],
                None if weight is None else weight[start : start + block_rows],
                self.bases,
                keep,
            )
            for k, start in enumerate(range(0, self.n_rows, block_rows))
        ]
        self._threads = max(1, min(threads, -(-len(self.blocks) // BLOCKS_PER_LEAF)))
        self._pool = ThreadPoolExecutor(self._threads) if self._threads > 1 else None
        self._blas = ThreadpoolController()
        self._limit: Any = None

    def __enter__(self) -> Self:
        """Hold BLAS to one thread: the threads are ours, and bits stay the same."""
        self._limit = self._blas.limit(limits=1, user_api="blas")
        self._limit.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give BLAS its threads back and stop ours."""
        if self._limit is not None:
            self._limit.__exit__(kind, value, trace)
        if self._pool is not None:
            self._pool.shutdown()

    def reduce(self, kernel: Callable[[Block], Statistic]) -> Statistic:
        """Sum ``kernel(block)`` over all blocks, in an order that threads cannot change."""
        leaves = (
            self.blocks[start : start + BLOCKS_PER_LEAF]
            for start in range(0, len(self.blocks), BLOCKS_PER_LEAF)
        )

        def leaf(blocks: Sequence[Block]) -> Statistic:
            total = kernel(blocks[0])
            for block in blocks[1:]:
                total = _add(total, kernel(block))
            return total

        results: Iterable[Statistic] = (
            map(leaf, leaves) if self._pool is None else self._pool.map(leaf, leaves)
        )
        return _tree_sum(iter(results))


def _add(a: Statistic, b: Statistic) -> Statistic:
    return tuple(x + y for x, y in zip(a, b, strict=True))


def _tree_sum(leaves: Iterator[Statistic]) -> Statistic:
    """Pairwise sum in a fixed order, with at most log2(leaves) partial sums alive."""
    stack: list[tuple[int, Statistic]] = []
    for leaf in leaves:
        level, total = 0, leaf
        while stack and stack[-1][0] == level:
            total = _add(stack.pop()[1], total)
            level += 1
        stack.append((level, total))
    total = stack.pop()[1]
    while stack:
        total = _add(stack.pop()[1], total)
    return total
