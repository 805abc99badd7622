"""The normal distribution function as a graph of operations that any runtime has."""

from functools import lru_cache
from typing import Any

import numpy as np
import scipy
from numpy.polynomial.chebyshev import chebinterpolate

from tensorlace._types import Array
from tensorlace.portable.builder import Builder, Value

__all__ = ["portable_normal"]

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
    z = g.abs(x)
    density = g.exp(x * x * -0.5) * float(1.0 / np.sqrt(2.0 * np.pi))
    t = (z - _TURN) / (z + _TURN)
    twice, coefficients = t + t, _coefficients().tolist()
    after, now = g.expand(0.0, x), g.expand(coefficients[-1], x)
    for c in coefficients[-2:0:-1]:  # Clenshaw
        after, now = now, twice * now - after + c
    tail = density * (t * now - after + coefficients[0]) / (z + 1.0)
    return g.where(x < 0.0, tail, 1.0 - tail), density
