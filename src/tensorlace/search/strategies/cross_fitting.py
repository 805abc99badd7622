"""What a mixture says of rows that had no say in it: weights, noise and widths by folds.

Weights are picked, a noise is chosen and widths are scaled by what candidates say of rows held
out. The same rows would then flatter the mixture. Here they are cut into folds, and what is said
of a fold follows from weights, noise and widths that the other folds speak for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from tensorlace._types import Array, Mask
from tensorlace.machines.noise import with_noise
from tensorlace.machines.noise_model import NoiseModel
from tensorlace.machines.noises.registry import NOISES
from tensorlace.predictive.distributions import Distribution, Mixture
from tensorlace.predictive.quantile_residuals import residuals
from tensorlace.search.interval_width import scale_and_tails, widened
from tensorlace.search.noise_selection import Residuals
from tensorlace.search.settings import SearchSettings

__all__ = ["CrossFitted", "Folds", "cross_fitted", "side_by_side"]

Folds = npt.NDArray[np.intp]


@final
@dataclass(frozen=True, eq=False)
class CrossFitted:
    """Predictions of n rows, fold by fold, by mixtures that the fold had no say in.

    Attributes
    ----------
    folds : (n,) int array
    dist : Distribution
        Of the rows, before widths are scaled.
    y : (n,) array
    weight : (n,) array or None
    tails : bool
        Whether the whole error may have heavier tails than the normal.
    """

    folds: Folds
    dist: Distribution
    y: Array
    weight: Array | None
    tails: bool

    def noise(self, noise: NoiseModel, fall: float, settings: SearchSettings) -> NoiseModel:
        """``noise`` with scale and tails that all rows speak for, see `scale_and_tails`."""
        z = residuals(self.y, self.dist)
        scale, degrees = scale_and_tails(
            *(z, self.dist, self.y, self.weight, fall, settings.widths), tails=self.tails
        )
        noise = noise.scaled(scale)
        return noise.with_tails(degrees) if np.isfinite(degrees) else noise

    def scaled(self, settings: SearchSettings) -> Distribution:
        """The rows with widths that other folds speak for."""
        z, parts = residuals(self.y, self.dist), []
        for fold in np.unique(self.folds):
            held = self.folds == fold
            weight = None if self.weight is None else self.weight[~held]
            widths = scale_and_tails(
                *(z[~held], self.dist[~held], self.y[~held], weight, 1.0, settings.widths),
                tails=self.tails,
            )
            parts.append((held, widened(self.dist[held], *widths)))
        return side_by_side(parts)


def cross_fitted(
    seen: Sequence[Residuals],
    noise: NoiseModel,
    log_variance: Array,
    folds: Folds,
    weight: Array | None,
    kinds: Sequence[str],
    settings: SearchSettings,
) -> CrossFitted:
    """Predictions of rows by mixtures that they had no say in.

    Parameters
    ----------
    seen : sequence of Residuals of n rows
        One per fold: what a mixture says that the fold had no say in.
    noise : NoiseModel
        Chosen by all rows; its factor and tails are found again without each fold.
    log_variance : (n,) array
        Of the noise, by a network that has not seen the row.
    folds : (n,) int array
    weight : (n,) array or None
        In widths, where every row counts: also one that no choice was to follow.
    kinds : sequence of str
        Names in `NOISES` that are allowed.
    settings : SearchSettings
    """
    parts = []
    for fold, whole in zip(np.unique(folds), seen, strict=True):
        held = folds == fold
        own = refitted(whole[~held], noise, log_variance[~held], settings)
        parts.append((held, with_noise(whole.dist[held], own, log_variance[held])))
    heavy = NOISES[noise.kind].whole_tails and any(NOISES[k].heavy_tailed for k in kinds)
    return CrossFitted(folds, side_by_side(parts), seen[0].y, weight, heavy)


def refitted(
    seen: Residuals, noise: NoiseModel, log_variance: Array, settings: SearchSettings
) -> NoiseModel:
    """The member of the noise's family that is best for some rows."""
    return max(
        NOISES[noise.kind].neighbours(noise, settings.noise.grid),
        key=lambda n: seen.mean(seen.log_scores(n, log_variance)),
    )


def side_by_side(parts: Sequence[tuple[Mask, Distribution]]) -> Mixture:
    """One distribution of all rows from those of disjoint parts of them."""
    n, most = len(parts[0][0]), max(len(dist.weights) for _, dist in parts)
    mean, e, w = np.zeros((3, most, n))
    a = np.ones((most, n))  # normals that a part lacks have no weight
    for rows, dist in parts:
        k = len(dist.weights)
        mean[:k, rows], e[:k, rows], a[:k, rows] = (
            dist.means,
            dist.epistemic_stds,
            dist.aleatoric_stds,
        )
        w[:k, rows] = dist.weights if dist.weights.ndim == 2 else dist.weights[:, None]
    return Mixture(mean, e, a, w)
