"""The response linearised at given cores: everything that Gauss-Newton, GGN and LLA need.

With the Jacobian A of each block (`linearise`), or without it (`point`, `product`): from the
environments Z alone, ``A p = Σ_d ⟨Z_d, P_d φ_d⟩`` and ``(Aᵀ q)_d = Z_d (q φ_d)ᵀ`` take O(N·D·I·R).
"""

from dataclasses import dataclass
from typing import final

import numpy as np

from tensorlace._types import Array
from tensorlace.networks.cpd import (
    Cores,
    environments,
    factors,
    from_vector,
    jacobian,
    predict,
    to_vector,
)
from tensorlace.rows.memory import Block, Rows, Statistic
from tensorlace.solvers.products import additive_core, pull, pull_additive

__all__ = ["Linearisation", "bend", "linearise", "residual_curvature", "residual_squares"]


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
    D, direction, additive = len(rows.bases), from_vector(p, cores), additive_core(rows, cores)

    def kernel(block: Block) -> Statistic:
        phi = block.features()
        F, T = factors(cores[:D], phi), factors(direction[:D], phi)
        value, slope, curve = F[0], T[0], np.zeros_like(F[0])
        for f, t in zip(F[1:], T[1:], strict=True):
            curve = curve * f + 2.0 * slope * t
            value, slope = value * f, slope * f + value * t
        q = block.weighted(curve.sum(axis=0))
        parts = [pull(z, x, q) for z, x in zip(environments(F), phi, strict=True)]
        return tuple(parts if additive is None else [*parts, pull_additive(phi, q)])

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
