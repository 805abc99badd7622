"""Sines on an interval wider than the data."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from tensorlace._types import Array
from tensorlace.columns.bases.basis import (
    Basis,
    check_lengthscale,
    harmonics,
    nearest_constant,
    without_traces,
)
from tensorlace.portable import Builder, Value

__all__ = ["Sine"]


@final
@dataclass(frozen=True)
class Sine(Basis):
    r"""Eigenfunctions of the Laplacian on [-1/2, 3/2] that vanish at its ends (Dirichlet).

    .. math:: \phi_w(u) = a_w \sin(w \theta), \quad \theta = \tfrac{\pi}{2} (u + \tfrac12), \quad
              a_w^2 = \sqrt{2 \pi} \, \ell \, e^{-(\pi w \ell / 2)^2 / 2}, \quad w = 1 \dots I,

    .. math:: \psi_s(u) = \cos(s \theta), \quad S = 2I + 1.

    These are the features of T-KRR. Data live on [0, 1], half an interval away from the forced
    zeros; values outside the domain are treated as its nearer end, where every function is 0.

    Parameters
    ----------
    n : int
        ``I``, the number of functions.
    lengthscale : float, default 0.3
        ``l`` of the squared-exponential kernel that the features approximate.
    """

    lengthscale: float = 0.3

    name: ClassVar[str] = "sine"
    interval: ClassVar[tuple[float, float] | None] = (0.0, 1.0)
    bounded: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the size and the lengthscale."""
        super().__post_init__()
        check_lengthscale(self, self.lengthscale)

    def phi(self, u: Array) -> Array:
        """Evaluate ``a_w sin(w theta)``: (n,) gives (I, n)."""
        waves = harmonics(_angle(u), self.n + 1).imag[1:]
        return np.multiply(waves, self._amplitude()[:, None], order="C")

    def portable(self, g: Builder, u: Value) -> Value:
        """``a_w sin(w theta)``, each wave on its own."""
        theta = (g.clip(u, -0.5, 1.5) + 0.5) * (np.pi / 2.0)
        return g.sin(theta * np.arange(1.0, self.n + 1.0)[:, None]) * self._amplitude()[:, None]

    def psi(self, u: Array) -> Array:
        """Evaluate ``cos(s theta)``: (n,) gives (2I+1, n)."""
        return np.ascontiguousarray(harmonics(_angle(u), 2 * self.n + 1).real)

    def expansion(self) -> Array:
        """``sin v sin w = cos(v - w)/2 - cos(v + w)/2``, times ``a_v a_w``."""
        i, j = np.indices((self.n, self.n))
        C = np.zeros((self.n, self.n, 2 * self.n + 1))
        C[i, j, abs(i - j)] = 0.5
        C[i, j, i + j + 2] = -0.5
        a = self._amplitude()
        C *= np.multiply.outer(a, a)[:, :, None]
        return C

    def constant(self) -> Array:
        """Least-squares fit of 1 on [0, 1]: the span holds no constant."""
        return nearest_constant(self, 0.0, 1.0)

    def _amplitude(self) -> Array:
        """``a_w``, shape (I,)."""
        w = np.arange(1.0, self.n + 1.0)
        l = self.lengthscale
        # The root is taken inside the exponential: half the exponent underflows later.
        a: Array = np.sqrt(np.sqrt(2.0 * np.pi) * l) * np.exp(-((np.pi * w * l / 2.0) ** 2) / 4.0)
        return without_traces(a)


def _angle(u: Array) -> Array:
    return (np.clip(u, -0.5, 1.5) + 0.5) * (np.pi / 2.0)
