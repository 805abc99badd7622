"""Rows on a Dask cluster: what travels is paths, row ranges and cores; sums of Gram size come back.

A task is a pure function of (source, row range, cores). Its row range is a power of two of pieces,
so its sum is a subtree of the one tree that every fit sums by: same bits as on one machine.
"""

import time
from collections.abc import Callable
from typing import Any, TypeVar, final

import numpy as np
from threadpoolctl import threadpool_limits

from tensorlace._types import Array
from tensorlace.errors import ClusterError
from tensorlace.sources.reduction import tree_reduce
from tensorlace.sources.source import RowSource
from tensorlace.sources.table import PIECE_ROWS, Chunk, Table

__all__ = ["DaskTable", "collection_table", "is_collection", "predict_collection"]

T = TypeVar("T")

TASKS_PER_WORKER = 3
"""Tasks that a pass is cut into, per worker: enough for the quick ones to take over."""

ATTEMPTS = 12
"""Times a task may lose its worker before the fit gives up."""

PATIENCE = 30.0
"""Seconds without any worker, or without a scheduler, after which the fit gives up."""

POLL = 2.0
"""Seconds to wait for a result before looking whether there are workers."""


class _Cluster:
    """Submits tasks again until all are done, and notices when nobody is there to do them."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def n_workers(self) -> int:
        """Workers at present; none if the scheduler does not answer."""
        try:
            return len(self._client.scheduler_info(n_workers=-1)["workers"])
        except (OSError, RuntimeError, TimeoutError):
            return 0

    def run(self, task: Callable[..., T], arguments: list[tuple[Any, ...]]) -> list[T]:
        """``task(*arguments[k])`` for all k, in order."""
        from distributed import CancelledError, KilledWorker

        def submit(k: int) -> Any:
            return self._client.submit(task, *arguments[k], pure=False)

        futures = [submit(k) for k in range(len(arguments))]
        results: list[T] = []
        for k in range(len(arguments)):
            attempts, lonely = 0, None
            while True:
                try:
                    results.append(futures[k].result(timeout=POLL))
                    break
                except (TimeoutError, CancelledError, KilledWorker) as error:
                    now = time.monotonic()
                    lonely = None if self.n_workers() else lonely or now
                    if lonely is not None and now - lonely > PATIENCE:
                        raise ClusterError(
                            f"no worker has answered for {PATIENCE:.0f} s: check the scheduler at "
                            f"{self._client.scheduler.addr}; a checkpoint can be resumed"
                        ) from error
                    if isinstance(error, TimeoutError):
                        continue
                    attempts += 1
                    if attempts >= ATTEMPTS:
                        raise ClusterError(
                            f"a task lost its worker {attempts} times: give workers more memory"
                        ) from error
                    futures[k] = submit(k)
            futures[k].release()
        return results


@final
class DaskTable(Table):
    """A source that the workers of a cluster read themselves.

    Parameters
    ----------
    source : RowSource
        With random access; its files must be visible to the workers under the same paths.
    client : distributed.Client
    """

    def __init__(self, source: RowSource, client: Any) -> None:
        if not source.random_access:
            raise ClusterError("a cluster needs rows with random access: use Parquet, CSV or npy")
        self.names, self.target, self.weight = source.names, source.target, source.weight
        self.n_rows, self.missing = source.n_rows, source.missing
        self._source, self._cluster = source, _Cluster(client)

    def reduce(
        self, work: Callable[[Chunk], T], merge: Callable[[T, T], T], *, threads: int = 1
    ) -> T:
        """A few tasks per worker, each a run of pieces."""
        self._source.verify()
        pieces = -(-self.n_rows // PIECE_ROWS)
        wanted = max(1, TASKS_PER_WORKER * max(1, self._cluster.n_workers()))
        run = PIECE_ROWS * 2 ** int(np.ceil(np.log2(max(1.0, pieces / wanted))))
        tasks = [
            (self._source, work, merge, start, min(start + run, self.n_rows))
            for start in range(0, self.n_rows, run)
        ]
        return tree_reduce(self._cluster.run(_read_and_work, tasks), merge)

    def whole(self, memory_budget: int) -> Chunk | None:
        """Nothing: the rows stay with the workers."""
        return None


@final
class DaskCollection(Table):
    """A Dask array or data frame, whose pieces are worked on where they are computed."""

    def __init__(self, X: Any, y: Any, weight: Any, names: tuple[str, ...], client: Any) -> None:
        arrays = [_as_array(a) for a in (X, y, weight) if a is not None]
        self.n_rows = int(arrays[0].shape[0])
        self.names, self.weight = names, None if weight is None else "weight"
        if any(int(a.shape[0]) != self.n_rows for a in arrays):
            sizes = ", ".join(str(int(a.shape[0])) for a in arrays)
            raise ClusterError(f"X, y and weights have different numbers of rows: {sizes}")
        parts = [
            a.rechunk((PIECE_ROWS, *([-1] * (a.ndim - 1)))).to_delayed().ravel() for a in arrays
        ]
        self._pieces = list(zip(*parts, strict=True))
        self._client, self._cluster = client, _Cluster(client)

    def reduce(
        self, work: Callable[[Chunk], T], merge: Callable[[T, T], T], *, threads: int = 1
    ) -> T:
        """A task per piece."""
        tasks = [
            (work, k, *self._client.compute(list(piece))) for k, piece in enumerate(self._pieces)
        ]
        return tree_reduce(self._cluster.run(_work_on, tasks), merge)

    def whole(self, memory_budget: int) -> Chunk | None:
        """Nothing: the rows stay with the workers."""
        return None


def collection_table(X: Any, y: Any, weight: Any) -> DaskCollection:
    """Dask collections as a table, worked on by the current client."""
    from distributed import get_client

    try:
        client = get_client()
    except ValueError as error:
        raise ClusterError(
            "a Dask collection needs a cluster: make one with distributed.Client()"
        ) from error
    columns = getattr(X, "columns", None)
    names = (
        tuple(f"column {k}" for k in range(X.shape[1]))
        if columns is None
        else tuple(str(name) for name in columns)
    )
    return DaskCollection(X, y, weight, names, client)


def predict_collection(predict: Callable[[Array], Array], X: Any, width: int) -> Any:
    """Lazy predictions (n, width) of a Dask collection, block by block."""
    table = _as_array(X)
    table = table.rechunk((table.chunks[0], -1))
    return table.map_blocks(predict, dtype=np.float64, chunks=(table.chunks[0], (width,)))


def is_collection(X: Any) -> bool:
    """Whether ``X`` is a Dask collection."""
    return callable(getattr(X, "__dask_graph__", None)) and X.__dask_graph__() is not None


def _as_array(collection: Any) -> Any:
    frame = hasattr(collection, "to_dask_array")
    return collection.to_dask_array(lengths=True) if frame else collection


def _read_and_work(
    source: RowSource,
    work: Callable[[Chunk], T],
    merge: Callable[[T, T], T],
    start: int,
    stop: int,
) -> T:
    """What a worker does: read its rows, piece by piece, and return their sum."""
    with threadpool_limits(1, user_api="blas"):
        pieces = (
            work(source.read(a, min(a + PIECE_ROWS, stop))) for a in range(start, stop, PIECE_ROWS)
        )
        return tree_reduce(pieces, merge)


def _work_on(work: Callable[[Chunk], T], k: int, X: Any, y: Any, weight: Any = None) -> T:
    with threadpool_limits(1, user_api="blas"):
        rows = [None if a is None else np.asarray(a, dtype=np.float64) for a in (X, y, weight)]
        assert rows[0] is not None
        assert rows[1] is not None
        return work(Chunk(np.ascontiguousarray(rows[0]), rows[1].ravel(), rows[2], k * PIECE_ROWS))
