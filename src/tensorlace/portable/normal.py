"""The normal distribution function as a graph of operations that any runtime has."""

from functools import lru_cache
from typing import Any

import numpy as np
import scipy
from numpy.polynomial.chebyshev import chebinterpolate

from tensorlace._types import Array
from tensorlace.portable.builder import Builder, Value

__all__ = ["portable_normal", "portable_scaled_normal"]

_TURN = 4.0
"""Where the map ``t = (z - k) / (z + k)`` of the half line to (-1, 1) is 0.
decisions.md#scale-of-the-target"""

_DEGREE = 20
"""Degree of the Chebyshev series: with it the tail is right to 6e-15 of itself."""


@lru_cache(maxsize=1)
def _coefficients() -> Array:
    """Chebyshev coefficients of ``(1 + z) R(z)`` in t, R the ratio of tail to density at z."""

    def ratio(t: Any) -> Any:
        z = _TURN * (1.0 + t) / (1.0 - t)
        return (1.0 + z) * np.sqrt(0.5 * np.pi) * scipy.special.erfcx(z / np.sqrt(2.0))

    return np.asarray(chebinterpolate(ratio, _DEGREE))


def portable_normal(g: Builder, x: Value) -> tuple[Value, Value]:
    """Probability below x, and density at x, of a standard normal, any shape.

    >>> from tensorlace.portable import Builder, Input, evaluate
    >>> g = Builder()
    >>> below, density = portable_normal(g, g.column(g.input(Input("x", 1)), 0))
    >>> graph = g.build({"below": below, "density": density})
    >>> evaluate(graph, {"x": np.array([[-1.0], [0.0], [2.0]])})["below"].round(6)
    array([0.158655, 0.5     , 0.97725 ])
    """
    density = g.exp(x * x * -0.5) * _AT_ZERO
    tail = density * _ratio(g, g.abs(x))
    return g.where(x < 0.0, tail, 1.0 - tail), density


def portable_scaled_normal(g: Builder, x: Value, log_factor: Value) -> Value:
    """``exp(log_factor)`` times the probability below x, any shape.

    It is right also where the factor alone is not finite.
    """
    tail = g.exp(log_factor - x * x * 0.5) * _ratio(g, g.abs(x)) * _AT_ZERO
    return g.where(x < 0.0, tail, g.exp(log_factor) - tail)


_AT_ZERO = float(1.0 / np.sqrt(2.0 * np.pi))
"""Density at 0."""


def _ratio(g: Builder, z: Value) -> Value:
    """Ratio of tail to density at z >= 0."""
    t = (z - _TURN) / (z + _TURN)
    twice, coefficients = t + t, _coefficients().tolist()
    after, now = g.expand(0.0, z), g.expand(coefficients[-1], z)
    for c in coefficients[-2:0:-1]:  # Clenshaw
        after, now = now, twice * now - after + c
    return (t * now - after + coefficients[0]) / (z + 1.0)
