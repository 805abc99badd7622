"""Intervals that keep their promise: split conformal calibration on held-out rows.

The residual ``z = Φ⁻¹(F(y))`` of a held-out row says where in its predictive distribution the
target fell. A new row, exchangeable with n held-out ones, has ``P(z ≤ z_(k)) ≥ k / (n + 1)`` for
the k-th smallest of them, whatever the model got wrong. So the interval of coverage ``1 - α`` goes
from residual ``z_(⌊(n+1)α/2⌋)`` to ``z_(⌈(n+1)(1-α/2)⌉)``, taken through each row's own
distribution: wide where that is wide, moved where predictions are biased, and nested.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, final

import numpy as np
from scipy.special import ndtri

from tensorlace._types import Array
from tensorlace.errors import InputError
from tensorlace.predictive.checks import Check, check, check_residuals
from tensorlace.predictive.distributions import Distribution
from tensorlace.predictive.quantile_residuals import from_residuals, residuals

__all__ = ["Calibration", "check_calibrated"]

_MOST = 1365
"""Residuals kept, with two cumulative weights each: 4095 numbers."""

_TAIL = 256
"""Largest and smallest residuals that are kept one by one, at each end of the distribution."""


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

    def quantiles(self, dist: Distribution, q: float | Sequence[float] | Array) -> Array:
        """Calibrated quantiles (n, k) of n rows for k levels, or (n,) for one.

        Raises
        ------
        InputError
            For a level that so few held-out rows cannot promise.
        """
        p = np.asarray(q, dtype=float)
        if p.ndim > 1 or not np.all((p >= 0) & (p <= 1)):
            raise InputError(f"q must be a number or a vector within [0, 1], got {q!r}")
        z = self.residual(p.ravel())
        if np.any(np.isinf(z) & (p.ravel() > 0) & (p.ravel() < 1)):
            far = float(np.max(abs(2.0 * p[(p > 0) & (p < 1)] - 1.0)))
            raise InputError(
                f"{self.n_rows:.6g} rows cannot calibrate a coverage of {far:.6g}: ask for at "
                f"most {self.largest_coverage:.4g}, or calibrate with {_rows_for(far)} rows"
            )
        return from_residuals(z, dist).reshape(len(dist), *p.shape)

    def interval(self, dist: Distribution, coverage: float) -> tuple[Array, Array]:
        """Ends (n,) of calibrated central intervals of n rows."""
        if not 0 < coverage < 1:
            raise InputError(f"coverage must be within (0, 1), got {coverage}")
        ends = self.quantiles(dist, [(1.0 - coverage) / 2.0, (1.0 + coverage) / 2.0])
        return ends[:, 0], ends[:, 1]


def check_calibrated(
    y: Array, dist: Distribution, weight: Array | None, calibration: Calibration | None
) -> Check:
    """`check`, of the calibrated quantiles if there is a calibration."""
    found = check(y, dist, sample_weight=weight)
    if calibration is None:
        return found
    return check_residuals(
        calibration.standardised(residuals(y, dist)),
        sample_weight=weight,
        reference=calibration.n_rows,
        log_scores=(found.log_score, found.expected_log_score),
    )


def _rows_for(coverage: float) -> int:
    """Fewest rows with ``(n - 1) / (n + 1) >= coverage``."""
    return int(np.ceil(2.0 / (1.0 - coverage) - 1.0 - 1e-9))
