"""Student's t about the response: weights of rows, densities, and how heavy tails are.

Student's t is a normal whose precision is random, ``y ~ N(f, 1 / (β τ))`` with τ from
``Gamma(ν/2, ν/2)``. Given a residual r, the expected τ is ``(ν + 1) / (ν + β r²)``: a row counts
with that weight in least squares, and so expectation maximisation finds the most probable weights
of a network by least squares alone. The shape ν is that of highest likelihood, for which it is
enough to know how many residuals have which size.
"""

import math
from typing import NamedTuple

import numpy as np

from tensorlace._types import Array

__all__ = [
    "DISTRUSTED",
    "FIRST_DEGREES",
    "Shape",
    "furthest",
    "gain_of_tails",
    "information",
    "log_density",
    "row_weights",
    "shape_of",
    "size_counts",
]

DISTRUSTED = 0.1
"""Weight of a row below which it is distrusted: of 4 degrees of freedom, seven standard deviations
of the core away. docs/decisions.md, A fit with tails."""

FIRST_DEGREES = 4.0
"""Degrees of freedom that a fit with tails begins with. docs/decisions.md, A fit with tails."""

LEAST_DEGREES = 2.2
"""Fewest degrees of freedom: the variance ν / (ν - 2) is still finite.
docs/decisions.md, A fit with tails."""

MOST_DEGREES = 50.0
"""Most degrees of freedom: beyond, tails are those of the normal.
docs/decisions.md, A fit with tails."""

MOST_SURPRISING = 20.0
"""Standard deviations that a residual counts for at most when the shape is found: how far a wild
row is away says nothing about the others. docs/decisions.md, A fit with tails."""

_STEP = 0.1
_LOG_SIZES = np.arange(-600, 601) * _STEP
"""Logarithms of squared residuals at which rows are counted."""

_MEDIAN = 0.454936423119572
"""Of the square of a standard normal."""

_GRID = 9
_NEWTON_STEPS, _NEWTON_TOL, _FARTHEST = 60, 1e-9, 40.0


class Shape(NamedTuple):
    """Of the distribution of residuals.

    Attributes
    ----------
    degrees : float
        ν.
    precision : float
        Of the core, in units of that by which residuals were counted.
    """

    degrees: float
    precision: float


def row_weights(squares: Array, degrees: float) -> Array:
    """Expected precisions τ (n,) of rows, from squared residuals in units of the core.

    >>> row_weights(np.array([0.0, 1.0, 1e6]), 4.0).round(6).tolist()
    [1.25, 1.0, 5e-06]
    """
    return (degrees + 1.0) / (degrees + squares)


def information(degrees: float) -> float:
    """Fisher information about the response, in units of the core's precision.

    Weights τ are one on average, but a weight that is itself inferred says less.

    >>> information(4.0), information(np.inf)
    (0.7142857142857143, 1.0)
    """
    return 1.0 if np.isinf(degrees) else (degrees + 1.0) / (degrees + 3.0)


def log_density(squares: Array, degrees: float) -> Array:
    """Logarithm of the density (n,) in units of the core, from squared residuals in these units.

    >>> log_density(np.array([0.0]), np.inf).round(4).tolist()
    [-0.9189]
    """
    if np.isinf(degrees):
        return -0.5 * squares - 0.5 * np.log(2.0 * np.pi)
    half = 0.5 * (degrees + 1.0)
    constant = _normaliser(degrees) - 0.5 * np.log(np.pi)
    return np.asarray(constant - half * np.log1p(squares / degrees))


def size_counts(squares: Array, weight: Array | None = None) -> Array:
    """How many rows have a residual of which size, as sums that add up over blocks of rows.

    A row between two sizes is shared by them, so that counts change continuously with residuals.

    Parameters
    ----------
    squares : (n,) array
        Squared residuals, in units of some precision.
    weight : (n,) array, optional
        Repetitions.
    """
    with np.errstate(divide="ignore"):
        log = np.log(squares)
    place = (np.clip(log, _LOG_SIZES[0], _LOG_SIZES[-1]) - _LOG_SIZES[0]) / _STEP
    below = np.minimum(place.astype(np.intp), len(_LOG_SIZES) - 2)
    w = np.ones(len(squares)) if weight is None else weight
    upper = w * (place - below)
    K = len(_LOG_SIZES)
    sums = np.bincount(below, w - upper, K) + np.bincount(below + 1, upper, K)
    return np.asarray(sums, dtype=np.float64)


