"""Sines and cosines of a periodic variable."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from tensorlace._types import Array
from tensorlace.columns.bases.basis import Basis, first, harmonics
from tensorlace.portable import Builder, Value

__all__ = ["Fourier"]


@final
@dataclass(frozen=True)
class Fourier(Basis):
    r"""The Fourier basis with period 1.

    .. math:: \phi = (1, \sqrt2 \cos \theta, \sqrt2 \sin \theta, \sqrt2 \cos 2\theta, \dots),
              \quad \theta = 2 \pi u,

    and :math:`\psi` the same waves, unscaled, up to twice the frequency. ``S = 2I - 1`` for odd
    ``I``. An even ``I`` ends in a cosine without its sine, and products need ``S = 2I``.

    Parameters
    ----------
    n : int
        ``I``, the number of functions.

    Examples
    --------
    >>> import numpy as np
    >>> basis = Fourier(5)
    >>> bool(np.all(basis.phi(np.array([0.25])) == basis.phi(np.array([-3.75]))))
    True
    """

    name: ClassVar[str] = "fourier"
    interval: ClassVar[tuple[float, float] | None] = (0.0, 1.0)
    bounded: ClassVar[bool] = True

    def phi(self, u: Array) -> Array:
        """Evaluate the waves: (n,) gives (I, n)."""
        waves = _waves(u, self.n)
        waves[1:] *= np.sqrt(2.0)
        return waves

    def portable(self, g: Builder, u: Value) -> Value:
        """Each wave on its own."""
        i = np.arange(self.n)[:, None]
        angle = (2.0 * np.pi * (u - g.round(u))) * ((i + 1) // 2).astype(np.float64)
        waves = g.where((i > 0) & (i % 2 == 0), g.sin(angle), g.cos(angle))
        return waves * np.where(i == 0, 1.0, np.sqrt(2.0))

    def psi(self, u: Array) -> Array:
        """Evaluate the waves up to twice the frequency: (n,) gives (S, n)."""
        return _waves(u, self._n_psi())

    def expansion(self) -> Array:
        """Add and subtract frequencies, by the product formulas of sine and cosine."""
        C = np.zeros((self.n, self.n, self._n_psi()))
        a = np.full(self.n, np.sqrt(2.0))
        a[0] = 1.0
        for i in range(self.n):
            k, k_sine = _frequency(i)
            for j in range(i, self.n):
                m, m_sine = _frequency(j)  # m >= k, because j >= i
                row = C[i, j]
                if k_sine == m_sine:
                    row[_place(m - k, sine=False)] += 0.5
                    row[_place(m + k, sine=False)] += -0.5 if k_sine else 0.5
                else:
                    row[_place(m + k, sine=True)] += 0.5
                    if m > k:  # sin 0 is no function of the basis
                        row[_place(m - k, sine=True)] += 0.5 if m_sine else -0.5
                C[j, i] = row
        C *= np.multiply.outer(a, a)[:, :, None]
        return C

    def constant(self) -> Array:
        """Pick the first function, which is 1."""
        return first(self.n)

    def typical(self) -> Array:
        """Pick the first function: the others average to 0."""
        return first(self.n)

    def _n_psi(self) -> int:
        return 2 * self.n - self.n % 2


def _waves(u: Array, n: int) -> Array:
    """Evaluate the first ``n`` of ``1, cos, sin, cos 2, ...`` at ``2 pi u``, as (n, rows)."""
    turn = u - np.rint(u)  # exact, so a far-away period costs no accuracy
    E = harmonics(2.0 * np.pi * turn, n // 2 + 1)
    out = np.empty((n, u.size))
    out[0] = 1.0
    out[1::2] = E.real[1:]
    out[2::2] = E.imag[1 : (n + 1) // 2]
    return out


def _frequency(i: int) -> tuple[int, bool]:
    """Frequency of function ``i``, and whether it is a sine."""
    return (i + 1) // 2, i > 0 and i % 2 == 0


def _place(k: int, *, sine: bool) -> int:
    """Where the wave of frequency ``k`` stands: the inverse of :func:`_frequency`."""
    return 2 * k if sine or k == 0 else 2 * k - 1
