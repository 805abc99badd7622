"""Legendre polynomials."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from tensorlace._types import Array
from tensorlace.columns.bases.basis import Basis, first
from tensorlace.portable import Builder, Value

__all__ = ["Legendre"]


@final
@dataclass(frozen=True)
class Legendre(Basis):
    r"""Legendre polynomials, orthogonal on [-1, 1] under the uniform weight.

    .. math:: \phi_i = P_i, \quad \psi_s = P_s, \quad S = 2I - 1,

    with products by Adams' formula: with :math:`A_r = \prod_{k \le r} (2k-1)/k` and
    :math:`s = i + j - 2r`, :math:`r \le \min(i, j)`,

    .. math:: C_{ijs} = \frac{A_r A_{i-r} A_{j-r}}{A_{i+j-r}} \, \frac{2s + 1}{2(s + r) + 1}.

    Outside [-1, 1] they extrapolate, and grow.

    Parameters
    ----------
    n : int
        ``I``, the number of functions; the degree is ``I - 1``.

    Examples
    --------
    ``P_1^2 = (P_0 + 2 P_2) / 3``:

    >>> 3 * Legendre(2).closure()[1, 1]
    array([1., 0., 2.])
    """

    name: ClassVar[str] = "legendre"
    interval: ClassVar[tuple[float, float] | None] = (-1.0, 1.0)
    bounded: ClassVar[bool] = False

    def phi(self, u: Array) -> Array:
        """Evaluate ``P_i``: (n,) gives (I, n)."""
        return _legendre(u, self.n)

    def portable(self, g: Builder, u: Value) -> Value:
        """The same increments, one degree after the other."""
        step = increment = g.abs(u) - 1.0
        rows = [g.expand(1.0, u)]
        for k in range(1, self.n):
            rows.append(rows[-1] + increment)
            increment = increment * (k / (k + 1)) + step * rows[-1] * ((2 * k + 1) / (k + 1))
        P, degree = g.stack(rows), np.arange(self.n)[:, None]
        return g.where(degree == 1, u, g.where((degree % 2 == 1) & (u < 0.0), -P, P))

    def psi(self, u: Array) -> Array:
        """Evaluate ``P_s``: (n,) gives (2I-1, n)."""
        return _legendre(u, 2 * self.n - 1)

    def expansion(self) -> Array:
        """Adams' formula; every coefficient is positive, so nothing cancels."""
        n = self.n
        k = np.arange(1, 2 * n)
        A = np.cumprod(np.concatenate([[1.0], (2 * k - 1) / k]))
        C = np.zeros((n, n, 2 * n - 1))
        for r in range(n):
            i, j = np.indices((n - r, n - r)) + r
            s = i + j - 2 * r
            pair = A[i - r] * A[j - r]  # first, so that i and j may change places to the bit
            C[i, j, s] = A[r] * pair / A[s + r] * ((2 * s + 1) / (2 * (s + r) + 1))
        return C

    def constant(self) -> Array:
        """Pick the first function, which is 1."""
        return first(self.n)

    def typical(self) -> Array:
        """Pick the first function: the others average to 0."""
        return first(self.n)


def _legendre(x: Array, n: int) -> Array:
    """Three-term recurrence ``(k+1) P_{k+1} = (2k+1) x P_k - k P_{k-1}``: (rows,) to (n, rows).

    Carried as increments ``P_{k+1} - P_k`` at ``|x|``: next to 1 all ``P_k`` are nearly equal and
    the plain recurrence would build up ``k^2`` roundings there.
    """
    P = np.empty((n, x.size))
    P[0] = 1.0
    step = np.abs(x) - 1.0
    increment = step.copy()
    term = np.empty_like(step)
    for k in range(1, n):
        np.add(P[k - 1], increment, out=P[k])
        np.multiply(step, P[k], out=term)
        term *= (2 * k + 1) / (k + 1)
        increment *= k / (k + 1)
        increment += term
    P[1::2] *= np.copysign(1.0, x)
    P[1:2] = x  # an increment from 1 would round it
    return P
