"""From a numeric table to fitted kernel machines."""

from collections.abc import Callable, Sequence

import numpy as np
from joblib import Parallel, delayed

from tensorlace.bases.basis import Array
from tensorlace.columns import fit_columns
from tensorlace.config import Config
from tensorlace.gram import block_rows
from tensorlace.inference import Progress, infer
from tensorlace.machines import KernelMachine
from tensorlace.networks import initialise
from tensorlace.rows import MemoryRows
from tensorlace.warps import Standardise

__all__ = ["fit_machines"]


def fit_machines(
    config: Config,
    X: Array,
    y: Array,
    weight: Array | None,
    *,
    names: Sequence[str],
    seeds: Sequence[int],
    threads: int = 1,
    progress: Callable[[int], Progress | None] = lambda member: None,
) -> tuple[KernelMachine, ...]:
    """Fit one machine per seed on the same columns.

    Parameters
    ----------
    config : Config
    X : (N, D) array
    y : (N,) array
    weight : (N,) array or None
        Row weights (repetitions). Rows of weight zero are as good as absent.
    names : D strings
        Column names, for error messages.
    seeds : sequence of int
        One per member: the only randomness is where its cores start.
    threads : int
        Members, and row blocks within a member, share this many threads; no bit depends on it.
    progress : callable
        Gives the progress callback of a member.
    """
    if weight is not None:
        present = weight > 0
        X, y, weight = X[present], y[present], weight[present]
        if np.all(weight == 1.0):
            weight = None
    target = Standardise.fit(y, weight)
    columns = fit_columns(
        X,
        weight,
        n_basis=config.n_basis,
        bases=config.bases,
        warps=config.warps,
        names=tuple(names),
    )
    settings = config.settings(columns.sizes, len(y), target.scale)
    bases = [column.basis for column in columns.columns]
    constants = [basis.constant() for basis in bases]
    n_params = config.rank * sum(columns.sizes)
    # a block's Jacobian, P × n, should stay below 128 MB
    block = max(64, min(block_rows(config.rank), 2 ** int(np.log2(2**24 / n_params))))
    with MemoryRows(
        columns.variables(X), target(y), weight, bases, block_rows=block, threads=threads
    ) as rows:

        def member(number: int, seed: int) -> KernelMachine:
            cores = initialise(constants, config.rank, np.random.default_rng(seed))
            return KernelMachine(columns, target, infer(rows, settings, cores, progress(number)))

        jobs = (delayed(member)(k, seed) for k, seed in enumerate(seeds))
        workers = min(threads, len(seeds))
        return tuple(Parallel(n_jobs=workers, prefer="threads", require="sharedmem")(jobs))
