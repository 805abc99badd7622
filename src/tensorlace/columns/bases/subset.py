"""Some of the functions of another basis."""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self, final

import numpy as np

from tensorlace._types import Array, Mask
from tensorlace.columns.bases.basis import Basis
from tensorlace.columns.bases.chebyshev import Chebyshev
from tensorlace.columns.bases.cosine import Cosine
from tensorlace.columns.bases.fourier import Fourier
from tensorlace.columns.bases.legendre import Legendre
from tensorlace.columns.bases.levels import Levels
from tensorlace.columns.bases.polynomial import Polynomial
from tensorlace.columns.bases.sine import Sine
from tensorlace.errors import InputError
from tensorlace.portable import Builder, Value

__all__ = ["Subset"]

_NESTED = (Chebyshev, Cosine, Fourier, Legendre, Levels, Polynomial, Sine)
"""Bases whose first functions are the same however many follow."""


@final
@dataclass(frozen=True)
class Subset(Basis):
    """The functions ``which`` of ``base``, the others left out.

    Products expand in those of the base, cut at the highest function kept where that is possible.

    Parameters
    ----------
    base : Basis
    which : tuple of int
        Rising numbers of functions of the base.

    Examples
    --------
    >>> import numpy as np
    >>> from tensorlace.columns.bases import Legendre
    >>> Subset(Legendre(5), (0, 2)).phi(np.array([0.0, 1.0]))
    array([[ 1. ,  1. ],
           [-0.5,  1. ]])
    """

    n: int = field(init=False)
    base: Basis
    which: tuple[int, ...]

    name: ClassVar[str] = "subset"

    def __post_init__(self) -> None:
        """Count the functions."""
        numbers = list(self.which)
        if not numbers or numbers != sorted(set(numbers) & set(range(self.base.n))):
            raise InputError(
                f"a subset of the {self.base.name} basis was given the functions {self.which}; "
                f"use rising numbers from 0 to {self.base.n - 1}"
            )
        object.__setattr__(self, "n", len(numbers))

    @classmethod
    def of(cls, base: Basis, which: tuple[int, ...]) -> Basis | Self:
        """The plainest basis of these functions: a smaller one of the same kind if it exists.

        >>> from tensorlace.columns.bases import Legendre
        >>> Subset.of(Legendre(5), (0, 1, 2))
        Legendre(n=3)
        """
        if isinstance(base, Subset):
            return cls.of(base.base, tuple(base.which[k] for k in which))
        if isinstance(base, _NESTED) and which:
            # an even number of Fourier functions ends with a cosine, so any cut is a basis
            base = replace(base, n=which[-1] + 1)
        return base if which == tuple(range(base.n)) else cls(base, which)

    @property
    def interval(self) -> tuple[float, float] | None:  # type: ignore[override]
        """Home interval of the base."""
        return self.base.interval

    @property
    def bounded(self) -> bool:  # type: ignore[override]
        """Whether the base is."""
        return self.base.bounded

    def phi(self, u: Array) -> Array:
        """Evaluate the base and keep some rows: (n,) gives (I, n)."""
        return np.ascontiguousarray(self.base.phi(u)[list(self.which)])

    def portable(self, g: Builder, u: Value) -> Value:
        """Some functions of the base."""
        return g.take(self.base.portable(g, u), self.which)

    def psi(self, u: Array) -> Array:
        """Evaluate the product functions of the base: (n,) gives (S, n)."""
        return self.base.psi(u)

    def expansion(self) -> Array:
        """Keep those products of the base that both functions of are kept."""
        return self.base.closure()[np.ix_(self.which, self.which)].copy()

    def values_over(self, low: float, high: float, n: int) -> Array:
        """Those of the base."""
        return self.base.values_over(low, high, n)

    @property
    def described(self) -> Basis:
        """The base."""
        return self.base.described

    def constant(self) -> Array:
        """Keep what is left of the constant of the base."""
        return self.base.constant()[list(self.which)]

    def typical(self) -> Array:
        """Keep some of the typical values of the base."""
        return self.base.typical()[list(self.which)]

    def novel(self, u: Array) -> Mask:
        """What is novel to the base."""
        return self.base.novel(u)

    def portable_novel(self, g: Builder, u: Value) -> Value | None:
        """What is novel to the base."""
        return self.base.portable_novel(g, u)
