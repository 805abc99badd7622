"""A table without the rows that a fit with tails distrusts."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar, final

import numpy as np

from tensorlace.machines.distrusted import Judge
from tensorlace.sources import ArraySource, Chunk, Table

__all__ = ["SoundRows", "present", "sound_chunk", "sound_rows"]

T = TypeVar("T")


@final
class SoundRows(Table):
    """The same rows, of which those that are distrusted have no weight.

    Which these are is a pure function of a piece, so sums have the same bits from any source.

    Parameters
    ----------
    table : Table
    judge : Judge
    """

    def __init__(self, table: Table, judge: Judge) -> None:
        self.table, self.judge = table, judge
        self.names, self.target, self.n_rows = table.names, table.target, table.n_rows
        self.weight, self.missing, self.in_memory = "weight", table.missing, table.in_memory

    def reduce(
        self, work: Callable[[Chunk], T], merge: Callable[[T, T], T], *, threads: int = 1
    ) -> T:
        """Over pieces with other weights."""
        sound = partial(_with_sound, self.judge, work)
        return self.table.reduce(sound, merge, threads=threads)

    def whole(self, memory_budget: int) -> Chunk | None:
        """All rows with other weights."""
        chunk = self.table.whole(memory_budget)
        return None if chunk is None else sound_chunk(self.judge, chunk)


def sound_rows(table: Table, judge: Judge) -> Table:
    """`SoundRows` of a table; of one in memory weights are computed once."""
    chunk = table.whole(0) if table.in_memory else None
    if chunk is None:
        return SoundRows(table, judge)
    sound = sound_chunk(judge, chunk)
    return ArraySource(sound.X, sound.y, sound.weight, table.names, missing=table.missing)


def present(chunk: Chunk) -> Chunk:
    """The chunk with zeros for the features of absent rows, which may lie anywhere."""
    if chunk.weight is None or np.all(chunk.weight):
        return chunk
    return replace(chunk, X=np.where(chunk.weight[:, None] > 0.0, chunk.X, 0.0))


def _with_sound(judge: Judge, work: Callable[[Chunk], T], chunk: Chunk) -> T:
    return work(sound_chunk(judge, chunk))


def sound_chunk(judge: Judge, chunk: Chunk) -> Chunk:
    """Rows of a chunk, of which those that the judge distrusts have no weight."""
    kept = judge.trust(present(chunk).X, chunk.y) >= judge.least
    weight = np.ones(chunk.n_rows) if chunk.weight is None else chunk.weight
    return replace(chunk, weight=np.where(kept, weight, 0.0))
