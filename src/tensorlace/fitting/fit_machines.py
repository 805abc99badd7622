"""From a table to fitted kernel machines."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tensorlace._types import Array
from tensorlace.columns.columns import Columns, columns_from_summaries, rows_of_levels
from tensorlace.columns.rotation import Rotation, Scatter
from tensorlace.columns.summaries import (
    LEAF_ROWS,
    ColumnSummary,
    TableSummary,
    canonical_order,
    merge_tables,
    summarise_leaf,
)
from tensorlace.columns.warps import Standardise
from tensorlace.errors import InputError
from tensorlace.fitting.checkpoint import Checkpointer
from tensorlace.fitting.config import Config
from tensorlace.fitting.fit_network import Progress, infer
from tensorlace.fitting.memory_check import FEWEST_BLOCK_ROWS
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
from tensorlace.rows.stop import PassEndedError
from tensorlace.rows.streamed import StreamedRows
from tensorlace.sources import Chunk, Table
from tensorlace.sources.reduction import tree_reduce

__all__ = ["fit_machines"]

JACOBIAN_NUMBERS = 1 << 24
"""Most numbers in the Jacobian (P, n) of a block of rows, 128 MB of them."""


def fit_machines(
    config: Config,
    table: Table,
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
    table : Table
        A weight of a row is its number of repetitions; a row of weight zero is as good as absent.
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

    Raises
    ------
    PassEndedError
        `Config.stop` has ended all members before they were of any use; such ones are left out.
    """
    if table.n_rows < 2:
        raise InputError(f"the table has {table.n_rows} row: at least 2 are needed")
    *summaries, y = table.reduce(_summarise(table), merge_tables, threads=threads)
    target = Standardise.robust(y) if config.tails else Standardise.from_summary(y)
    if not config.likelihood.squared:
        table.reduce(partial(_check_targets, config.likelihood), max, threads=threads)
    if not config.likelihood.standardises:
        target = Standardise.unchanged()
    columns, order, level_rows = _columns(config, table, summaries, threads)
    config = replace(config, level_rows=level_rows)
    config = config.for_table(columns.sizes, table.n_rows, target.scale)
    constants = [column.basis.constant() for column in columns.columns]
    n_weights = config.n_weights(columns.sizes)
    how: dict[str, Any] = {
        "block_rows": _block_rows(config, columns.sizes),
        "threads": threads,
        "memory_budget": memory_budget,
        "engine": config.engine,
        "dtype": config.row_dtype,
        "likelihood": config.likelihood,
    }
    in_memory: Callable[..., MemoryRows] = partial(
        MemoryRows, bases=[c.basis for c in columns.columns], **how
    )
    chunk = table.whole(memory_budget)
    rows: Rows
    if chunk is None:
        rows = StreamedRows(table, columns, target, y.n, **how)
    else:
        u = columns.variables(chunk.X)
        rows = in_memory(u, target(chunk.y), chunk.weight, total_weight=y.n)
    sizes = config.stages(table.n_rows, n_weights, len(table.names))
    stages = _parts(table, columns, target, sizes, in_memory, threads)
    # more steps or another tolerance go on from the same checkpoint; anything else does not
    identity = (table.names, table.n_rows, target, sizes, *config.what_is_fitted())
    with ExitStack() as stack:
        for part in (rows, *stages):
            stack.enter_context(part)

        def member(number: int, seed: int) -> KernelMachine | None:
            rng = np.random.default_rng(seed)
            network = _first(config, constants, order, rng)
            told = progress[number] if progress else None
            saver = Checkpointer.of(checkpoint, number, network.cores, identity)
            start, parts = Start(network), stages
            if begin is not None and begin.network.is_like(network):
                start, parts = Start(begin.network, begin.beta, begin.gamma, begin.degrees), []
            try:
                fit = infer(rows, config, start, told, saver, parts)
            except PassEndedError:
                return None
            gone = network.n_weights - fit.network.n_weights
            machine = KernelMachine(columns, target, fit, n_pruned=gone)
            return machine if config.groups is one_group or config.rough else prune(machine)

        workers = min(threads, len(seeds))
        if workers == 1:  # joblib takes longer to import than a small fit takes
            found = [member(k, seed) for k, seed in enumerate(seeds)]
        else:
            from joblib import Parallel, delayed

            jobs = (delayed(member)(k, seed) for k, seed in enumerate(seeds))
            found = Parallel(n_jobs=workers, prefer="threads", require="sharedmem")(jobs)
    machines = tuple(machine for machine in found if machine is not None)
    if not machines:
        raise PassEndedError
    return machines


