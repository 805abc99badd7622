"""Bases: how one column becomes a small feature vector.

A basis maps the variable ``u`` of a column to ``phi(u)`` in ``R^I`` and knows how products of two
of its functions expand, ``phi_i phi_j = sum_s C_ijs psi_s``, which is what makes the structured
Gram cheap. One file per basis; :mod:`tensorlace.bases.basis` holds what they share.
"""

from tensorlace._types import Array, Mask
from tensorlace.columns.bases.basis import Basis
from tensorlace.columns.bases.bspline import BSpline
from tensorlace.columns.bases.chebyshev import Chebyshev
from tensorlace.columns.bases.cosine import Cosine
from tensorlace.columns.bases.fourier import Fourier
from tensorlace.columns.bases.indicator import Indicator
from tensorlace.columns.bases.legendre import Legendre
from tensorlace.columns.bases.levels import Levels
from tensorlace.columns.bases.missing import Missing
from tensorlace.columns.bases.polynomial import Polynomial
from tensorlace.columns.bases.sine import Sine
from tensorlace.columns.bases.subset import Subset
from tensorlace.columns.bases.unit_polynomial import UnitPolynomial

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
