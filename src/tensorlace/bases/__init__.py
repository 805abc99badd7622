"""Bases: how one column becomes a small feature vector.

A basis maps the variable ``u`` of a column to ``phi(u)`` in ``R^I`` and knows how products of two
of its functions expand, ``phi_i phi_j = sum_s C_ijs psi_s``, which is what makes the structured
Gram cheap. One file per basis; :mod:`tensorlace.bases.basis` holds what they share.
"""

from tensorlace.bases.basis import Array, Basis, Mask
from tensorlace.bases.bspline import BSpline
from tensorlace.bases.chebyshev import Chebyshev
from tensorlace.bases.cosine import Cosine
from tensorlace.bases.fourier import Fourier
from tensorlace.bases.indicator import Indicator
from tensorlace.bases.legendre import Legendre
from tensorlace.bases.levels import Levels
from tensorlace.bases.missing import Missing
from tensorlace.bases.polynomial import Polynomial
from tensorlace.bases.sine import Sine
from tensorlace.bases.subset import Subset
from tensorlace.bases.unit_polynomial import UnitPolynomial

__all__ = [
    "Array",
    "BSpline",
    "Basis",
    "Chebyshev",
    "Cosine",
    "Fourier",
    "Indicator",
    "Legendre",
    "Levels",
    "Mask",
    "Missing",
    "Polynomial",
    "Sine",
    "Subset",
    "UnitPolynomial",
]
