"""One function per category."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from tensorlace._types import Array, Mask
from tensorlace.columns.bases.basis import Basis
from tensorlace.portable import Builder, Value

__all__ = ["Indicator"]


@final
@dataclass(frozen=True)
class Indicator(Basis):
    r"""Indicators of the codes ``0 ... I-1`` of a categorical column.

    .. math:: \phi_i(u) = [u = i], \quad \psi_i = \phi_i, \quad S = I.

    Any other code, such as -1 for a category never seen, makes all functions 0.

    Parameters
    ----------
    n : int
        ``I``, the number of categories.

    Examples
    --------
    >>> import numpy as np
    >>> Indicator(2).phi(np.array([1.0, 0.0, -1.0]))
    array([[0., 1., 0.],
           [1., 0., 0.]])
    """

    name: ClassVar[str] = "indicator"
    interval: ClassVar[tuple[float, float] | None] = None
    bounded: ClassVar[bool] = True

    def phi(self, u: Array) -> Array:
        """Compare with each code: (n,) gives (I, n)."""
        return np.equal.outer(np.arange(self.n), u).astype(np.float64)

    def portable(self, g: Builder, u: Value) -> Value:
        """Compare with each code."""
        return g.number(g.equal(u, np.arange(float(self.n))[:, None]))

    def psi(self, u: Array) -> Array:
        """Evaluate the functions themselves: (n,) gives (I, n)."""
        return self.phi(u)

    def expansion(self) -> Array:
        """Mark that a function times itself is itself, and times another is 0."""
        i = np.arange(self.n)
        C = np.zeros((self.n, self.n, self.n))
        C[i, i, i] = 1.0
        return C

    def values_over(self, low: float, high: float, n: int) -> Array:
        """All levels, and one that is none."""
        return np.arange(-1.0, self.n)

    def constant(self) -> Array:
        """Add all indicators, which sum to 1 on every known code."""
        return np.ones(self.n)

    def typical(self) -> Array:
        """Leave all functions at 0."""
        return np.zeros(self.n)

    def novel(self, u: Array) -> Mask:
        """No code of a category."""
        return ~(u >= 0.0)

    def portable_novel(self, g: Builder, u: Value) -> Value:
        """No code of a category."""
        return ~(u >= 0.0)
