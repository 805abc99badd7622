"""Cosines on the unit interval."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from tensorlace._types import Array
from tensorlace.columns.bases.basis import (
    Basis,
    check_lengthscale,
    first,
    frequency_closure,
    harmonics,
    without_traces,
)
from tensorlace.portable import Builder, Value

__all__ = ["Cosine"]


@final
@dataclass(frozen=True)
class Cosine(Basis):
    r"""Eigenfunctions of the Laplacian on [0, 1] with flat (Neumann) ends.

    .. math:: \phi_i(u) = a_i \cos(i \pi u), \quad \psi_s(u) = \cos(s \pi u), \quad S = 2I - 1,

    with :math:`a_0 = 1` and :math:`a_i = \sqrt 2`, which is orthonormal, or, given a lengthscale
    :math:`\ell`, :math:`a_i = \sqrt 2 \, e^{-(i \pi \ell)^2 / 4}`: the root of the spectral density
    of the squared-exponential kernel over its value at frequency 0, so that equal prior variance
    on all coefficients prefers smooth functions.

    Values outside [0, 1] are treated as the nearer end.

    Parameters
    ----------
    n : int
        ``I``, the number of functions.
    lengthscale : float, optional
        In units of the interval; ``None`` scales all frequencies alike.
    """

    lengthscale: float | None = None

    name: ClassVar[str] = "cosine"
    interval: ClassVar[tuple[float, float] | None] = (0.0, 1.0)
    bounded: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the size and the lengthscale."""
        super().__post_init__()
        if self.lengthscale is not None:
            check_lengthscale(self, self.lengthscale)

    def phi(self, u: Array) -> Array:
        """Evaluate ``a_i cos(i pi u)``: (n,) gives (I, n)."""
        waves = harmonics(np.pi * np.clip(u, 0.0, 1.0), self.n).real
        return np.multiply(waves, self.amplitude()[:, None], order="C")

    def portable(self, g: Builder, u: Value) -> Value:
        """``a_i cos(i pi u)``, each wave on its own."""
        theta = np.pi * g.clip(u, 0.0, 1.0)
        return g.cos(theta * np.arange(float(self.n))[:, None]) * self.amplitude()[:, None]

    def psi(self, u: Array) -> Array:
        """Evaluate ``cos(s pi u)``: (n,) gives (2I-1, n)."""
        waves = harmonics(np.pi * np.clip(u, 0.0, 1.0), 2 * self.n - 1).real
        return np.ascontiguousarray(waves)

    def expansion(self) -> Array:
        """``a_i a_j / 2`` where ``s = i + j`` and where ``s = |i - j|``."""
        a = self.amplitude()
        C = frequency_closure(self.n)
        C *= np.multiply.outer(a, a)[:, :, None]
        return C

    def constant(self) -> Array:
        """Pick the first function, which is 1."""
        return first(self.n)

    def typical(self) -> Array:
        """Pick the first function: the others average to 0."""
        return first(self.n)

    def amplitude(self) -> Array:
        """``a_i``, shape (I,)."""
        i = np.arange(self.n, dtype=np.float64)
        l = self.lengthscale or 0.0
        a: Array = np.sqrt(2.0) * np.exp(-((i * np.pi * l) ** 2) / 4.0)
        a[0] = 1.0
        return without_traces(a)
