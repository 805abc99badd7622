"""A numeric column some of whose values are missing."""

from dataclasses import dataclass, field
from typing import ClassVar, final

import numpy as np

from tensorlace._types import Array, Mask
from tensorlace.columns.bases.basis import Basis
from tensorlace.portable import Builder, Value

__all__ = ["Missing"]


@final
@dataclass(frozen=True)
class Missing(Basis):
    r"""Another basis, and one more function that is 1 where the value is missing and 0 elsewhere.

    A missing value is a NaN. There the other functions take their typical values :math:`t`, and
    the products expand in those of the base, set to 0, and the new function:
    :math:`C_{ij} = t_i t_j` with :math:`t_I = 1`. So ``S`` is one more than that of the base.

    Parameters
    ----------
    base : Basis
        The functions of a value that is there.

    Examples
    --------
    >>> import numpy as np
    >>> from tensorlace.columns.bases import Legendre
    >>> Missing(Legendre(2)).phi(np.array([0.5, np.nan]))
    array([[1. , 1. ],
           [0.5, 0. ],
           [0. , 1. ]])
    """

    n: int = field(init=False)
    base: Basis

    name: ClassVar[str] = "missing"

    def __post_init__(self) -> None:
        """Count the functions."""
        object.__setattr__(self, "n", self.base.n + 1)

    @property
    def interval(self) -> tuple[float, float] | None:  # type: ignore[override]
        """Home interval of the base."""
        return self.base.interval

    @property
    def bounded(self) -> bool:  # type: ignore[override]
        """Whether the base is."""
        return self.base.bounded

    def phi(self, u: Array) -> Array:
        """Evaluate the base, or its typical values, and the flag: (n,) gives (I, n)."""
        missing = np.isnan(u)
        out = np.empty((self.n, u.size))
        out[:-1] = self.base.phi(np.where(missing, 0.0, u))
        out[:-1, missing] = self.base.typical()[:, None]
        out[-1] = missing
        return out

    def portable(self, g: Builder, u: Value) -> Value:
        """The base, or its typical values, and the flag."""
        missing = g.isnan(u)
        base = self.base.portable(g, g.where(missing, 0.0, u))
        typical = self.base.typical()[:, None]
        return g.concat([g.where(missing, typical, base), g.stack([g.number(missing)])])

    def psi(self, u: Array) -> Array:
        """Evaluate the product functions of the base, or zeros, and the flag: (S, n)."""
        missing = np.isnan(u)
        psi = self.base.psi(np.where(missing, 0.0, u))
        psi[:, missing] = 0.0
        return np.concatenate([psi, missing[None].astype(np.float64)])

    def expansion(self) -> Array:
        """Keep that of the base, and add what the products are where the value is missing."""
        C = np.pad(self.base.closure(), [(0, 1)] * 3)
        t = np.append(self.base.typical(), 1.0)
        C[:, :, -1] = np.multiply.outer(t, t)
        return C

    def values_over(self, low: float, high: float, n: int) -> Array:
        """Those of the base, and a missing one."""
        return np.append(self.base.values_over(low, high, n), np.nan)

    @property
    def described(self) -> Basis:
        """The base."""
        return self.base.described

    def constant(self) -> Array:
        """Take the constant of the base, and let the flag add what lacks where it is missing."""
        c = self.base.constant()
        return np.append(c, 1.0 - self.base.typical() @ c)

    def typical(self) -> Array:
        """Features of a missing value."""
        return np.append(self.base.typical(), 1.0)

    def novel(self, u: Array) -> Mask:
        """Nothing is: a missing value is known."""
        return np.zeros(u.shape, dtype=np.bool_)

    def portable_novel(self, g: Builder, u: Value) -> None:
        """Nothing is."""
