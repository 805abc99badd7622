"""Posteriors with fewer directions: the variance that each explains per byte, and the best few.

In units of the prior a posterior is ``Σ = S (U diag(c) Uᵀ + I - U Uᵀ) S``, ``S = Γ^(-1/2)``: along
a direction u that rows speak about c is far below 1, along all others the prior stays. A direction
that is left out goes back to the prior. So no variance falls below the exact one, and none rises
above the prior's, but for rounding (with ``curvature="full"``, whose c may be above 1, that is not
promised).
"""

from dataclasses import dataclass, replace
from typing import Self, final

import numpy as np
import numpy.typing as npt

from tensorlace._types import Array, Mask
from tensorlace.errors import InputError
from tensorlace.laplace.posterior import Blocks, Diagonal, LowRank, Posterior
from tensorlace.machines.machine import KernelMachine
from tensorlace.networks.network import to_vector

__all__ = ["Directions", "exponents_of", "rounded", "widths_of"]

WIDTHS = (1, 2, 3)
"""Bytes of the whole numbers that entries of U become."""

_LARGEST_LOSS = 1e-3
"""Variance, relative to all of it, that rounding one direction may add."""

Widths = npt.NDArray[np.intp]


def exponents_of(U: Array, widths: Widths | int) -> npt.NDArray[np.intp]:
    """Exponents (k,) of powers of two that make columns of ``U`` (P, k) numbers of some bytes."""
    largest = np.abs(U).max(axis=0, initial=0.0)
    fraction, exponent = np.frexp(largest / (2.0 ** (8 * np.asarray(widths) - 1) - 1.0))
    exact = exponent - (fraction == 0.5)  # the quotient is a power of two itself
    return np.where(largest > 0.0, exact, 0).astype(np.intp)


def rounded(U: Array, widths: Widths | int) -> Array:
    """Entries (P, k) as whole numbers of some bytes times a power of two, one per column.

    >>> rounded(np.array([[1.0], [0.3]]), 1) * 64
    array([[64.],
           [19.]])
    """
    exponents = exponents_of(U, widths)
    return np.ldexp(np.rint(np.ldexp(U, -exponents)), exponents)


def widths_of(U: Array) -> Widths | None:
    """Fewest bytes (k,) of whole numbers that hold the columns of ``U`` (P, k) exactly, if any."""
    widths = np.zeros(U.shape[1], dtype=np.intp)
    for width in WIDTHS[::-1]:
        widths[np.all(rounded(U, width) == U, axis=0)] = width
    return widths if np.all(widths > 0) else None


@final
@dataclass(frozen=True, eq=False)
class Directions:
    """All directions of a machine's posterior.

    Attributes
    ----------
    parts : tuple of LowRank or Diagonal
        The posterior in units of its prior.
    gains : (k,) array
        Variance in units of y², on average over rows, that leaving a direction out would add.
    widths : (k,) int array
        Bytes that each number of a direction needs.
    costs : (k,) int array
        Bytes of a direction.
    """

    parts: tuple[LowRank | Diagonal, ...]
    gains: Array
    widths: Widths
    costs: npt.NDArray[np.intp]

    @classmethod
    def of(cls, machine: KernelMachine, X: Array) -> Self:
        """Directions with their gains at the rows ``X`` (n, D)."""
        fit = machine.fit
        u = machine.columns.variables(X)
        phi = [c.phi(x) for c, x in zip(machine.columns.columns, u, strict=True)]
        G = fit.network.jacobian(phi, fit.bayesian_cores)
        gamma = to_vector(fit.gamma[d] for d in fit.bayesian_cores)
        posterior = fit.posterior
        given = posterior.independent
        ends = np.cumsum([part.n_weights for part in given])[:-1]
        parts = [_directions_of(p, g) for p, g in zip(given, np.split(gamma, ends), strict=True)]
        total = float(np.mean(posterior.quad(G)))
        none = np.empty(0), np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp)
        found = [
            _worth(part, A, machine.target.scale, total)
            for part, A in zip(parts, np.split(G, ends), strict=True)
            if isinstance(part, LowRank)
        ]
        return cls(tuple(parts), *map(np.concatenate, zip(none, *found, strict=True)))

    def kept(self, which: Mask) -> Posterior:
        """Posterior with the directions ``which`` (k,) only."""
        out: list[Posterior] = []
        start = 0
        for part in self.parts:
            if isinstance(part, LowRank):
                mine = np.arange(start, start + len(part.c))[which[start : start + len(part.c)]]
                U, c = part.U[:, mine - start], part.c[mine - start]
                start += len(part.c)
                part = replace(part, U=rounded(U, self.widths[mine]), c=c)
            out.append(part)
        return out[0] if len(out) == 1 else Blocks(tuple(out))


def _directions_of(posterior: Posterior, gamma: Array) -> LowRank | Diagonal:
    """One independent part in units of its prior."""
    found = posterior.in_units_of_prior(gamma)
    if not isinstance(found, LowRank | Diagonal):
        raise InputError(f"a {type(posterior).__name__} has no directions to leave out")
    return found


def _worth(
    part: LowRank, G: Array, scale: float, total: float
) -> tuple[Array, Widths, npt.NDArray[np.intp]]:
    """Gains, widths and costs (k,) of directions, for rows with Jacobians ``G`` (P, n)."""
    B = part.scale[:, None] * G
    size = np.mean((part.U.T @ B) ** 2, axis=1)
    widths = np.full(len(part.c), WIDTHS[-1])
    for width in WIDTHS[-2::-1]:
        # what an error takes in from other directions, and what it lets out to where the prior is
        error = rounded(part.U, width) - part.U
        loss = np.mean((error.T @ B) ** 2, axis=1) + np.sum(error**2, axis=0) * size
        widths[loss <= _LARGEST_LOSS * total] = width
    gains = np.abs(1.0 - part.c) * size * scale**2
    return gains, widths, len(part.scale) * widths + 16
