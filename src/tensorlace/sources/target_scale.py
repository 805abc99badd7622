"""A table whose target is measured on another scale."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar, final

from tensorlace.scales import Scale
from tensorlace.sources.table import Chunk, Table

__all__ = ["ScaledTarget"]

T = TypeVar("T")


@final
class ScaledTarget(Table):
    """A table with the target u of ``y = scale.forward(u)`` in place of y.

    Parameters
    ----------
    table : Table
    scale : Scale
        A target that it cannot have is refused.
    """

    def __init__(self, table: Table, scale: Scale) -> None:
        self.names, self.target, self.weight = table.names, table.target, table.weight
        self.n_rows, self.missing, self.in_memory = table.n_rows, table.missing, table.in_memory
        self._table, self._scale = table, scale

    def reduce(
        self, work: Callable[[Chunk], T], merge: Callable[[T, T], T], *, threads: int = 1
    ) -> T:
        """As the table itself does it, wherever its pieces are."""
        return self._table.reduce(partial(_on_scaled, work, self._scale), merge, threads=threads)

    def whole(self, memory_budget: int) -> Chunk | None:
        """All rows, where the table gives them."""
        chunk = self._table.whole(memory_budget)
        return None if chunk is None else _scaled(chunk, self._scale)


def _scaled(chunk: Chunk, scale: Scale) -> Chunk:
    scale.refuse_outside(chunk.y)
    return Chunk(chunk.X, scale.inverse(chunk.y), chunk.weight, chunk.first_row)


def _on_scaled(work: Callable[[Chunk], T], scale: Scale, chunk: Chunk) -> T:
    return work(_scaled(chunk, scale))
