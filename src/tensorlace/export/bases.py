"""Bases as operators: from the variable (n, 1) to features (n, I)."""

import numpy as np

from tensorlace.columns.bases import (
    Basis,
    BSpline,
    Chebyshev,
    Cosine,
    Fourier,
    Indicator,
    Legendre,
    Levels,
    Missing,
    Polynomial,
    Sine,
    Subset,
    UnitPolynomial,
)
from tensorlace.export.graph import Graph

__all__ = ["features", "novel"]


def features(g: Graph, basis: Basis, u: str) -> str:
    """`Column.phi`: typical features where no training row had the like."""
    new = novel(g, basis, u)
    if new is None:
        return _phi(g, basis, u)
    return g.op("Where", new, basis.typical()[None], _phi(g, basis, _known(g, new, u)))


def novel(g: Graph, basis: Basis, u: str) -> str | None:
    """`Basis.novel`: a mask (n, 1), or None if nothing ever is."""
    if isinstance(basis, Subset):
        return novel(g, basis.base, u)
    if isinstance(basis, Missing):
        return None
    if isinstance(basis, Indicator | Levels):
        return g.op("Not", g.op("GreaterOrEqual", u, 0.0))
    return g.op("IsNaN", u)


def _known(g: Graph, mask: str, u: str) -> str:
    return g.op("Where", mask, 0.0, u)


def _phi(g: Graph, basis: Basis, u: str) -> str:
    n, k = basis.n, np.arange(float(basis.n))[None]
    match basis:
        case Subset():
            return g.columns(_phi(g, basis.base, u), basis.which)
        case Missing():
            mask = g.op("IsNaN", u)
            phi = _phi(g, basis.base, _known(g, mask, u))
            phi = g.op("Where", mask, basis.base.typical()[None], phi)
            return g.side_by_side([phi, g.as_number(mask)])
        case Indicator():
            return g.as_number(g.op("Equal", u, k))
        case Levels():
            one = g.op("Pow", u, 0.0)
            return g.side_by_side([one, g.as_number(g.op("Equal", u, k[:, :-1]))][:n])
        case Cosine():
            angle = g.op("Mul", g.op("Clip", u, 0.0, 1.0), np.pi)
            return g.op("Mul", g.op("Cos", g.op("Mul", angle, k)), basis.amplitude()[None])
        case Sine():
            angle = g.op("Mul", g.op("Add", g.op("Clip", u, -0.5, 1.5), 0.5), np.pi / 2.0)
            waves = g.op("Sin", g.op("Mul", angle, k + 1.0))
            return g.op("Mul", waves, basis._amplitude()[None])
        case Fourier():
            return _fourier(g, n, u)
        case Polynomial():
            return g.op("Pow", u, k)
        case UnitPolynomial():
            return _unit_polynomial(g, n, u)
        case Chebyshev():
            return _recurrence(g, n, u, [(2.0, 1.0)] * n)
        case Legendre():
            return _recurrence(g, n, u, [((2 * j + 1) / (j + 1), j / (j + 1)) for j in range(n)])
        case BSpline():
            return _bspline(g, basis, u)
    raise TypeError(f"no operators for the basis {basis.name}")


def _fourier(g: Graph, n: int, u: str) -> str:
    """``1, √2 cos θ, √2 sin θ, ...``; a sine is a cosine a quarter of a turn later."""
    turn = g.op("Sub", u, g.op("Round", u))
    i = np.arange(n)
    angle = g.op("Mul", g.op("Mul", turn, 2.0 * np.pi), ((i + 1) // 2 * 1.0)[None])
    even = (i % 2 == 0)[None]
    waves = g.op("Where", even, g.op("Sin", angle), g.op("Cos", angle))
    waves = g.op("Mul", waves, np.sqrt(2.0))
    return g.op("Where", (i == 0)[None], 1.0, waves)


def _unit_polynomial(g: Graph, n: int, u: str) -> str:
    """``x^i / n(x)``, in powers of 1/x where that is smaller."""
    large = g.op("Greater", g.op("Abs", u), 1.0)
    t = g.op("Where", large, g.op("Reciprocal", u), u)
    k = np.arange(float(n))[None]
    up = g.op("Pow", t, k)
    down = g.op("Pow", t, k[:, ::-1].copy())
    if n % 2 == 0:
        down = g.op("Mul", down, g.op("Sign", u))
    norm = g.op("Sqrt", g.row_squares(up))
    return g.op("Div", g.op("Where", large, down, up), norm)


def _recurrence(g: Graph, n: int, u: str, steps: list[tuple[float, float]]) -> str:
    """``p_0 = 1, p_1 = u, p_{j+1} = a_j u p_j - b_j p_{j-1}``."""
    one = g.op("Pow", u, 0.0)
    parts = [one, u]
    for a, b in steps[1 : n - 1]:
        ahead = g.op("Mul", g.op("Mul", u, parts[-1]), a)
        parts.append(g.op("Sub", ahead, g.op("Mul", parts[-2], b)))
    return g.side_by_side(parts[:n])


def _bspline(g: Graph, basis: BSpline, u: str) -> str:
    """Cox and de Boor: functions of each degree from two neighbours of the degree below."""
    knots, p = basis._knots(), basis.degree
    x = g.op("Clip", u, 0.0, 1.0)
    left, right = knots[:-1].copy(), knots[1:].copy()
    last = basis.n - 1  # the last cell that is not empty holds its right end
    right[last] = np.inf
    inside = g.op("And", g.op("GreaterOrEqual", x, left[None]), g.op("Less", x, right[None]))
    B = g.as_number(inside)
    for degree in range(1, p + 1):
        m = knots.size - 1 - degree
        width = knots[degree : degree + m + 1] - knots[: m + 1]
        slope = np.divide(1.0, width, out=np.zeros_like(width), where=width > 0.0)
        rising = g.op("Mul", g.op("Sub", x, knots[None, :m]), slope[None, :m])
        falling = g.op("Mul", g.op("Sub", knots[None, degree + 1 :], x), slope[None, 1 : m + 1])
        here, there = g.columns(B, range(m)), g.columns(B, range(1, m + 1))
        B = g.op("Add", g.op("Mul", rising, here), g.op("Mul", falling, there))
    return B
