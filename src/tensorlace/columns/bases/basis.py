"""What every basis is, and the few tools the bases share."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, TypeVar, final

import numpy as np
import numpy.typing as npt

from tensorlace._types import Array, Mask
from tensorlace.errors import InputError
from tensorlace.portable import Builder, Value

__all__ = [
    "Basis",
    "check_lengthscale",
    "check_whole",
    "degree_closure",
    "first",
    "frequency_closure",
    "harmonics",
    "nearest_constant",
    "powers",
    "without_traces",
]

_Number = TypeVar("_Number", bound=np.generic)


@dataclass(frozen=True)
class Basis(ABC):
    """``I`` functions of one real variable, closed under products.

    Features come first and rows last, so that each feature is one contiguous run of rows.

    Parameters
    ----------
    n : int
        ``I``, the number of functions.

    Attributes
    ----------
    name : str
        What the basis is called.
    interval : tuple of float or None
        Where training rows should lie; ``None`` means the values themselves are what counts.
    bounded : bool
        The functions say nothing new beyond ``interval`` (they clip, repeat or vanish), so a
        variable without bounds must not be handed to them.
    """

    n: int

    name: ClassVar[str]
    interval: ClassVar[tuple[float, float] | None]
    bounded: ClassVar[bool]

    def __post_init__(self) -> None:
        """Refuse a basis without functions."""
        check_whole(self, "n", self.n, 1)

    @abstractmethod
    def phi(self, u: Array) -> Array:
        """Evaluate the functions: ``u`` of shape (n,) gives (I, n), C-contiguous."""

    @abstractmethod
    def psi(self, u: Array) -> Array:
        """Evaluate the functions that products expand in: (n,) gives (S, n), C-contiguous."""

    @abstractmethod
    def expansion(self) -> Array:
        """Compute ``C`` afresh; callers want :meth:`closure`, which remembers it."""

    def values_over(self, low: float, high: float, n: int) -> Array:
        """Variables all over the range of the training rows, about ``n`` of them."""
        return np.linspace(low, high, n)

    @property
    def described(self) -> "Basis":
        """What a person would call it: itself, or what it is made from."""
        return self

    @abstractmethod
    def constant(self) -> Array:
        """Coefficients (I,) with ``phi(u)^T c = 1``, or as near to it as the basis comes."""

    def typical(self) -> Array:
        """Features (I,) of a value nobody knows: their averages over the home interval."""
        return _averages(self).copy()

    def novel(self, u: Array) -> Mask:
        """Tell which variables (n,) stand for something that no training row had."""
        return np.isnan(u)

    def portable(self, g: Builder, u: Value) -> Value:
        """`phi` as a graph: ``u`` of shape (n,) gives (I, n).

        Raises
        ------
        InputError
            Unless the basis has a portable form.
        """
        raise InputError(
            f"the {self.name} basis has no portable form, which exports and pages need: give "
            f"{type(self).__name__} a method portable(g, u)"
        )

    def portable_novel(self, g: Builder, u: Value) -> Value | None:
        """`novel` as a graph: a mask (n,), or None if nothing ever is."""
        return g.isnan(u)

    @final
    def closure(self) -> Array:
        """Expansion of products: ``phi_i phi_j = sum_s C_ijs psi_s``.

        Returns
        -------
        ndarray of shape (I, I, S)
            ``C``, symmetric in its first two axes, read-only.
        """
        return _remembered(self)


@lru_cache(maxsize=64)
def _remembered(basis: Basis) -> Array:
    C = basis.expansion()
    C.flags.writeable = False  # every equal basis is handed this same array
    return C


@lru_cache(maxsize=64)
def _averages(basis: Basis) -> Array:
    node, weight = np.polynomial.legendre.leggauss(4 * basis.n + 16)
    low, high = basis.interval or (0.0, 0.0)
    average: Array = basis.phi(low + (high - low) * 0.5 * (node + 1.0)) @ (0.5 * weight)
    return average


def check_whole(basis: Basis, quantity: str, value: object, least: int) -> None:
    """Refuse a ``value`` that is not a whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(
            f"the {basis.name} basis was given {quantity} = {value!r}; "
            f"use a whole number of at least {least}"
        )


