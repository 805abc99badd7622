"""The response linearised at given cores: everything that Gauss-Newton, GGN and LLA need.

With the Jacobian A of each block (`linearise`), or without it (`point`, `product`): from the
environments Z alone, ``A p = Σ_d ⟨Z_d, P_d φ_d⟩`` and ``(Aᵀ q)_d = Z_d (q φ_d)ᵀ`` take O(N·D·I·R).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from tensorlace.bases.basis import Array
from tensorlace.gram import expand
from tensorlace.networks import (
    Cores,
    additive_response,
    environments,
    factors,
    from_vector,
    jacobian,
    predict,
    to_vector,
)
from tensorlace.rows import Block, Rows, Statistic

__all__ = [
    "Linearisation",
    "Point",
    "bend",
    "block_grams",
    "linearise",
    "point",
    "product",
    "residual_curvature",
    "residual_squares",
]


@final
@dataclass(frozen=True)
class Linearisation:
    """Sums over rows of the linearised model ``f + A δ``.

    Attributes
    ----------
    gram : (P, P) array or None
        ``Aᵀ A``; None when there are fewer rows than parameters.
    rows : (P, N) array or None
        ``Aᵀ`` itself, scaled by the square roots of the weights, when there are.
    slope : (P,) array
        ``Aᵀ (y - f)``.
    target : (P,) array
        ``Aᵀ y``.
    rss : float
        Weighted residual sum of squares.
    """

    gram: Array | None
    rows: Array | None
    slope: Array
    target: Array
    rss: float

    def dense_gram(self) -> Array:
        """``Aᵀ A`` (P, P) in either case."""
        if self.gram is not None:
            return self.gram
        assert self.rows is not None
        product: Array = self.rows @ self.rows.T
        return product


def linearise(rows: Rows, cores: Cores) -> Linearisation:
    """Linearise at ``cores``: primal sums if P ≤ N, the Jacobian itself if P > N."""
    primal = sum(V.size for V in cores) <= rows.n_rows or not rows.keeps_blocks

    def kernel(block: Block) -> Statistic:
        phi = block.features()
        A = jacobian(cores, phi)
        y, residual = block.y, block.y - predict(cores, phi)
        if block.weight is not None:
            root = np.sqrt(block.weight)
            A *= root
            y, residual = y * root, residual * root
        sums = A @ residual, A @ y, np.array(residual @ residual)
        if primal:
            return (*sums, A @ A.T)
        kept[block.index] = A
        return sums

    kept: dict[int, Array] = {}
    slope, target, rss, *gram = rows.reduce(kernel)
    jac = None if primal else np.concatenate([kept[k] for k in sorted(kept)], axis=1)
    return Linearisation(gram[0] if primal else None, jac, slope, target, float(rss))


def residual_squares(rows: Rows, cores: Cores) -> float:
    """Weighted residual sum of squares at ``cores``, without a Jacobian."""

    def kernel(block: Block) -> Statistic:
        residual = block.y - predict(cores, block.features())
        return (np.array(block.weighted(residual) @ residual),)

    (rss,) = rows.reduce(kernel)
    return float(rss)


def bend(rows: Rows, cores: Cores, p: Array) -> Array:
    """``Aᵀ f''`` (P,), with the second derivative of each response along the direction ``p`` (P,).

    Of products of factors ``F_d + t T_d`` it follows one by one; the additive part is straight.
    """
    D, direction, additive = len(rows.bases), from_vector(p, cores), _additive(rows, cores)

    def kernel(block: Block) -> Statistic:
        phi = block.features()
        F, T = factors(cores[:D], phi), factors(direction[:D], phi)
        value, slope, curve = F[0], T[0], np.zeros_like(F[0])
        for f, t in zip(F[1:], T[1:], strict=True):
            curve = curve * f + 2.0 * slope * t
            value, slope = value * f, slope * f + value * t
        q = block.weighted(curve.sum(axis=0))
        parts = [_pull(z, x, q) for z, x in zip(environments(F), phi, strict=True)]
        return tuple(parts if additive is None else [*parts, _pull_additive(phi, q)])

    return to_vector(rows.reduce(kernel))


def residual_curvature(rows: Rows, cores: Cores) -> Array:
    """What the Hessian has and Gauss-Newton has not, ``E`` (P, P), from theorem (full_hess).

    For two different columns k, m and the same rank term r the block is
    ``Φ^(k)ᵀ diag((f - y) Z^(k,m)_r) Φ^(m)``; all other blocks are zero. The Hessian is
    ``β (AᵀA + E) + Γ``.
    """
    starts = np.cumsum([0, *(V.size for V in cores)])
    D, R = len(rows.bases), cores[0].shape[0]

    def kernel(block: Block) -> Statistic:
        phi = block.features()
        F = factors(cores, phi)
        misfit = block.weighted(predict(cores, phi) - block.y)
        out = []
        for k in range(D - 1):
            # all columns but k, then all but k and m: products, no division
            Z = environments([f for j, f in enumerate(F) if j != k])
            for m in range(k + 1, D):
                left = (Z[m - 1] * misfit)[:, None, :] * phi[k]  # (R, I_k, n)
                out.append(left @ phi[m].T)  # (R, I_k, I_m)
        return tuple(out)

    E = np.zeros((starts[-1], starts[-1]))
    pairs = [(k, m) for k in range(D - 1) for m in range(k + 1, D)]
    parts = rows.reduce(kernel) if pairs else ()
    for (k, m), part in zip(pairs, parts, strict=True):
        tile = np.zeros((R, part.shape[1], R, part.shape[2]))
        tile[np.arange(R), :, np.arange(R), :] = part
        corner = tile.reshape(R * part.shape[1], R * part.shape[2])
        E[starts[k] : starts[k + 1], starts[m] : starts[m + 1]] = corner
        E[starts[m] : starts[m + 1], starts[k] : starts[k + 1]] = corner.T
    return E


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


def _pull(Z: Array, phi: Array, q: Array) -> Array:
    """``Z (q φ)ᵀ`` (R, I): the scaling goes where it is cheaper."""
    return Z @ (phi * q).T if len(phi) < len(Z) else (Z * q) @ phi.T


def _pull_additive(phi: Sequence[Array], q: Array) -> Array:
    """Slope of the additive part (1, Σ_d I_d)."""
    return np.concatenate([x @ q for x in phi])[None]


def _additive(rows: Rows, cores: Cores) -> Array | None:
    return cores[-1] if len(cores) > len(rows.bases) else None


def point(rows: Rows, cores: Cores) -> Point:
    """Residual, slope and the scale of the slope at ``cores``, in one pass."""
    numbers = rows.n_rows * len(cores) * cores[0].shape[0]
    # twice: a trial keeps its own while those of the present cores are still needed
    keep = rows.keeps_blocks and 2 * 8 * numbers <= rows.memory_budget
    kept: dict[int, list[Array]] | None = {} if keep else None
    additive = _additive(rows, cores)

    def pulled(Z: list[Array], phi: list[Array], q: Array) -> list[Array]:
        parts = [_pull(z, x, q) for z, x in zip(Z, phi, strict=True)]
        return parts if additive is None else [*parts, _pull_additive(phi, q)]

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
    additive, along = _additive(rows, cores), _additive(rows, direction)

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
        last = () if along is None else (_pull_additive(phi, change),)
        if not exact:
            return (*(_pull(z, x, change) for z, x in zip(Z, phi, strict=True)), *last)
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

    additive, engine = _additive(rows, cores), rows.engine
    sums = rows.reduce(kernel)
    R = cores[0].shape[0]
    structured = (expand(M, basis.closure(), R) for M, basis in zip(sums, rows.bases, strict=False))
    return (*structured, *sums[len(rows.bases) :])


def additive_gram(block: Block, phi: Sequence[Array]) -> Array:
    """Gram matrix of the features of all columns (Σ_d I_d, Σ_d I_d)."""
    A = np.concatenate(phi)
    G: Array = block.weighted(A) @ A.T
    return G
