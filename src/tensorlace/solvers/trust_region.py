"""Conjugate gradients inside a trust region, in the norm of their preconditioner."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from tensorlace._types import Array
from tensorlace.linalg.symmetric import inverse_root

__all__ = ["Metric", "Path", "follow"]

_FLAT = 1e-10
"""Ridge under a flat prior, in units of the diagonal."""


@final
class Metric:
    """``M``: the block curvature ``β G_d + Γ_d``, positive even under a flat prior."""

    def __init__(self, grams: tuple[Array, ...], beta: float, g: Array) -> None:
        diagonal = beta * np.concatenate([np.diagonal(G) for G in grams])
        ridge = np.where(g > 0, g, np.where(diagonal > 0, _FLAT * diagonal, 1.0))
        self._ends = np.cumsum([len(G) for G in grams])[:-1]
        self._blocks, self._roots = [], []
        for G, r in zip(grams, np.split(ridge, self._ends), strict=True):
            M = beta * G + np.diag(r)
            factored = inverse_root(M)
            if factored is None:
                M = np.diag(np.diagonal(M))
                factored = inverse_root(M)
                assert factored is not None
            self._blocks.append(M)
            self._roots.append(factored[0])

    def norm(self, x: Array) -> float:
        """``(xᵀ M x)^½``."""
        parts = zip(self._blocks, np.split(x, self._ends), strict=True)
        return float(np.sqrt(sum(float(part @ M @ part) for M, part in parts)))

    def solve(self, r: Array) -> Array:
        """``M⁻¹ r``."""
        parts = zip(self._roots, np.split(r, self._ends), strict=True)
        return np.concatenate([W @ (W.T @ part) for W, part in parts])


@final
@dataclass(frozen=True)
class _Leg:
    """From ``x`` along ``p``: scalars of the model there and of the norm of M."""

    x: Array
    p: Array
    slope: float  # falling of the model at x along p
    curvature: float  # pᵀHp
    gain: float  # of the model at x
    xx: float
    xp: float
    pp: float

    def at(self, step: float) -> tuple[Array, float, float]:
        """Point, gain of the model and norm after a step along ``p``."""
        gain = self.gain + step * (self.slope - 0.5 * step * self.curvature)
        norm2 = self.xx + step * (2.0 * self.xp + step * self.pp)
        return self.x + step * self.p, gain, float(np.sqrt(max(norm2, 0.0)))

    def reach(self, radius: float) -> float:
        """Step after which the norm is ``radius``."""
        missing = max(radius * radius - self.xx, 0.0)
        # the root without cancellation: xp >= 0 on a path of conjugate gradients
        return missing / (self.xp + float(np.sqrt(self.xp * self.xp + self.pp * missing)))


@final
@dataclass(frozen=True)
class Path:
    """The way of conjugate gradients; the norm of M and the gain of the model rise along it."""

    legs: tuple[_Leg, ...]
    last_step: float
    inside: bool

    def end(self) -> tuple[Array, float, float]:
        """Last point, gain of the model, and norm."""
        return self.legs[-1].at(self.last_step)

    def within(self, radius: float) -> tuple[Array, float, float]:
        """Last point inside a smaller radius, gain of the model, and norm."""
        leg = [leg for leg in self.legs if leg.xx <= radius * radius][-1]
        return leg.at(leg.reach(radius))


def follow(
    times: Callable[[Array], Array],
    metric: Metric,
    slope: Array,
    radius: float,
    reduction: float,
    most: int,
) -> Path:
    """Conjugate gradients on ``H x = slope`` from zero (Steihaug and Toint).

    They end when the residual has shrunk by ``reduction``, at the ``radius``, or after ``most``
    products; a direction without positive curvature is followed up to the radius.
    """
    x, r = np.zeros_like(slope), slope
    z = metric.solve(r)
    p, rz = z, float(r @ z)
    goal = reduction * reduction * rz
    gain = xx = xp = 0.0
    pp = rz
    legs = []
    while True:
        Hp = times(p)
        leg = _Leg(x, p, rz, float(p @ Hp), gain, xx, xp, pp)
        legs.append(leg)
        limit = leg.reach(radius)
        if leg.curvature <= 0.0 or rz / leg.curvature >= limit:
            return Path(tuple(legs), limit, inside=False)
        step = rz / leg.curvature
        x, gain, norm = leg.at(step)
        r = r - step * Hp
        z = metric.solve(r)
        before, rz = rz, float(r @ z)
        if rz <= goal or len(legs) == most:
            return Path(tuple(legs), step, inside=True)
        beta = rz / before
        xx, xp, pp = norm * norm, beta * (xp + step * pp), rz + beta * beta * pp
        p = z + beta * p
