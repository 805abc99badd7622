"""A sum over parts in a fixed binary tree, so that its bits depend on nothing else."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from tensorlace.errors import InputError

__all__ = ["tree_reduce"]

T = TypeVar("T")


def tree_reduce(items: Iterable[T], merge: Callable[[T, T], T]) -> T:
    """Merge items pairwise in a fixed order, with at most log2(items) partial results alive.

    Runs of ``2^k`` items (the last one may be shorter) may be reduced first, each by itself, and
    their results then in the same way: this is the same tree.
    """
    stack: list[tuple[int, T]] = []
    for total in items:
        level = 0
        while stack and stack[-1][0] == level:
            total = merge(stack.pop()[1], total)
            level += 1
        stack.append((level, total))
    if not stack:
        raise InputError("nothing to reduce: give 1 or more rows")
    total = stack.pop()[1]
    while stack:
        total = merge(stack.pop()[1], total)
    return total
