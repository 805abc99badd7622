"""From a table to fitted kernel machines."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed

from tensorlace.checkpoints import Checkpointer
from tensorlace.columns import Columns, columns_from_summaries
from tensorlace.config import Config
from tensorlace.errors import InputError
from tensorlace.inference import Progress, infer
from tensorlace.machines import KernelMachine
from tensorlace.networks import initialise
from tensorlace.rows import MEMORY_BUDGET, MemoryRows, Rows
from tensorlace.sources import ArraySource, Chunk, RowSource
from tensorlace.streaming import LocalPieces, Pieces, StreamedRows
from tensorlace.subsample import gather
from tensorlace.summaries import (
    LEAF_ROWS,
    TableSummary,
    merge_tables,
    summarise_leaf,
    tree_reduce,
)
from tensorlace.warps import Standardise

__all__ = ["fit_machines"]


def fit_machines(
    config: Config,
    table: RowSource | Pieces,
    *,
    seeds: Sequence[int],
    threads: int = 1,
    memory_budget: int = MEMORY_BUDGET,
    checkpoint: Path | None = None,
    progress: Callable[[int], Progress | None] = lambda member: None,
) -> tuple[KernelMachine, ...]:
    """Fit one machine per seed on the same columns.

    Parameters
    ----------
    config : Config
    table : RowSource or Pieces
        A source to read here, or pieces that are worked on elsewhere. A weight of a row is its
        number of repetitions; a row of weight zero is as good as absent.
    seeds : sequence of int
        One per member: the only randomness is where its cores start.
    threads : int
        Members, and row blocks within a member, share this many threads; no bit depends on it.
    memory_budget : int
        Bytes. A table on disk that fits is read once; a larger one is read in every pass.
    checkpoint : Path, optional
        Written after every step, one file per member; a fit that finds it goes on from there.
    progress : callable
        Gives the progress callback of a member.
    """
    if table.n_rows < 2:
        raise InputError(f"the table has {table.n_rows} row: at least 2 are needed")
    pieces = LocalPieces(table, threads) if isinstance(table, RowSource) else table
    try:
        *summaries, y = pieces.reduce(_Summarise.of(table), merge_tables)
        target = Standardise.from_summary(y)
        columns = columns_from_summaries(
            tuple(summaries),
            n_basis=config.n_basis,
            bases=config.bases,
            warps=config.warps,
            names=table.names,
            kinds=config.kinds,
        )
        settings = config.settings(columns.sizes, table.n_rows, target.scale)
        constants = [column.basis.constant() for column in columns.columns]
        # a block's Jacobian, P × n, should stay below 128 MB
        n_params = (config.rank + config.additive) * sum(columns.sizes)
        block = max(
            64, min(config.engine.block_rows(config.rank), 2 ** int(np.log2(2**24 / n_params)))
        )
        how: dict[str, Any] = {
            "block_rows": block,
            "memory_budget": memory_budget,
            "engine": config.engine,
            "dtype": config.row_dtype,
        }
        in_memory = partial(
            MemoryRows, bases=[c.basis for c in columns.columns], threads=threads, **how
        )
        rows = _whole(table, columns, target, y.n, memory_budget, in_memory)
        if rows is None:
            rows = StreamedRows(pieces, columns, target, y.n, **how)
        sizes = config.stages(table.n_rows, n_params, len(table.names))
        stages = _parts(pieces, columns, target, sizes, in_memory)
        # more steps or another tolerance go on from the same checkpoint; anything else does not
        identity = (table.names, table.n_rows, target, sizes, *settings.what_is_fitted())
        with ExitStack() as stack:
            for part in (rows, *stages):
                stack.enter_context(part)

            def member(number: int, seed: int) -> KernelMachine:
                rng = np.random.default_rng(seed)
                cores = initialise(constants, config.rank, rng, additive=config.additive)
                saver = Checkpointer.of(checkpoint, number, cores, identity)
                fit = infer(rows, settings, cores, progress(number), saver, stages)
                return KernelMachine(columns, target, fit)

            jobs = (delayed(member)(k, seed) for k, seed in enumerate(seeds))
            workers = min(threads, len(seeds))
            return tuple(Parallel(n_jobs=workers, prefer="threads", require="sharedmem")(jobs))
    finally:
        pieces.close()


def _whole(
    table: RowSource | Pieces,
    columns: Columns,
    target: Standardise,
    total_weight: float,
    memory_budget: int,
    in_memory: Callable[..., MemoryRows],
) -> Rows | None:
    """Rows in memory if they are there already or fit the budget."""
    if isinstance(table, Pieces):
        return None
    bytes_in_memory = 3 * 8 * table.n_rows * (len(table.names) + 2)
    fits = bytes_in_memory <= memory_budget and table.weight is None
    if not (fits or isinstance(table, ArraySource)):  # absent rows are the business of the stream
        return None
    chunk = next(table.chunks(table.n_rows))
    u = columns.variables(chunk.X)
    return in_memory(u, target(chunk.y), chunk.weight, total_weight=total_weight)


def _parts(
    pieces: Pieces,
    columns: Columns,
    target: Standardise,
    sizes: Sequence[int],
    in_memory: Callable[..., MemoryRows],
) -> list[Rows]:
    """Growing parts of the rows, gathered in one pass; those without rows are left out."""
    if not sizes:
        return []
    sample = gather(pieces, columns, target, sizes[-1])
    parts = (sample.part(size, pieces.n_rows) for size in sizes)
    return [in_memory(part.u, part.y, part.weight) for part in parts if part.y.size]


class _Summarise:
    """Summaries of all columns of a piece and, last, of its target. Picklable."""

    def __init__(self, names: tuple[str, ...], missing: bool) -> None:
        self._names, self._missing = names, missing

    @classmethod
    def of(cls, table: RowSource | Pieces) -> Self:
        missing = isinstance(table, RowSource) and table.missing
        return cls((*table.names, table.target), missing)

    def __call__(self, chunk: Chunk) -> TableSummary:
        table, weight = np.column_stack([chunk.X, chunk.y]), chunk.weight
        leaves = (
            summarise_leaf(
                table[a : a + LEAF_ROWS],
                None if weight is None else weight[a : a + LEAF_ROWS],
                self._names,
                missing=self._missing,
            )
            for a in range(0, len(table), LEAF_ROWS)
        )
        return tree_reduce(leaves, merge_tables)
