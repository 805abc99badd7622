"""The response linearised at given weights: everything that Gauss-Newton, GGN and LLA need.

With the Jacobian A of each block; `products` has what needs none.
"""

from dataclasses import dataclass
from typing import final

import numpy as np

from tensorlace._types import Array
from tensorlace.networks.network import Network, from_vector, to_vector
from tensorlace.rows.memory import Block, Rows, Statistic

__all__ = ["Linearisation", "bend", "linearise", "loss", "residual_curvature"]


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
        Weighted residual sum of squares, or of deviances.
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


def linearise(rows: Rows, network: Network) -> Linearisation:
    """Linearise at ``network``: primal sums if P ≤ N, the Jacobian itself if P > N."""
    primal = network.n_weights <= rows.n_rows or not rows.keeps_blocks

    def kernel(block: Block) -> Statistic:
        phi = block.features()
        A = network.jacobian(phi)
        y, residual = block.y, block.y - network.response(phi)
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
    slope, target, rss, *gram = rows.at(network).reduce(kernel)
    if not rows.likelihood.squared:
        rss = np.array(loss(rows, network))
    jac = None if primal else np.concatenate([kept[k] for k in sorted(kept)], axis=1)
    return Linearisation(gram[0] if primal else None, jac, slope, target, float(rss))


def loss(rows: Rows, network: Network) -> float:
    """Weighted sum of deviances at ``network``; of squared residuals if noise is Gaussian."""
    likelihood = rows.likelihood

    def squares(block: Block) -> Statistic:
        residual = block.y - network.response(block.features())
        return (np.array(block.weighted(residual) @ residual),)

    def deviances(block: Block) -> Statistic:
        deviance = likelihood.deviance(block.y, network.response(block.features()))
        return (np.array(block.weighted(deviance).sum()),)

    (total,) = rows.reduce(squares if likelihood.squared else deviances)
    return float(total)


def bend(rows: Rows, network: Network, p: Array) -> Array:
    """``Aᵀ f''`` (P,), with the second derivatives of the responses along ``p`` (P,)."""
    direction = from_vector(p, network.cores)

    def kernel(block: Block) -> Statistic:
        here = network.local(block.features())
        return here.pull(block.weighted(here.bend(direction)))

    return to_vector(rows.at(network).reduce(kernel))


def residual_curvature(rows: Rows, network: Network) -> Array:
    """What the Hessian has and Gauss-Newton has not, ``E`` (P, P), from theorem (full_hess).

    The Hessian is ``β (AᵀA + E) + Γ``.
    """

    def kernel(block: Block) -> Statistic:
        phi = block.features()
        return network.cross_terms(phi, block.weighted(network.response(phi) - block.y))

    return network.cross_matrix(rows.at(network).reduce(kernel))
