"""From a table to fitted kernel machines."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np

from tensorlace._types import Array
from tensorlace.columns.columns import Columns, columns_from_summaries
from tensorlace.columns.rotation import Rotation, Scatter
from tensorlace.columns.summaries import (
    LEAF_ROWS,
    ColumnSummary,
    TableSummary,
    merge_tables,
    summarise_leaf,
)
from tensorlace.columns.warps import Standardise
from tensorlace.errors import InputError
from tensorlace.fitting.checkpoint import Checkpointer
from tensorlace.fitting.config import Config
from tensorlace.fitting.fit_network import Progress, infer
from tensorlace.fitting.run import Start
from tensorlace.kinds import Kind, Numeric
from tensorlace.laplace.prior_groups import one_group
from tensorlace.likelihoods.likelihood import Likelihood
from tensorlace.machines.fitted import Fitted
from tensorlace.machines.machine import KernelMachine
from tensorlace.machines.pruning import prune
from tensorlace.networks.additive import Additive
from tensorlace.networks.network import Network
from tensorlace.networks.sum import Sum
from tensorlace.rows.memory import MEMORY_BUDGET, MemoryRows, Rows
from tensorlace.rows.stages import gather
from tensorlace.rows.streamed import StreamedRows
from tensorlace.sources import ArraySource, Chunk, RowSource
from tensorlace.sources.pieces import LocalPieces, Pieces
from tensorlace.sources.reduction import tree_reduce

__all__ = ["fit_machines"]


def fit_machines(
    config: Config,
    table: RowSource | Pieces,
    *,
    seeds: Sequence[int],
    threads: int = 1,
    memory_budget: int = MEMORY_BUDGET,
    checkpoint: Path | None = None,
    progress: Sequence[Progress | None] = (),
    begin: Fitted | None = None,
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
    progress : sequence of callable or None
        Progress callbacks of the members; none by default.
    begin : Fitted, optional
        The same network fitted to part of the rows: begin there if it has the right shape.
    """
    if table.n_rows < 2:
        raise InputError(f"the table has {table.n_rows} row: at least 2 are needed")
    pieces = LocalPieces(table, threads) if isinstance(table, RowSource) else table
    try:
        *summaries, y = pieces.reduce(_Summarise.of(table), merge_tables)
        target = Standardise.from_summary(y)
        if not config.likelihood.squared:
            pieces.reduce(_Check(config.likelihood), max)
        if not config.likelihood.standardises:
            target = Standardise.unchanged()
        columns = _columns(config, table, pieces, summaries)
        settings = config.settings(columns.sizes, table.n_rows, target.scale)
        constants = [column.basis.constant() for column in columns.columns]
        # a block's Jacobian, P × n, should stay below 128 MB
        n_params = config.n_weights(columns.sizes)
        widest = max(config.network.widths(columns.sizes, config.rank))
        block = max(64, min(config.engine.block_rows(widest), 2 ** int(np.log2(2**24 / n_params))))
        how: dict[str, Any] = {
            "block_rows": block,
            "memory_budget": memory_budget,
            "engine": config.engine,
            "dtype": config.row_dtype,
            "likelihood": config.likelihood,
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
                network = _first(config, constants, rng)
                told = progress[number] if progress else None
                saver = Checkpointer.of(checkpoint, number, network.cores, identity)
                start, parts = Start(network), stages
                if begin is not None and begin.network.is_like(network):
                    start, parts = Start(begin.network, begin.beta, begin.gamma), []
                fit = infer(rows, settings, start, told, saver, parts)
                gone = network.n_weights - fit.network.n_weights
                machine = KernelMachine(columns, target, fit, n_pruned=gone)
                return machine if config.groups is one_group or config.rough else prune(machine)

            workers = min(threads, len(seeds))
            if workers == 1:  # joblib takes longer to import than a small fit takes
                return tuple(member(k, seed) for k, seed in enumerate(seeds))
            from joblib import Parallel, delayed

            jobs = (delayed(member)(k, seed) for k, seed in enumerate(seeds))
            return tuple(Parallel(n_jobs=workers, prefer="threads", require="sharedmem")(jobs))
    finally:
        pieces.close()


def _first(config: Config, constants: Sequence[Array], rng: np.random.Generator) -> Network:
    """Where the weights of a member begin."""
    network = config.network.initialise(constants, config.rank, rng)
    if not config.additive:
        return network
    return Sum((network, Additive.zero(tuple(map(len, constants)))))


def _columns(
    config: Config,
    table: RowSource | Pieces,
    pieces: Pieces,
    summaries: Sequence[ColumnSummary],
) -> Columns:
    """Warps and bases of all columns, after a rotation if there is one."""
    D = len(table.names)
    kinds = config.kinds or (Numeric(),) * D
    order, names, rotation = list(range(D)), table.names, None
    scatter = _scatter(summaries, kinds) if config.rotate else None
    if scatter is not None:
        rotation = Rotation.of(scatter, pieces.reduce(scatter, Scatter.add), D)
        # a component is a number like the columns that it is made of
        order = [int(rotation.which[0])] * rotation.n_components + rotation.others.tolist()
        parts = (f"component {k}" for k in range(rotation.n_components))
        names = (*parts, *(table.names[d] for d in rotation.others))
        summarise = _Summarise((*names, table.target), _Summarise.of(table).missing, rotation)
        summaries = pieces.reduce(summarise, merge_tables)[:-1]
    columns = columns_from_summaries(
        tuple(summaries),
        n_basis=tuple(config.n_basis[d] for d in order),
        bases=tuple(config.bases[d] for d in order),
        warps=tuple(config.warps[d] for d in order),
        names=names,
        kinds=tuple(kinds[d] for d in order),
    )
    return replace(columns, rotation=rotation)


def _scatter(summaries: Sequence[ColumnSummary], kinds: Sequence[Kind]) -> Scatter | None:
    """Sums that a rotation of the complete columns of numbers needs; None if there are not two."""
    which = [
        d
        for d, (s, kind) in enumerate(zip(summaries, kinds, strict=True))
        if isinstance(kind, Numeric) and not (s.constant or s.missing)
    ]
    if len(which) < 2:
        return None
    chosen = [summaries[d] for d in which]
    mean = np.array([float(s.frame.backward(np.array([s.mean]))[0]) for s in chosen])
    scale = np.array([np.ldexp(np.sqrt(s.m2 / s.n), s.frame.exponent) for s in chosen])
    return Scatter(np.array(which), mean, scale)


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


class _Check:
    """Refuse targets that cannot be. Picklable."""

    def __init__(self, likelihood: Likelihood) -> None:
        self._likelihood = likelihood

    def __call__(self, chunk: Chunk) -> int:
        self._likelihood.check(chunk.y if chunk.weight is None else chunk.y[chunk.weight > 0])
        return 0


class _Summarise:
    """Summaries of all columns of a piece and, last, of its target. Picklable."""

    def __init__(
        self, names: tuple[str, ...], missing: bool, rotation: Rotation | None = None
    ) -> None:
        self._names, self.missing, self._rotation = names, missing, rotation

    @classmethod
    def of(cls, table: RowSource | Pieces) -> Self:
        missing = isinstance(table, RowSource) and table.missing
        return cls((*table.names, table.target), missing)

    def __call__(self, chunk: Chunk) -> TableSummary:
        X = chunk.X if self._rotation is None else self._rotation(chunk.X)
        table, weight = np.column_stack([X, chunk.y]), chunk.weight
        leaves = (
            summarise_leaf(
                table[a : a + LEAF_ROWS],
                None if weight is None else weight[a : a + LEAF_ROWS],
                self._names,
                missing=self.missing,
            )
            for a in range(0, len(table), LEAF_ROWS)
        )
        return tree_reduce(leaves, merge_tables)
