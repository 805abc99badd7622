"""Split-conformal calibration: factors on interval widths from rows held out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, final

import numpy as np
from scipy.special import ndtri

from tensorlace._types import Array
from tensorlace.errors import InputError

__all__ = ["Calibration"]

_MOST = 1365
"""Residuals kept, with two cumulative weights each: 4095 numbers."""


_TAIL = 256
"""Of these at each end, where every one counts."""


@final
@dataclass(frozen=True, eq=False)
class Calibration:
    """Sorted residuals of held-out rows, thinned out in the middle if there are many.

    A residual that was left out is replaced by the next one outwards, so that coverage is at least
    what was asked for; it is above by at most 0.12 %.

    Attributes
    ----------
    z : (k,) array
        Residuals, rising.
    below, upto : (k,) arrays
        Weight of all rows before each, and up to and with it.
    n_rows : float
        Rows, or their total weight.
    std_factor : float
        Root mean square residual: predicted standard deviations times it are right in the mean.
    """

    z: Array
    below: Array
    upto: Array
    n_rows: float
    std_factor: float

    @classmethod
    def of(cls, z: Array, weight: Array | None = None) -> Self:
        """Calibration from residuals (n,) of held-out rows; a weight is a number of repetitions.

        >>> Calibration.of(np.array([0.3, -2.0, 1.1])).residual([0.25, 0.75])
        array([-2. ,  1.1])
        """
        w = np.ones(len(z)) if weight is None else weight
        z, w = z[w > 0], w[w > 0]
        if not z.size or not np.all(np.isfinite(z)):
            raise InputError(
                f"{np.count_nonzero(~np.isfinite(z))} of {z.size} rows to calibrate with cannot be "
                f"compared with their prediction: give at least one row, and a model with noise"
            )
        order = np.argsort(z, kind="stable")
        upto = np.cumsum(w[order])
        n, kept = len(z), np.arange(len(z))
        if n > _MOST:
            middle = np.linspace(_TAIL, n - 1 - _TAIL, _MOST - 2 * _TAIL).astype(int)
            kept = np.concatenate([kept[:_TAIL], middle, kept[-_TAIL:]])
        below = np.concatenate([[0.0], upto[:-1]])
        factor = float(np.sqrt(w @ z**2 / w.sum()))
        return cls(z[order][kept], below[kept], upto[kept], float(upto[-1]), factor)

    @property
    def largest_coverage(self) -> float:
        """Largest coverage of a finite interval, ``(n - 1) / (n + 1)``."""
        return max(0.0, 1.0 - 2.0 * max(1.0, self.upto[0]) / (self.n_rows + 1.0))

    def residual(self, q: Sequence[float] | Array) -> Array:
        """Residuals (k,) whose quantiles are valid for the levels ``q`` (k,), rising with q.

        At or below the value for q > ½ a new target is with probability q or more, at or above that
        for q < ½ with probability 1 - q or more. Infinite where n rows cannot promise that.
        """
        p = np.asarray(q, dtype=float)
        rank, slack = (self.n_rows + 1.0) * p, 1e-9 * (self.n_rows + 1.0)
        up = np.searchsorted(self.upto, rank - slack)  # the first with at least that weight
        down = np.searchsorted(self.below, rank - 1.0 + slack, side="right") - 1
        padded = np.concatenate([[-np.inf], self.z, [np.inf]])
        upper, lower = padded[up + 1], padded[down + 1]
        half = abs(2.0 * p - 1.0) < 1e-12
        with np.errstate(invalid="ignore"):
            middle = np.where(np.isinf(lower) | np.isinf(upper), 0.0, (lower + upper) / 2.0)
        out = np.where(half, middle, np.where(p > 0.5, upper, lower))
        return np.where(p <= 0.0, -np.inf, np.where(p >= 1.0, np.inf, out))

    def standardised(self, z: Array) -> Array:
        """Residuals (n,) relative to the held-out ones: standard normal if rows are like those."""
        knots = np.concatenate([self.below[:1], self.upto])
        count = knots[np.searchsorted(self.z, z, side="right")]
        out: Array = ndtri((count + 0.5) / (self.n_rows + 1.0))
        return out
