"""From a source of rows to fitted kernel machines."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from tensorlace.checkpoints import Checkpointer
from tensorlace.columns import Columns, columns_from_summaries
from tensorlace.config import Config
from tensorlace.errors import InputError
from tensorlace.gram import block_rows
from tensorlace.inference import Progress, infer
from tensorlace.machines import KernelMachine
from tensorlace.networks import initialise
from tensorlace.rows import MEMORY_BUDGET, MemoryRows, Rows
from tensorlace.sources import ArraySource, Chunk, RowSource
from tensorlace.streaming import PIECE_ROWS, StreamedRows, ordered_map
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
    source: RowSource,
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
    source : RowSource
        A weight of a row is its number of repetitions; a row of weight zero is as good as absent.
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
    if source.n_rows < 2:
        raise InputError(f"the table has {source.n_rows} row: at least 2 are needed")
    *table, y = _summarise(source, threads)
    target = Standardise.from_summary(y)
    columns = columns_from_summaries(
        tuple(table),
        n_basis=config.n_basis,
        bases=config.bases,
        warps=config.warps,
        names=source.names,
    )
    settings = config.settings(columns.sizes, source.n_rows, target.scale)
    constants = [column.basis.constant() for column in columns.columns]
    # a block's Jacobian, P × n, should stay below 128 MB
    n_params = config.rank * sum(columns.sizes)
    block = max(64, min(block_rows(config.rank), 2 ** int(np.log2(2**24 / n_params))))
    with _rows(source, columns, target, y.n, block, threads, memory_budget) as rows:

        def member(number: int, seed: int) -> KernelMachine:
            cores = initialise(constants, config.rank, np.random.default_rng(seed))
            saver = Checkpointer.of(checkpoint, number, (source.names, source.n_rows, cores))
            fit = infer(rows, settings, cores, progress(number), saver)
            return KernelMachine(columns, target, fit)

        jobs = (delayed(member)(k, seed) for k, seed in enumerate(seeds))
        workers = min(threads, len(seeds))
        return tuple(Parallel(n_jobs=workers, prefer="threads", require="sharedmem")(jobs))


def _rows(
    source: RowSource,
    columns: Columns,
    target: Standardise,
    total_weight: float,
    block: int,
    threads: int,
    memory_budget: int,
) -> Rows:
    """Rows in memory if they are there already or fit the budget, else streamed."""
    bytes_in_memory = 3 * 8 * source.n_rows * (len(source.names) + 2)
    weighted = source.weight is not None  # absent rows are the business of the stream
    if isinstance(source, ArraySource) or (not weighted and bytes_in_memory <= memory_budget):
        chunk = next(source.chunks(source.n_rows))
        return MemoryRows(
            columns.variables(chunk.X),
            target(chunk.y),
            chunk.weight,
            [column.basis for column in columns.columns],
            block_rows=block,
            threads=threads,
            memory_budget=memory_budget,
            total_weight=total_weight,
        )
    return StreamedRows(
        source,
        columns,
        target,
        total_weight,
        block_rows=block,
        threads=threads,
        memory_budget=memory_budget,
    )


def _summarise(source: RowSource, threads: int) -> TableSummary:
    """Summaries of all columns and, last, of the target, in one pass."""
    names = (*source.names, source.target)

    def piece(chunk: Chunk) -> TableSummary:
        table = np.column_stack([chunk.X, chunk.y])
        starts = range(0, len(table), LEAF_ROWS)
        return tree_reduce(
            (
                summarise_leaf(
                    table[a : a + LEAF_ROWS],
                    None if chunk.weight is None else chunk.weight[a : a + LEAF_ROWS],
                    names,
                )
                for a in starts
            ),
            merge_tables,
        )

    with ThreadPoolExecutor(threads) as pool:
        pieces = ordered_map(pool, piece, source.chunks(PIECE_ROWS), 2 * threads)
        return tree_reduce(pieces, merge_tables)
