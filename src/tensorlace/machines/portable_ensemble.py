"""A fitted ensemble as a graph: its members, how much each counts in a row, and the noise."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from tensorlace.machines.ensemble import SHARPNESS, Ensemble
from tensorlace.machines.portable_machine import portable_moments
from tensorlace.portable import Builder, Value
from tensorlace.scales import IDENTITY, Scale

__all__ = ["PortableMixture", "portable_mixture"]


@final
@dataclass(frozen=True, eq=False)
class PortableMixture:
    """The predictive distribution of n rows: M members, each k normals of the same mean.

    All but the results of methods is in units of the target of the first member, so that no square
    overflows.

    Attributes
    ----------
    weights, means, epistemic, aleatoric : (M, n) values
        Standard deviations are those of a normal member.
    ratio : (n,) value
        How unsure the members are beside training rows, see `Ensemble.dist_and_ratio`.
    shares, stds, widenings : (k,) arrays
        What the normals of a member weigh, and factors of their aleatoric and epistemic standard
        deviations.
    location, scale : float
        ``y = location + scale * t``.
    """

    weights: Value
    means: Value
    epistemic: Value
    aleatoric: Value
    ratio: Value
    shares: np.ndarray[tuple[int], np.dtype[np.float64]]
    stds: np.ndarray[tuple[int], np.dtype[np.float64]]
    widenings: np.ndarray[tuple[int], np.dtype[np.float64]]
    location: float
    scale: float

    def moments(self, g: Builder, scale: Scale = IDENTITY) -> dict[str, Value]:
        """Mean, standard deviation and its two parts (n,), in units of y, seen through a scale."""
        mean = g.sum(self.weights * self.means)
        away = self.means - mean
        # by which Student's t has more variance
        wider, tails = float(self.shares @ self.widenings**2), float(self.shares @ self.stds**2)
        own = self.epistemic * self.epistemic * wider
        epistemic = g.sum(self.weights * (away * away + own))
        aleatoric = g.sum(self.weights * (self.aleatoric * self.aleatoric)) * tails
        total, location, unit = epistemic + aleatoric, self.location, self.scale
        if not scale.trivial:  # see `Transformed`
            before = total
            scale, location, unit = scale.in_units(location, unit)
            mean, total = self._seen(g, scale)
            ratio = total / before
            epistemic, aleatoric = epistemic * ratio, aleatoric * ratio
        return {
            "mean": mean * unit + location,
            "std": g.sqrt(total) * unit,
            "epistemic_std": g.sqrt(epistemic) * unit,
            "aleatoric_std": g.sqrt(aleatoric) * unit,
        }

    def _seen(self, g: Builder, scale: Scale) -> tuple[Value, Value]:
        """Mean and variance (n,) through a scale in units of the target of the first member."""
        k = len(self.shares)
        w = g.concat([self.weights * float(share) for share in self.shares])
        e = g.concat([self.epistemic * float(wider) for wider in self.widenings])
        a = g.concat([self.aleatoric * float(tail) for tail in self.stds])
        middles, stds = scale.portable(g, g.concat([self.means] * k), g.sqrt(e * e + a * a))
        mean = g.clip(g.sum(w * middles), scale.low, scale.high)
        away = middles - mean
        return mean, g.sum(w * (away * away + stds * stds))

    def normals(self, g: Builder) -> dict[str, Value]:
        """All normals (k·M, n), in units of y."""
        k = len(self.shares)
        aleatoric = g.concat([self.aleatoric * float(std) for std in self.stds])
        return {
            "weights": g.concat([self.weights * float(share) for share in self.shares]),
            "means": g.concat([self.means * self.scale + self.location] * k),
            "epistemic": g.concat([self.epistemic * float(w) for w in self.widenings]) * self.scale,
            "aleatoric": aleatoric * self.scale,
        }


def portable_mixture(g: Builder, ensemble: Ensemble, x: Sequence[Value]) -> PortableMixture:
    """`Ensemble.dist` as a graph, from the columns (n,) of a table.

    Members without weight are left out.
    """
    pairs = zip(ensemble.machines, ensemble.weights.tolist(), strict=True)
    counting = [(machine, weight) for machine, weight in pairs if weight > 0.0]
    first = counting[0][0].target
    means, variances, noises, ratios = [], [], [], []
    for machine, _ in counting:
        f, variance, ratio = portable_moments(g, machine, x)
        f, variance, noise_std = machine.fit.likelihood.portable(g, f, variance, machine.noise_std)
        unit = machine.target.scale / first.scale
        shift = (machine.target.location - first.location) / first.scale
        means.append(f * unit + shift)
        variances.append(variance * (unit * unit))
        noises.append(noise_std * unit)
        ratios.append(ratio)
    mu, e2, a = g.stack(means), g.stack(variances), g.stack(noises)
    own = np.array([[weight] for _, weight in counting])
    if ensemble.plain or len(counting) == 1:
        weights = g.expand(own / own.sum(), mu)
    else:  # `blend`
        weights = _softmax(g, g.log(e2 + a * a) * (-0.5 * SHARPNESS) + np.log(own))
    noise = ensemble.noise
    shares, stds = noise.scale_mixture
    aleatoric = a * (noise.shrink * noise.factor)
    log_variance = noise.portable(g, x)
    if log_variance is not None:
        aleatoric = aleatoric * g.exp(0.5 * log_variance)
    epistemic = g.sqrt(e2) * noise.shrink
    return PortableMixture(
        *(weights, mu, epistemic, aleatoric, g.sum(weights * g.stack(ratios))),
        *(shares, stds, noise.epistemic_factors, first.location, first.scale),
    )


def _softmax(g: Builder, x: Value) -> Value:
    """Exponentials (k, n) over their sum."""
    top = g.exp(x - g.largest(x))
    return top / g.sum(top)
