"""Products with the Jacobian of a network and its transpose, without the Jacobian."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from tensorlace._types import Array
from tensorlace.networks.cpd import (
    Cores,
    additive_response,
    environments,
    factors,
    from_vector,
    to_vector,
)
from tensorlace.networks.gram import expand
from tensorlace.rows.memory import Block, Rows, Statistic

__all__ = [
    "Point",
    "additive_core",
    "additive_gram",
    "block_grams",
    "point",
    "product",
    "pull",
    "pull_additive",
]


@final
@dataclass(frozen=True)
class Point:
    """Sums over the rows at given cores.

    Attributes
    ----------
    cores : D arrays (R, I_d)
    slope, target : (P,) array
        ``Aᵀ (y - f)`` and ``Aᵀ y``.
    rss : float
        Weighted residual sum of squares.
    kept : dict or None
        All environments of each block, by its number, if blocks live from pass to pass and memory
        allows; otherwise they are computed again, to the same bits.
    """

    cores: Cores
    slope: Array
    target: Array
    rss: float
    kept: dict[int, list[Array]] | None


def pull(Z: Array, phi: Array, q: Array) -> Array:
    """``Z (q φ)ᵀ`` (R, I): the scaling goes where it is cheaper."""
    return Z @ (phi * q).T if len(phi) < len(Z) else (Z * q) @ phi.T


def pull_additive(phi: Sequence[Array], q: Array) -> Array:
    """Slope of the additive part (1, Σ_d I_d)."""
    return np.concatenate([x @ q for x in phi])[None]


def additive_core(rows: Rows, cores: Cores) -> Array | None:
    """Weights (1, Σ_d I_d) of the additive part, if there is one."""
    return cores[-1] if len(cores) > len(rows.bases) else None


def point(rows: Rows, cores: Cores) -> Point:
    """Residual, slope and the scale of the slope at ``cores``, in one pass."""
    numbers = rows.n_rows * len(cores) * cores[0].shape[0]
    # twice: a trial keeps its own while those of the present cores are still needed
    keep = rows.keeps_blocks and 2 * 8 * numbers <= rows.memory_budget
    kept: dict[int, list[Array]] | None = {} if keep else None
    additive = additive_core(rows, cores)

    def pulled(Z: list[Array], phi: list[Array], q: Array) -> list[Array]:
        parts = [pull(z, x, q) for z, x in zip(Z, phi, strict=True)]
        return parts if additive is None else [*parts, pull_additive(phi, q)]

    def kernel(block: Block) -> Statistic:
        phi = block.features()
        F = factors(cores, phi)
        Z = environments(F)
        if kept is not None:
            kept[block.index] = Z
        residual = block.y - np.einsum("rn,rn->n", F[0], Z[0])
        if additive is not None:
            residual -= additive_response(additive, phi)
        weighted, target = block.weighted(residual), block.weighted(block.y)
        return (*pulled(Z, phi, weighted), *pulled(Z, phi, target), np.array(weighted @ residual))

    *sums, rss = rows.reduce(kernel)
    slope, target = to_vector(sums[: len(cores)]), to_vector(sums[len(cores) :])
    return Point(cores, slope, target, float(rss), kept)


def product(rows: Rows, at: Point, p: Array, *, exact: bool = False) -> Array:
    """``AᵀA p`` (P,) in one pass; if ``exact``, ``(AᵀA + E) p`` with the residual part."""
    cores, kept = at.cores, at.kept
    direction = from_vector(p, cores)
    additive, along = additive_core(rows, cores), additive_core(rows, direction)

    def kernel(block: Block) -> Statistic:
        phi = block.features()
        T = factors(direction, phi)
        Z = environments(factors(cores, phi)) if kept is None else kept[block.index]
        change = np.einsum("rn,rn->n", T[0], Z[0])
        for t, z in zip(T[1:], Z[1:], strict=True):
            change += np.einsum("rn,rn->n", t, z)
        if along is not None:
            change += additive_response(along, phi)
        change = block.weighted(change)
        last = () if along is None else (pull_additive(phi, change),)
        if not exact:
            return (*(pull(z, x, change) for z, x in zip(Z, phi, strict=True)), *last)
        F = factors(cores, phi)
        f = np.einsum("rn,rn->n", F[0], Z[0])
        if additive is not None:
            f += additive_response(additive, phi)
        misfit = block.weighted(f - block.y)
        turned = _turned_environments(F, T)
        return (
            *((z * change + dz * misfit) @ x.T for z, dz, x in zip(Z, turned, phi, strict=True)),
            *last,
        )

    return to_vector(rows.reduce(kernel))


def _turned_environments(F: list[Array], T: list[Array]) -> list[Array]:
    """Derivatives of all environments when the factors ``F`` move along ``T``."""
    right = [(np.ones_like(F[0]), np.zeros_like(F[0]))]
    for f, t in zip(F[:0:-1], T[:0:-1], strict=True):
        value, turn = right[-1]
        right.append((f * value, f * turn + t * value))
    left, left_turn = np.ones_like(F[0]), np.zeros_like(F[0])
    out = []
    for f, t, (value, turn) in zip(F, T, reversed(right), strict=True):
        out.append(left_turn * value + left * turn)
        left, left_turn = left * f, left_turn * f + left * t
    return out


def block_grams(rows: Rows, cores: Cores) -> tuple[Array, ...]:
    """Gram matrices ``A^(d)ᵀA^(d)`` (R·I_d, R·I_d) of all cores, in one pass."""

    def kernel(block: Block) -> Statistic:
        phi = block.features()
        Z = environments(factors(cores, phi))
        last = () if additive is None else (additive_gram(block, phi),)
        return (*(engine.moments(block.psi(d), z) for d, z in enumerate(Z)), *last)

    additive, engine = additive_core(rows, cores), rows.engine
    sums = rows.reduce(kernel)
    R = cores[0].shape[0]
    structured = (expand(M, basis.closure(), R) for M, basis in zip(sums, rows.bases, strict=False))
    return (*structured, *sums[len(rows.bases) :])


def additive_gram(block: Block, phi: Sequence[Array]) -> Array:
    """Gram matrix of the features of all columns (Σ_d I_d, Σ_d I_d)."""
    A = np.concatenate(phi)
    G: Array = block.weighted(A) @ A.T
    return G
