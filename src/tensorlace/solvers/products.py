"""Products with ``AᵀA`` of a network without its Jacobian A, one pass over the rows each.

From the environments Z alone, ``A p = Σ_d ⟨Z_d, P_d φ_d⟩`` and ``(Aᵀ q)_d = Z_d (q φ_d)ᵀ``.
"""

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from tensorlace._types import Array
from tensorlace.networks.network import Network, from_vector, to_vector
from tensorlace.rows.memory import Block, Rows, Statistic
from tensorlace.solvers.linearisation import loss

__all__ = ["Point", "block_grams", "point", "product"]


@final
@dataclass(frozen=True)
class Point:
    """Sums over the rows at given weights.

    Attributes
    ----------
    network : Network
    slope, target : (P,) array
        ``Aᵀ (y - f)`` and ``Aᵀ y``.
    rss : float
        Weighted residual sum of squares.
    kept : dict or None
        What `Network.local` keeps of each block, by its number, if blocks live from pass to pass
        and memory allows; otherwise it is computed again, to the same bits.
    """

    network: Network
    slope: Array
    target: Array
    rss: float
    kept: dict[int, Any] | None


def point(rows: Rows, network: Network) -> Point:
    """Residual, slope and the scale of the slope at ``network``, in one pass."""
    numbers = rows.n_rows * network.kept_per_row
    # twice: a trial keeps its own while those of the present weights are still needed
    keep = rows.keeps_blocks and 2 * 8 * numbers <= rows.memory_budget
    kept: dict[int, Any] | None = {} if keep else None

    def kernel(block: Block) -> Statistic:
        here = network.local(block.features())
        if kept is not None:
            kept[block.index] = here.kept
        residual = here.residual(block.y)
        weighted, target = block.weighted(residual), block.weighted(block.y)
        return (*here.pull(weighted), *here.pull(target), np.array(weighted @ residual))

    *sums, rss = rows.at(network).reduce(kernel)
    if not rows.likelihood.squared:
        rss = np.array(loss(rows, network))
    n = len(network.cores)
    return Point(network, to_vector(sums[:n]), to_vector(sums[n:]), float(rss), kept)


def product(rows: Rows, at: Point, p: Array, *, exact: bool = False) -> Array:
    """``AᵀA p`` (P,) in one pass; if ``exact``, ``(AᵀA + E) p`` with the residual part."""
    network, kept = at.network, at.kept
    direction = from_vector(p, network.cores)

    def kernel(block: Block) -> Statistic:
        here = network.local(block.features(), None if kept is None else kept[block.index])
        change = block.weighted(here.push(direction))
        if not exact:
            return here.pull(change)
        misfit = block.weighted(here.response() - block.y)
        return here.pull_turned(change, misfit, direction)

    return to_vector(rows.at(network).reduce(kernel))


def block_grams(rows: Rows, network: Network) -> tuple[Array, ...]:
    """Gram matrices ``A^(d)ᵀA^(d)`` (K_d·I_d, K_d·I_d) of all cores, in one pass."""
    sums = rows.at(network).reduce(network.core_moments)
    return tuple(network.gram(d, M, rows.bases) for d, M in enumerate(sums))
