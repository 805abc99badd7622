"""How one column becomes a small feature vector: one file per basis.

Imports from: portable.
"""

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
    "BSpline",
    "Basis",
    "Chebyshev",
    "Cosine",
    "Fourier",
    "Indicator",
    "Legendre",
    "Levels",
    "Missing",
    "Polynomial",
    "Sine",
    "Subset",
    "UnitPolynomial",
]
