"""What categories have in common, and one function more for each."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from tensorlace._types import Array, Mask
from tensorlace.columns.bases.basis import Basis, first
from tensorlace.portable import Builder, Value

__all__ = ["Levels"]


@final
@dataclass(frozen=True)
class Levels(Basis):
    r"""The constant and the deviation of each of ``L = I - 1`` categories with codes ``0 ... L-1``.

    .. math:: \phi(u) = (1, [u = 0], \dots, [u = L-1]), \quad \psi = \phi, \quad S = I.

    Categories with few rows lean on the constant, and any other code, such as -1 for a category
    never seen, has nothing else.

    Parameters
    ----------
    n : int
        ``I``, one more than there are categories.

    Examples
    --------
    >>> import numpy as np
    >>> Levels(3).phi(np.array([1.0, 0.0, -1.0]))
    array([[1., 1., 1.],
           [0., 1., 0.],
           [1., 0., 0.]])
    """

    name: ClassVar[str] = "levels"
    interval: ClassVar[tuple[float, float] | None] = None
    bounded: ClassVar[bool] = True

    def phi(self, u: Array) -> Array:
        """Set 1 in the first row, and compare with each code: (n,) gives (I, n)."""
        out = np.empty((self.n, u.size))
        out[0] = 1.0
        out[1:] = np.equal.outer(np.arange(self.n - 1), u)
        return out

    def portable(self, g: Builder, u: Value) -> Value:
        """Compare with each code; the first function is 1 whatever the code."""
        code = np.arange(-1.0, self.n - 1.0)[:, None]
        return g.number(g.equal(u, code) | (code < 0.0))

    def psi(self, u: Array) -> Array:
        """Evaluate the functions themselves: (n,) gives (I, n)."""
        return self.phi(u)

    def expansion(self) -> Array:
        """Mark that a function times itself or 1 is itself, and times another deviation is 0."""
        i = np.arange(self.n)
        C = np.zeros((self.n, self.n, self.n))
        C[i, i, i] = C[0, i, i] = C[i, 0, i] = 1.0
        return C

    def values_over(self, low: float, high: float, n: int) -> Array:
        """All levels, and one that is none."""
        return np.arange(-1.0, self.n)

    def constant(self) -> Array:
        """Pick the first function, which is 1."""
        return first(self.n)

    def typical(self) -> Array:
        """Keep what all categories have in common."""
        return first(self.n)

    def novel(self, u: Array) -> Mask:
        """No code of a category."""
        return ~(u >= 0.0)

    def portable_novel(self, g: Builder, u: Value) -> Value:
        """No code of a category."""
        return ~(u >= 0.0)
