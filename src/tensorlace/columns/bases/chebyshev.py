"""Chebyshev polynomials of the first kind."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from tensorlace._types import Array
from tensorlace.columns.bases.basis import Basis, first, frequency_closure, powers
from tensorlace.portable import Builder, Value, complex_powers

__all__ = ["Chebyshev"]


@final
@dataclass(frozen=True)
class Chebyshev(Basis):
    r"""Chebyshev polynomials, the well-conditioned way to write a polynomial on [-1, 1].

    .. math:: \phi_i = T_i, \quad \psi_s = T_s, \quad
              T_i T_j = \tfrac12 T_{i+j} + \tfrac12 T_{|i-j|}, \quad S = 2I - 1.

    They are polynomials everywhere, so outside [-1, 1] they extrapolate, and grow.

    Parameters
    ----------
    n : int
        ``I``, the number of functions; the degree is ``I - 1``.

    Examples
    --------
    >>> import numpy as np
    >>> Chebyshev(3).phi(np.array([0.5, 2.0]))
    array([[ 1. ,  1. ],
           [ 0.5,  2. ],
           [-0.5,  7. ]])
    """

    name: ClassVar[str] = "chebyshev"
    interval: ClassVar[tuple[float, float] | None] = (-1.0, 1.0)
    bounded: ClassVar[bool] = False

    def phi(self, u: Array) -> Array:
        """Evaluate ``T_i``: (n,) gives (I, n)."""
        return _chebyshev(u, self.n)

    def portable(self, g: Builder, u: Value) -> Value:
        """``Re z^k`` within [-1, 1] and the hyperbolic cosines beyond, as in `phi`."""
        k = np.arange(float(self.n))[:, None]
        near, _ = complex_powers(g, u, g.sqrt((1.0 - u) * (1.0 + u)), self.n)
        size = g.abs(u)
        growth = g.sqrt(size - 1.0) * g.sqrt(size + 1.0) + size
        far = 0.5 * g.power(growth, k) + 0.5 * g.power(1.0 / growth, k)
        far = far * g.where((k % 2.0 == 1.0) & (u < 0.0), -1.0, 1.0)
        return g.where(k == 1.0, u, g.where(size > 1.0, far, near))

    def psi(self, u: Array) -> Array:
        """Evaluate ``T_s``: (n,) gives (2I-1, n)."""
        return _chebyshev(u, 2 * self.n - 1)

    def expansion(self) -> Array:
        """``C_ijs`` is one half where ``s = i + j`` and one half where ``s = |i - j|``."""
        return frequency_closure(self.n)

    def constant(self) -> Array:
        """Pick the first function, which is 1."""
        return first(self.n)


def _chebyshev(x: Array, n: int) -> Array:
    """``T_k(x) = (z^k + z^-k) / 2`` with ``z = x + sqrt(x^2 - 1)``, for ``k = 0 ... n-1``.

    On [-1, 1] ``z`` lies on the unit circle and ``T_k`` is the real part of ``z^k``. The error is
    about ``k`` roundings, where the three-term recurrence has ``k^2`` of them near the ends.
    """
    outside = np.abs(x) > 1.0
    inner = np.where(outside, 0.0, x)
    z = np.empty(x.size, dtype=np.complex128)
    z.real = inner
    z.imag = np.sqrt((1.0 - inner) * (1.0 + inner))
    T = np.ascontiguousarray(powers(z, n).real)
    if outside.any():
        far = x[outside]
        size = np.abs(far)
        # Two roots, because x^2 would overflow long before T_1 does.
        growth = np.sqrt(size - 1.0) * np.sqrt(size + 1.0) + size
        cosh = 0.5 * powers(growth, n) + 0.5 * powers(1.0 / growth, n)
        cosh[1::2] *= np.sign(far)
        cosh[1:2] = far
        T[:, outside] = cosh
    return T
