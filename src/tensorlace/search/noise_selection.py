"""Choice of the noise by the log score of rows that were not seen."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, final

import numpy as np
import numpy.typing as npt

from tensorlace._types import Array, Mask
from tensorlace.fitting.config import Config
from tensorlace.laplace.posterior import Root
from tensorlace.machines.machine import KernelMachine
from tensorlace.machines.noise import GAUSSIAN, Noise
from tensorlace.machines.noise_model import NoiseModel
from tensorlace.machines.noises.registry import NOISES
from tensorlace.predictive.distributions import Distribution
from tensorlace.rows.stop import PassEndedError
from tensorlace.search.candidate_fit import fit_candidate
from tensorlace.search.settings import FitSettings, NoiseSettings
from tensorlace.search.stacking import mean_and_error
from tensorlace.sources import ArraySource

__all__ = [
    "LogVariance",
    "Residuals",
    "choose_again",
    "choose_noise",
    "cross_scores",
    "fit_log_variance",
]

Folds = npt.NDArray[np.intp]
"""Number of the fold of each row, (n,)."""

Tried = dict[str, tuple[NoiseModel, Array]]
"""Best noise of each family, and its log scores (n,)."""


@final
@dataclass(frozen=True, eq=False)
class Residuals:
    """Unseen rows and what a mixture says of them.

    Attributes
    ----------
    X : (n, D) array
    y : (n,) array
    weight : (n,) array or None
    dist : Mixture of n rows
    """

    X: Array
    y: Array
    weight: Array | None
    dist: Distribution

    def log_squares(self, softening: float) -> Array:
        """Logarithm (n,) of squared residuals in units of the predictive variance."""
        z = (self.y - self.dist.mean) / self.dist.std
        return np.log(z * z + softening)

    def mean(self, values: Array) -> float:
        """Weighted mean over rows."""
        return float(np.average(values, weights=self.weight))

    def log_scores(self, noise: NoiseModel, log_variance: Array | float) -> Array:
        """Log densities (n,) of the targets if the noise were this."""
        d = self.dist
        r2 = (self.y - d.means) ** 2
        a2 = (d.aleatoric_stds * (noise.factor * np.exp(0.5 * np.asarray(log_variance)))) ** 2
        w = d.weights if d.weights.ndim == 2 else d.weights[:, None]
        log_w = np.log(np.maximum(w, 1e-300))
        parts = []
        e2 = d.epistemic_stds**2
        shares, stds = noise.scale_mixture
        for share, std, widening in zip(shares, stds, noise.epistemic_factors, strict=True):
            v = e2 * (widening * widening) + a2 * (std * std)
            parts.append(log_w + np.log(share) - 0.5 * (r2 / v + np.log(v)))
        exponents = np.concatenate(parts)
        largest = exponents.max(axis=0)
        exponents -= largest
        sums = np.exp(exponents, out=exponents).sum(axis=0)
        return np.asarray(largest + np.log(sums) - 0.5 * np.log(2.0 * np.pi))

    def some(self, most: int) -> Mask:
        """Mask of rows, at most about ``most``, evenly spread."""
        step = max(1, len(self.y) // most)
        return np.arange(len(self.y)) % step == 0

    def __getitem__(self, rows: Mask) -> "Residuals":
        """Some of the rows."""
        weight = None if self.weight is None else self.weight[rows]
        return Residuals(self.X[rows], self.y[rows], weight, self.dist[rows])


@final
@dataclass(frozen=True, eq=False)
class LogVariance:
    """A network for the logarithm of the noise variance, up to a constant.

    Attributes
    ----------
    machine : KernelMachine
        Fitted to all unseen rows, without its posterior.
    level : float
        Average of its predictions over these rows.
    held_out : (n,) array
        Predictions for these rows by networks that were fitted without their fold.
    """

    machine: KernelMachine
    level: float
    held_out: Array


def fit_log_variance(
    residuals: Residuals,
    folds: Folds,
    config: Config,
    names: tuple[str, ...],
    *,
    missing: bool,
    seed: int,
    settings: NoiseSettings,
    fits: FitSettings,
) -> LogVariance | None:
    """Fit the logarithm of squared residuals.

    None if there are too few rows, or only one fold, or not enough time.
    """
    if len(residuals.y) < settings.varying_from or not folds.any():
        return None
    target, weight = residuals.log_squares(settings.softening), residuals.weight

    def fitted(rows: Mask) -> KernelMachine:
        w = None if weight is None else weight[rows]
        return fit_candidate(
            config,
            settings.network,
            ArraySource(residuals.X[rows], target[rows], w, names, missing=missing),
            fits,
            seed=seed,
            max_steps=settings.network_steps,
            rough=True,
        )

    held_out = np.zeros(len(residuals.y))
    try:
        for fold in np.unique(folds):
            held = folds == fold
            held_out[held] = fitted(~held).mean(residuals.X[held])
        machine = _without_posterior(fitted(np.ones(len(residuals.y), dtype=np.bool_)))
    except PassEndedError:
        return None
    return LogVariance(machine, residuals.mean(machine.mean(residuals.X)), held_out)


def choose_noise(
    residuals: Residuals,
    variation: LogVariance | None,
    kinds: Sequence[str],
    settings: NoiseSettings,
    *,
    trusted: bool = False,
) -> tuple[NoiseModel, list[dict[str, Any]]]:
    """Best noise by the log score of unseen rows; one that varies has to be clearly better.

    Parameters
    ----------
    residuals : Residuals
    variation : LogVariance or None
        For families that vary; None if they cannot be tried.
    kinds : sequence of str
        Names in `NOISES` that are allowed.
    settings : NoiseSettings
    trusted : bool
        Whether any other noise than the members' own has to be clearly better, too.

    Returns
    -------
    noise : NoiseModel
    results : list of dict
        Kind, parameters, log score, of which rows, and whether it was chosen.
    """
    compared = residuals.some(settings.most_rows)
    part, grid = residuals[compared], settings.grid
    tried: Tried = {}
    for name, family in NOISES.items():
        if name not in kinds:
            continue
        if not family.varies:
            tried[name] = _best(part, family.candidates(grid, (), 0.0), 0.0)
        elif variation is not None:
            h = variation.held_out[compared]
            noises = family.candidates(grid, (variation.machine,), variation.level)
            tried[name] = _best(part, noises, h - part.mean(h))
    if not tried:  # only a variation was asked for and there are too few rows for it
        tried["gaussian"] = _best(part, NOISES["gaussian"].candidates(grid, (), 0.0), 0.0)
    best = _simplest(part, tried, settings)
    if trusted and "gaussian" in tried:
        own = part.log_scores(GAUSSIAN, 0.0)
        if not _better(part, tried[best][1], own, settings.standard_errors, settings.gain):
            tried["gaussian"], best = (GAUSSIAN, own), "gaussian"
    noise, results = _chosen(part, tried, best)
    return (GAUSSIAN if noise.trivial else noise), results


def choose_again(
    residuals: Residuals, noise: NoiseModel, kinds: Sequence[str], settings: NoiseSettings
) -> tuple[NoiseModel, list[dict[str, Any]]]:
    """Factor and tails of a noise by other unseen rows, if another is clearly better there.

    Its variation with x stays. Returns what `choose_noise` does, for the families that vary alike.
    """
    part = residuals[residuals.some(settings.most_rows)]
    h = noise.log_variance(part.X)
    tried: Tried = {}
    for name, family in NOISES.items():
        if family.varies == (noise.strength > 0.0) and (name in kinds or name == noise.kind):
            scored = ((n, part.log_scores(n, h)) for n in family.neighbours(noise, settings.grid))
            tried[name] = max(scored, key=lambda entry: part.mean(entry[1]))
    best = _simplest(part, tried, settings)
    before = part.log_scores(noise, h)
    if not _better(part, tried[best][1], before, settings.replacing_errors, settings.gain):
        tried[noise.kind], best = (noise, before), noise.kind
    return _chosen(part, tried, best)


def cross_scores(seen: Residuals, unseen: Residuals, settings: NoiseSettings) -> Array:
    """Log scores (n,) of unseen rows with the constant noise that is best for seen ones."""
    grid = product(settings.coarse_factors, settings.coarse_degrees)
    noise, _ = _best(seen, (Noise(factor, degrees) for factor, degrees in grid), 0.0)
    return unseen.log_scores(noise, 0.0)


def _chosen(
    residuals: Residuals, tried: Tried, chosen: str
) -> tuple[NoiseModel, list[dict[str, Any]]]:
    """The noise of the chosen kind, and a line for each kind with its noise and log score."""
    results = [
        {
            "noise": kind,
            **noise.parameters,
            "held_out_log_score": residuals.mean(scores),
            "rows": "held out",
            "chosen": kind == chosen,
        }
        for kind, (noise, scores) in tried.items()
    ]
    return tried[chosen][0], results


def _without_posterior(machine: KernelMachine) -> KernelMachine:
    """The machine without its posterior, which is most of it: only its mean will be asked for."""
    P = machine.fit.posterior.n_weights
    return replace(machine, fit=replace(machine.fit, posterior=Root(np.empty((P, 0)), 0.0)))


def _best(
    residuals: Residuals, noises: Iterable[NoiseModel], log_squares: Array | float
) -> tuple[NoiseModel, Array]:
    scored = [(n, residuals.log_scores(n, n.strength * np.asarray(log_squares))) for n in noises]
    return max(scored, key=lambda entry: residuals.mean(entry[1]))


def _simplest(residuals: Residuals, tried: Tried, settings: NoiseSettings) -> str:
    """Kind with the highest score, except that a variation must be sure."""
    chosen = next(iter(tried))
    for kind in list(tried)[1:]:
        # heavier tails are one number more and forgive much, a variation is a network more
        varies = NOISES[kind].varies and not NOISES[chosen].varies
        sure = (settings.standard_errors, settings.gain) if varies else (0.0, 0.0)
        if _better(residuals, tried[kind][1], tried[chosen][1], *sure):
            chosen = kind
    return chosen


def _better(residuals: Residuals, scores: Array, than: Array, errors: float, nats: float) -> bool:
    """Whether log scores (n,) are larger on average, by so many standard errors and nats."""
    mean, error = mean_and_error(scores - than, residuals.weight)
    return mean > max(errors * error, nats)
