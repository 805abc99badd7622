"""The paper's basis: monomials divided by their norm."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from tensorlace._types import Array
from tensorlace.columns.bases.basis import Basis, degree_closure, nearest_constant, powers
from tensorlace.portable import Builder, Value

__all__ = ["UnitPolynomial"]


@final
@dataclass(frozen=True)
class UnitPolynomial(Basis):
    r"""Monomials scaled to a feature vector of length one.

    .. math:: \phi_i(x) = x^i / n(x), \quad n(x)^2 = \sum_{j<I} x^{2j}, \quad
              \psi_s(x) = x^s / n(x)^2, \quad S = 2I - 1.

    The features stay in [-1, 1] for every real ``x``, however large.

    Parameters
    ----------
    n : int
        ``I``, the number of functions.

    Examples
    --------
    >>> import numpy as np
    >>> UnitPolynomial(2).phi(np.array([0.0, 1e300]))
    array([[1.e+000, 1.e-300],
           [0.e+000, 1.e+000]])
    """

    name: ClassVar[str] = "unit_polynomial"
    interval: ClassVar[tuple[float, float] | None] = (-1.0, 1.0)
    bounded: ClassVar[bool] = False

    def phi(self, u: Array) -> Array:
        """Evaluate ``x^i / n(x)``: (n,) gives (I, n)."""
        t, large = _inside(u)
        P = powers(t, self.n)
        P /= np.sqrt(np.einsum("in,in->n", P, P))
        if large.any():
            # x^i = x^(I-1) t^(I-1-i), and the size of x^(I-1) cancels against the norm.
            sign = np.sign(u[large]) if self.n % 2 == 0 else 1.0
            P[:, large] = sign * P[::-1, large]
        return P

    def portable(self, g: Builder, u: Value) -> Value:
        """``x^i / n(x)``, in powers of 1/x where that is smaller."""
        large = g.abs(u) > 1.0
        P = g.power(g.where(large, 1.0 / u, u), np.arange(float(self.n))[:, None])
        P = P / g.sqrt(g.sum(P * P))
        mirrored = g.take(P, range(self.n)[::-1])
        if self.n % 2 == 0:
            mirrored = mirrored * g.where(u < 0.0, -1.0, 1.0)
        return g.where(large, mirrored, P)

    def psi(self, u: Array) -> Array:
        """Evaluate ``x^s / n(x)^2``: (n,) gives (2I-1, n)."""
        t, large = _inside(u)
        P = powers(t, 2 * self.n - 1)
        P /= P[::2].sum(axis=0)
        if large.any():
            P[:, large] = P[::-1, large]
        return P

    def expansion(self) -> Array:
        """``C_ijs = 1`` where ``s = i + j``."""
        return degree_closure(self.n)

    def constant(self) -> Array:
        """Least-squares fit of 1 on [-1, 1]: ``n(x)`` is no polynomial unless ``I = 1``."""
        return nearest_constant(self, -1.0, 1.0)


def _inside(x: Array) -> tuple[Array, np.ndarray[tuple[int, ...], np.dtype[np.bool_]]]:
    """Replace ``x`` by ``1/x`` where ``|x| > 1``, so that no power overflows."""
    large = np.abs(x) > 1.0
    t = x.copy()
    np.divide(1.0, x, out=t, where=large)
    return t, large
