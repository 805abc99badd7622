"""A sum over parts in a fixed binary tree, so that its bits depend on nothing else."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from tensorlace.errors import InputError

__all__ = ["ordered_map", "tree_reduce"]

T = TypeVar("T")
U = TypeVar("U")


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


def ordered_map(function: Callable[[T], U], items: Iterable[T], threads: int = 1) -> Iterator[U]:
    """Results in the order of the items, with at most two of them under way per thread."""
    if threads == 1:
        yield from map(function, items)
        return
    waiting: deque[Future[U]] = deque()
    pool = ThreadPoolExecutor(threads)
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) >= 2 * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:  # also where nobody wants the rest
        pool.shutdown(cancel_futures=True)
