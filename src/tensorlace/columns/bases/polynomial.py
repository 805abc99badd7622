"""Plain monomials."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from tensorlace._types import Array
from tensorlace.columns.bases.basis import Basis, degree_closure, first, powers
from tensorlace.portable import Builder, Value

__all__ = ["Polynomial"]


@final
@dataclass(frozen=True)
class Polynomial(Basis):
    r"""Monomials ``1, x, x^2, ...``.

    .. math:: \phi_i(x) = x^i, \quad \psi_s(x) = x^s, \quad S = 2I - 1.

    Normal equations in monomials lose two digits per few degrees: beyond a handful of functions
    :class:`~tensorlace.columns.bases.Chebyshev` spans the same space and keeps the digits.

    Parameters
    ----------
    n : int
        ``I``, the number of functions; the degree is ``I - 1``.
    """

    name: ClassVar[str] = "polynomial"
    interval: ClassVar[tuple[float, float] | None] = (-1.0, 1.0)
    bounded: ClassVar[bool] = False

    def phi(self, u: Array) -> Array:
        """Evaluate ``x^i``: (n,) gives (I, n)."""
        return powers(u, self.n)

    def portable(self, g: Builder, u: Value) -> Value:
        """``x^i``."""
        return g.power(u, np.arange(float(self.n))[:, None])

    def psi(self, u: Array) -> Array:
        """Evaluate ``x^s``: (n,) gives (2I-1, n)."""
        return powers(u, 2 * self.n - 1)

    def expansion(self) -> Array:
        """``C_ijs = 1`` where ``s = i + j``."""
        return degree_closure(self.n)

    def constant(self) -> Array:
        """Pick the first function, which is 1."""
        return first(self.n)