def check_lengthscale(basis: Basis, lengthscale: float) -> None:
    """Refuse a lengthscale that is not a positive finite number."""
    if not (math.isfinite(lengthscale) and lengthscale > 0.0):
        raise InputError(
            f"the {basis.name} basis was given lengthscale = {lengthscale!r}; use a positive "
            "number, in units of the home interval [0, 1]"
        )


def powers(x: npt.NDArray[_Number], n: int) -> npt.NDArray[_Number]:
    """Powers ``x^0 ... x^(n-1)`` by doubling.

    ``x^(k+1) ... x^(2k)`` is ``x^k`` times ``x^1 ... x^k``: about ``log2 n`` vectorised products.
    The relative error of ``x^k`` is at most ``k`` roundings, as with one product after another.

    Parameters
    ----------
    x : ndarray of shape (rows,)
        Real or complex.
    n : int
        How many powers, at least one.

    Returns
    -------
    ndarray of shape (n, rows)

    Examples
    --------
    >>> powers(np.array([2.0, -1.0]), 4)
    array([[ 1.,  1.],
           [ 2., -1.],
           [ 4.,  1.],
           [ 8., -1.]])
    """
    E: npt.NDArray[Any] = np.empty((n, x.size), dtype=x.dtype)
    E[0] = 1
    if n > 1:
        E[1] = x
    k = 1
    while k + 1 < n:
        m = min(k, n - 1 - k)
        np.multiply(E[k], E[1 : m + 1], out=E[k + 1 : k + m + 1])
        k += m
    return E


def harmonics(theta: Array, n: int) -> npt.NDArray[np.complex128]:
    """``exp(i k theta)`` for ``k = 0 ... n-1``: one sine and one cosine per row, then products.

    Parameters
    ----------
    theta : ndarray of shape (rows,)
    n : int

    Returns
    -------
    complex ndarray of shape (n, rows)
    """
    z = np.empty(theta.size, dtype=np.complex128)
    z.real = np.cos(theta)
    z.imag = np.sin(theta)
    return powers(z, n)


def without_traces(a: Array) -> Array:
    """Amplitudes (I,) with those that mean nothing set to zero.

    Their products would be subnormal numbers, on which arithmetic is many times slower.

    >>> without_traces(np.array([1.0, 1e-20, 1e-200]))
    array([1.e+00, 1.e-20, 0.e+00])
    """
    return np.where(np.abs(a) < 1e-150, 0.0, a)


def degree_closure(n: int) -> Array:
    """``C`` of functions whose degrees add: ``C_ijs = 1`` where ``s = i + j``; (n, n, 2n-1)."""
    i, j = np.indices((n, n))
    C = np.zeros((n, n, 2 * n - 1))
    C[i, j, i + j] = 1.0
    return C


def frequency_closure(n: int) -> Array:
    """``C`` of cosines: ``cos i cos j = cos(i+j)/2 + cos(i-j)/2``; (n, n, 2n-1)."""
    i, j = np.indices((n, n))
    C = np.zeros((n, n, 2 * n - 1))
    C[i, j, i + j] = 0.5
    C[i, j, abs(i - j)] += 0.5  # both are the same function when i or j is 0
    return C


def first(n: int) -> Array:
    """Coefficients (n,) of the first function alone."""
    c = np.zeros(n)
    c[0] = 1.0
    return c


def nearest_constant(basis: Basis, low: float, high: float) -> Array:
    """Least-squares fit of the function 1 on ``[low, high]``, for a basis that cannot reach it.

    Small singular values are dropped rather early: the fit starts an optimiser, for which
    moderate coefficients are worth more than the last digits of flatness.

    Returns
    -------
    ndarray of shape (I,)
    """
    # Gauss-Legendre nodes, enough to resolve the square of the fastest function.
    node, weight = np.polynomial.legendre.leggauss(4 * basis.n + 16)
    root = np.sqrt(weight)
    u = low + (high - low) * 0.5 * (node + 1.0)
    c = np.linalg.lstsq((basis.phi(u) * root).T, root, rcond=1e-4)[0]
    return c.astype(np.float64)
