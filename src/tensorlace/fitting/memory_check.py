"""What a fit will need, checked before anything is allocated."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from tensorlace.errors import SizeError
from tensorlace.laplace.curvature import Curvature
from tensorlace.solvers.solver import Solver

__all__ = ["FEWEST_BLOCK_ROWS", "check_size"]

FEWEST_BLOCK_ROWS = 64
"""Rows of a block in any case: with fewer, calls take longer than the arithmetic."""

USABLE_SHARE = 0.8
"""Part of the physical memory that one fit may take."""


@final
@dataclass(frozen=True)
class _Need:
    """Bytes that a part of the fit will take."""

    what: str
    numbers: int


def check_size(
    sizes: Sequence[int],
    widths: Sequence[int],
    curvature: Curvature,
    solver: Solver,
    n_rows: int,
    *,
    rank: int,
    additive: bool = False,
) -> None:
    """Refuse a model that physical memory cannot hold, before anything is allocated.

    ``sizes`` are the columns of each core, I_d, and ``widths`` its rows, K_d.
    """
    weights = [K * n for K, n in zip(widths, sizes, strict=True)]
    P, largest = sum(weights) + additive * sum(sizes), max(sizes)
    pairs = max(K * (K + 1) // 2 for K in widths)
    needs = [
        _Need("product closure of the largest basis", 2 * largest**3),
        _Need("Gram matrix of the largest core", 3 * max(weights) ** 2),
        _Need("pair products of a block of rows", pairs * FEWEST_BLOCK_ROWS),
        _Need("moments of the largest core", 2 * largest * pairs),
    ]
    cores = [*weights, sum(sizes)] if additive else weights
    needs.append(_Need("curvature", curvature.numbers(cores)))
    needs.append(_Need("systems of the solver", solver.numbers(cores, n_rows, FEWEST_BLOCK_ROWS)))
    worst = max(needs, key=lambda need: need.numbers)
    limit = int(USABLE_SHARE * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    total = 8 * sum(need.numbers for need in needs)
    if total > limit:
        raise SizeError(
            f"rank={rank} with up to {largest} basis functions on {len(sizes)} columns "
            f"({P:,} weights) needs about {total / 1e9:,.1f} GB, mostly for the {worst.what}, and "
            f"{limit / 1e9:,.1f} GB may be used: lower rank or n_basis, or take "
            f"curvature='last' or 'diag' with solver='als'"
        )