def shape_of(counts: Array, degrees: float | None = None) -> Shape:
    """Degrees of freedom and precision of highest likelihood for the counts of `size_counts`.

    Only the shape is of use where weights have been fitted to the same rows: the precision knows
    nothing of them. With ``degrees`` given, the precision alone is found.
    """
    kept = counts > 0.0
    log, count = _LOG_SIZES[kept], counts[kept]
    middle = _median(counts)
    squares = np.minimum(np.exp(log - middle) * _MEDIAN, MOST_SURPRISING**2)
    nu = _degrees(squares, count) if degrees is None else degrees
    (log_b,) = _log_precisions(squares, count, np.array([nu]), np.zeros(1))
    return Shape(nu, float(np.exp(log_b - middle) * _MEDIAN))


def gain_of_tails(counts: Array) -> float:
    """Nats per row by which Student's t describes the counted residuals better than a normal.

    Of normal residuals it is next to zero.
    """
    shape = shape_of(counts)
    kept = counts > 0.0
    squares, share = np.exp(_LOG_SIZES[kept]), counts[kept] / counts.sum()
    heavy = log_density(shape.precision * squares, shape.degrees) + 0.5 * np.log(shape.precision)
    normal = -0.5 * (np.log(2.0 * np.pi * float(share @ squares)) + 1.0)
    return float(share @ heavy) - normal


def furthest(counts: Array) -> float:
    """How far the furthest of the counted residuals is, in standard deviations of the core."""
    largest = _LOG_SIZES[np.flatnonzero(counts > 0.0)[-1]]
    return float(np.sqrt(shape_of(counts).precision) * np.exp(0.5 * largest))


def _normaliser(degrees: float) -> float:
    """Logarithm of ``Γ((ν + 1) / 2) / Γ(ν / 2) / √ν``."""
    return math.lgamma(0.5 * (degrees + 1.0)) - math.lgamma(0.5 * degrees) - 0.5 * math.log(degrees)


def _median(counts: Array) -> float:
    """Logarithm of the median size, between the two sizes that it lies between."""
    upto = np.cumsum(counts)
    return float(np.interp(0.5 * upto[-1], upto, _LOG_SIZES))


def _degrees(squares: Array, count: Array) -> float:
    """Degrees of freedom of highest likelihood: where its slope is zero, near the best of a few."""
    from scipy.optimize import brentq  # takes longer to import than a small fit takes
    from scipy.special import digamma

    log = np.linspace(np.log(LEAST_DEGREES), np.log(MOST_DEGREES), _GRID)
    log_b = _log_precisions(squares, count, np.exp(log), np.zeros(_GRID))
    best = int(np.argmax(_likelihoods(squares, count, np.exp(log), log_b)))
    low, high = max(best - 1, 0), min(best + 1, _GRID - 1)

    def slope(log_degrees: float) -> float:
        nu = np.exp([log_degrees])
        start = np.array([np.interp(log_degrees, log, log_b)])
        z2 = np.exp(_log_precisions(squares, count, nu, start)[0]) * squares
        constant = 0.5 * (digamma(0.5 * (nu[0] + 1.0)) - digamma(0.5 * nu[0]) - 1.0 / nu[0])
        each = 0.5 * ((nu[0] + 1.0) / nu[0] * z2 / (nu[0] + z2) - np.log1p(z2 / nu[0]))
        return float(constant * count.sum() + each @ count)

    if slope(log[low]) <= 0.0:
        return float(np.exp(log[low]))
    if slope(log[high]) >= 0.0:
        return float(np.exp(log[high]))
    return float(np.exp(brentq(slope, log[low], log[high], xtol=1e-12)))


def _likelihoods(squares: Array, count: Array, degrees: Array, log_b: Array) -> Array:
    """Log likelihood (G,) for each of the degrees (G,) and logarithms of precisions (G,)."""
    half = 0.5 * (degrees + 1.0)
    constant = np.array([_normaliser(float(nu)) for nu in degrees])
    each = np.log1p((np.exp(log_b) / degrees)[:, None] * squares) @ count
    return np.asarray((constant + 0.5 * log_b) * count.sum() - half * each)


def _log_precisions(squares: Array, count: Array, degrees: Array, log: Array) -> Array:
    """Logarithms (G,) of the precisions of highest likelihood for degrees (G,).

    Newton's method for ``Σ (τ z² - 1) = 0``, that is, rows count for as many as they are.
    """
    nu, total = degrees[:, None], count.sum()
    for _ in range(_NEWTON_STEPS):
        z2 = np.exp(log)[:, None] * squares
        near = nu / (nu + z2)
        each = (nu + 1.0) * (1.0 - near)
        surplus, slope = each @ count - total, (each * near) @ count
        step = np.clip(surplus / np.maximum(slope, 1e-300), -1.0, 1.0)
        log = np.clip(log - step, -_FARTHEST, _FARTHEST)  # far only if most residuals are zero
        if np.abs(step).max() < _NEWTON_TOL:
            break
    return log