def _block_rows(config: Config, sizes: Sequence[int]) -> int:
    """Rows per block: those of the engine, unless a block's Jacobian (P, n) would be too large."""
    widest = max(config.products.widths(sizes, config.rank))
    within = 2 ** int(np.log2(JACOBIAN_NUMBERS / config.n_weights(sizes)))
    return max(FEWEST_BLOCK_ROWS, min(config.engine.block_rows(widest), within))


def _first(
    config: Config, constants: Sequence[Array], order: Sequence[int], rng: np.random.Generator
) -> Network:
    """Where the weights of a member begin: for columns in another order, the same in that order."""
    if config.products.any_order:
        drawn = config.products.initialise([constants[d] for d in order], config.rank, rng)
        network = drawn.with_cores(tuple(drawn.cores[k] for k in np.argsort(order)))
    else:
        network = config.products.initialise(constants, config.rank, rng)
    if not config.additive:
        return network
    return Sum((network, Additive.zero(tuple(map(len, constants)))))


def _columns(
    config: Config, table: Table, summaries: Sequence[ColumnSummary], threads: int
) -> tuple[Columns, list[int], tuple[tuple[float, ...], ...]]:
    """Warps and bases of all columns, after a rotation if there is one, in the order of the table.

    With them come their `canonical_order` and the rows of levels.
    """
    D = len(table.names)
    kinds = config.kinds or (Numeric(),) * D
    order, names, rotation = list(range(D)), table.names, None
    scatter = _scatter(summaries, kinds) if config.rotate else None
    if scatter is not None:
        rotation = Rotation.of(scatter, table.reduce(scatter, Scatter.add, threads=threads), D)
        # a component is a number like the columns that it is made of
        order = [int(rotation.which[0])] * rotation.n_components + rotation.others.tolist()
        parts = (f"component {k}" for k in range(rotation.n_components))
        names = (*parts, *(table.names[d] for d in rotation.others))
        summarise = _summarise(table, names, rotation)
        summaries = table.reduce(summarise, merge_tables, threads=threads)[:-1]
    columns = columns_from_summaries(
        tuple(summaries),
        n_basis=tuple(config.n_basis[d] for d in order),
        bases=tuple(config.bases[d] for d in order),
        warps=tuple(config.warps[d] for d in order),
        names=names,
        kinds=tuple(kinds[d] for d in order),
    )
    return (
        replace(columns, rotation=rotation),
        canonical_order(summaries),
        rows_of_levels(columns, summaries),
    )


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


def _parts(
    table: Table,
    columns: Columns,
    target: Standardise,
    sizes: Sequence[int],
    in_memory: Callable[..., MemoryRows],
    threads: int,
) -> list[Rows]:
    """Growing parts of the rows, gathered in one pass; those without rows are left out."""
    if not sizes:
        return []
    sample = gather(table, columns, target, sizes[-1], threads)
    parts = (sample.part(size, table.n_rows) for size in sizes)
    return [in_memory(part.u, part.y, part.weight) for part in parts if part.y.size]


def _check_targets(likelihood: Likelihood, chunk: Chunk) -> int:
    """Refuse targets that cannot be."""
    likelihood.check(chunk.y if chunk.weight is None else chunk.y[chunk.weight > 0])
    return 0


def _summarise(
    table: Table, names: Sequence[str] | None = None, rotation: Rotation | None = None
) -> Callable[[Chunk], TableSummary]:
    """Function that summarises the columns of a piece, rotated if need be, and its target."""
    names = (*(table.names if names is None else names), table.target)
    return partial(_piece_summary, names, table.missing, rotation)


def _piece_summary(
    names: tuple[str, ...], missing: bool, rotation: Rotation | None, chunk: Chunk
) -> TableSummary:
    X = chunk.X if rotation is None else rotation(chunk.X)
    values, weight = np.column_stack([X, chunk.y]), chunk.weight
    leaves = (
        summarise_leaf(
            values[a : a + LEAF_ROWS],
            None if weight is None else weight[a : a + LEAF_ROWS],
            names,
            missing=missing,
        )
        for a in range(0, len(values), LEAF_ROWS)
    )
    return tree_reduce(leaves, merge_tables)
