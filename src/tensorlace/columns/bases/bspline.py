"""B-splines on the unit interval."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import scipy

from tensorlace._types import Array
from tensorlace.columns.bases.basis import Basis, check_whole
from tensorlace.portable import Builder, Value

__all__ = ["BSpline"]


@final
@dataclass(frozen=True)
class BSpline(Basis):
    r"""B-splines :math:`B_i` of degree ``p`` on uniform knots, clamped at both ends of [0, 1].

    Only neighbours overlap, so :math:`\psi` are the products :math:`B_i B_{i+k}`,
    :math:`k = 0 \dots p`, and ``S = (p + 1)(I - p/2)``. The functions are non-negative and sum
    to 1. Values outside [0, 1] are treated as the nearer end.

    Parameters
    ----------
    n : int
        ``I``, the number of functions, at least ``p + 1``.
    degree : int, default 3
        ``p``: 0 is a histogram, 1 piecewise linear, 3 twice continuously differentiable.

    Examples
    --------
    >>> import numpy as np
    >>> BSpline(3, degree=1).phi(np.array([0.25, 1.0]))
    array([[0.5, 0. ],
           [0.5, 0. ],
           [0. , 1. ]])
    """

    degree: int = 3

    name: ClassVar[str] = "bspline"
    interval: ClassVar[tuple[float, float] | None] = (0.0, 1.0)
    bounded: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the degree, then that there are functions enough for it."""
        check_whole(self, "degree", self.degree, 0)
        check_whole(self, "n", self.n, self.degree + 1)

    def phi(self, u: Array) -> Array:
        """Evaluate ``B_i``: (n,) gives (I, n)."""
        if u.size == 0:  # SciPy refuses an empty set of points
            return np.zeros((self.n, 0))
        points = np.clip(u, 0.0, 1.0)
        matrix = scipy.interpolate.BSpline.design_matrix(points, self._knots(), self.degree)
        return np.ascontiguousarray(matrix.toarray().T, dtype=np.float64)

    def portable(self, g: Builder, u: Value) -> Value:
        """Cox and de Boor: functions of each degree from two neighbours of the degree below."""
        knots = self._knots()
        x = g.clip(u, 0.0, 1.0)
        left, right = knots[:-1, None], knots[1:, None].copy()
        right[self.n - 1] = np.inf  # the last cell that is not empty holds its right end
        B = g.number((x >= left) & (x < right))
        for degree in range(1, self.degree + 1):
            m = knots.size - 1 - degree
            width = knots[degree : degree + m + 1] - knots[: m + 1]
            slope = np.divide(1.0, width, out=np.zeros_like(width), where=width > 0.0)[:, None]
            rising = (x - knots[:m, None]) * slope[:m]
            falling = (knots[degree + 1 :, None] - x) * slope[1:]
            B = rising * g.slice(B, 0, m) + falling * g.slice(B, 1, m + 1)
        return B

    def psi(self, u: Array) -> Array:
        """Evaluate ``B_i B_{i+k}``, ordered by ``k``, then ``i``: (n,) gives (S, n)."""
        B = self.phi(u)
        out = np.empty((self._n_psi(), u.size))
        start = 0
        for k in range(self.degree + 1):
            stop = start + self.n - k
            np.multiply(B[: self.n - k], B[k:], out=out[start:stop])
            start = stop
        return out

    def expansion(self) -> Array:
        """One for the pair that a product belongs to, zero for pairs that do not overlap."""
        pairs = [(i, i + k) for k in range(self.degree + 1) for i in range(self.n - k)]
        C = np.zeros((self.n, self.n, len(pairs)))
        for s, (i, j) in enumerate(pairs):
            C[i, j, s] = C[j, i, s] = 1.0
        return C

    def constant(self) -> Array:
        """Add all functions, which sum to 1."""
        return np.ones(self.n)

    def typical(self) -> Array:
        """Integrate each function: its support over ``p + 1``."""
        knots, order = self._knots(), self.degree + 1
        return (knots[order:] - knots[:-order]) / order

    def _knots(self) -> Array:
        p = self.degree
        inner = np.linspace(0.0, 1.0, self.n - p + 1)
        return np.concatenate([np.zeros(p), inner, np.ones(p)])

    def _n_psi(self) -> int:
        p = self.degree
        return (p + 1) * self.n - p * (p + 1) // 2
