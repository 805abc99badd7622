"""Which noise the residuals of unseen rows speak for."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, final

import numpy as np
import numpy.typing as npt

from tensorlace._types import Array
from tensorlace.laplace.posterior import Root
from tensorlace.machines.machine import KernelMachine
from tensorlace.machines.noise import GAUSSIAN, KINDS, Noise, scales
from tensorlace.predictive.distributions import Distribution

__all__ = ["Residuals", "choose_noise", "choose_tails", "crossed"]

FACTORS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5)
DEGREES = (2.5, 3.0, 4.0, 6.0, 10.0, np.inf)
STRENGTHS = (0.4, 0.7, 1.0, 1.4, 2.0)
_SOFTENING = 0.1
"""Added to squared residuals in units of their variance: a residual of zero says little."""

_ERRORS, _GAIN = 2.0, 0.003
"""Standard errors by which a noise that varies must be better, and nats per row for any step."""

_VARYING_FROM = 100
"""Rows below which no variation of the noise is looked for."""

_ROWS = 3000
"""Rows on which kinds of noise are compared."""

Fit = Callable[[Array, npt.NDArray[np.bool_]], KernelMachine]
"""From a target (n,) and a mask of rows to a machine fitted to them."""


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

    @property
    def surprise(self) -> Array:
        """Logarithm of squared residuals in units of the predictive variance (n,)."""
        z = (self.y - self.dist.mean) / self.dist.std
        return np.log(z * z + _SOFTENING)

    def mean(self, values: Array) -> float:
        """Weighted mean over rows."""
        return float(np.average(values, weights=self.weight))

    def log_scores(self, noise: Noise, log_variance: Array | float) -> Array:
        """Log densities (n,) of the targets if the noise were this."""
        d = self.dist
        r2 = (self.y - d.means) ** 2
        a2 = (d.aleatoric_stds * (noise.factor * np.exp(0.5 * np.asarray(log_variance)))) ** 2
        w = d.weights if d.weights.ndim == 2 else d.weights[:, None]
        log_w = np.log(np.maximum(w, 1e-300))
        parts = []
        for share, std in zip(*scales(noise.degrees), strict=True):
            v = d.epistemic_stds**2 + a2 * (std * std)
            parts.append(log_w + np.log(share) - 0.5 * (r2 / v + np.log(v)))
        exponents = np.concatenate(parts)
        largest = exponents.max(axis=0)
        exponents -= largest
        sums = np.exp(exponents, out=exponents).sum(axis=0)
        return np.asarray(largest + np.log(sums) - 0.5 * np.log(2.0 * np.pi))

    def some(self, most: int) -> "npt.NDArray[np.bool_]":
        """Mask of rows, at most about ``most``, evenly spread."""
        step = max(1, len(self.y) // most)
        return np.arange(len(self.y)) % step == 0

    def __getitem__(self, rows: npt.NDArray[np.bool_]) -> "Residuals":
        """Some of the rows."""
        weight = None if self.weight is None else self.weight[rows]
        return Residuals(self.X[rows], self.y[rows], weight, self.dist[rows])


def choose_noise(
    residuals: Residuals,
    folds: npt.NDArray[np.intp],
    fit: Fit | None,
    kinds: Sequence[str] = KINDS,
    *,
    trusted: bool = False,
) -> tuple[Noise, list[dict[str, Any]]]:
    """Best noise by the log score of unseen rows; one that varies has to be clearly better.

    Parameters
    ----------
    residuals : Residuals
    folds : (n,) int array
        Folds in which a variation with x is fitted and judged.
    fit : callable or None
        Fits the network for it; None if there is none to be tried.
    kinds : sequence of str
        Those of `KINDS` that are allowed.
    trusted : bool
        Whether any other noise than the members' own has to be clearly better, too.

    Returns
    -------
    noise : Noise
    results : list of dict
        Kind, factor, degrees, strength, log score, of which rows, and whether it was chosen.
    """
    few = residuals.some(_ROWS)
    part = residuals[few]
    tried: dict[str, tuple[Noise, Array]] = {}
    for kind, degrees in (("gaussian", (np.inf,)), ("student", DEGREES[:-1])):
        if kind in kinds:
            tried[kind] = _best(part, (Noise(f, v) for f, v in product(FACTORS, degrees)), 0.0)
    varying = [kind for kind in kinds if kind.startswith("varying")]
    machine = None
    if varying and fit is not None and len(residuals.y) >= _VARYING_FROM:
        h = _unseen_surprise(residuals, folds, fit)
        machine = _certain(fit(residuals.surprise, np.ones(len(residuals.y), dtype=np.bool_)))
        h = h[few] - part.mean(h[few])
        for kind in varying:
            degrees = (np.inf,) if kind == "varying" else DEGREES[:-1]
            grid = product(STRENGTHS, FACTORS, degrees)
            tried[kind] = _best(part, (Noise(f, v, s, (machine,)) for s, f, v in grid), h)
    if not tried:  # only a variation was asked for and there are too few rows for it
        tried["gaussian"] = _best(part, (Noise(f) for f in FACTORS), 0.0)
    best = _simplest(part, tried)
    if trusted and "gaussian" in tried:
        own = part.log_scores(GAUSSIAN, 0.0)
        if not _better(part, tried[best][1], own, _ERRORS, _GAIN):
            tried["gaussian"], best = (GAUSSIAN, own), "gaussian"
    noise, results = _chosen(part, tried, best)
    if noise.strength > 0.0 and machine is not None:
        noise = replace(noise, level=residuals.mean(machine.mean(residuals.X)))
    return (GAUSSIAN if noise.trivial else noise), results


def choose_tails(
    residuals: Residuals, noise: Noise, kinds: Sequence[str] = KINDS
) -> tuple[Noise, list[dict[str, Any]]]:
    """Factor and tails of a noise again, for other unseen rows, if that is clearly better.

    Its variation with x stays. Returns what `choose_noise` does, for the two kinds that vary alike.
    """
    part = residuals[residuals.some(_ROWS)]
    h = noise.log_variance(part.X)
    varies = 2 * (noise.strength > 0.0)
    tried: dict[str, tuple[Noise, Array]] = {}
    for kind, degrees in zip(KINDS[varies : varies + 2], ((np.inf,), DEGREES[:-1]), strict=True):
        if kind in kinds or kind == noise.kind:
            grid = (replace(noise, factor=f, degrees=v) for f, v in product(FACTORS, degrees))
            scored = ((n, part.log_scores(n, h)) for n in grid)
            tried[kind] = max(scored, key=lambda entry: part.mean(entry[1]))
    best = _simplest(part, tried)
    as_it_was = part.log_scores(noise, h)
    if not _better(part, tried[best][1], as_it_was, 1.0, _GAIN):
        tried[noise.kind], best = (noise, as_it_was), noise.kind
    return _chosen(part, tried, best)


def crossed(seen: Residuals, unseen: Residuals) -> Array:
    """Log scores (n,) of rows with the constant noise that is best for others, roughly."""
    grid = product(FACTORS[1::2], DEGREES[::2] + DEGREES[-1:])
    noise, _ = _best(seen, (Noise(f, v) for f, v in grid), 0.0)
    return unseen.log_scores(noise, 0.0)


def _chosen(
    residuals: Residuals, tried: dict[str, tuple[Noise, Array]], chosen: str
) -> tuple[Noise, list[dict[str, Any]]]:
    """The noise of the chosen kind, and a line for each kind with its noise and log scores (n,)."""
    results = [
        {
            "noise": kind,
            "factor": noise.factor,
            "degrees": noise.degrees,
            "strength": noise.strength,
            "held_out_log_score": residuals.mean(scores),
            "rows": "held out",
            "chosen": kind == chosen,
        }
        for kind, (noise, scores) in tried.items()
    ]
    return tried[chosen][0], results


def _certain(machine: KernelMachine) -> KernelMachine:
    """The machine without its posterior, which is most of it: only its mean will be asked for."""
    P = machine.fit.posterior.n_weights
    return replace(machine, fit=replace(machine.fit, posterior=Root(np.empty((P, 0)), 0.0)))


def _best(
    residuals: Residuals, noises: Iterable[Noise], surprise: Array | float
) -> tuple[Noise, Array]:
    scored = [(n, residuals.log_scores(n, n.strength * np.asarray(surprise))) for n in noises]
    return max(scored, key=lambda entry: residuals.mean(entry[1]))


def _simplest(residuals: Residuals, tried: dict[str, tuple[Noise, Array]]) -> str:
    """Kind with the highest score, except that a variation must be sure."""
    chosen = next(iter(tried))
    for kind in list(tried)[1:]:
        # heavier tails are one number more and forgive much, a variation is a network more
        varies = kind.startswith("varying") and not chosen.startswith("varying")
        sure = (_ERRORS, _GAIN) if varies else (0.0, 0.0)
        if _better(residuals, tried[kind][1], tried[chosen][1], *sure):
            chosen = kind
    return chosen


def _better(residuals: Residuals, scores: Array, than: Array, errors: float, nats: float) -> bool:
    """Whether log scores (n,) are larger on average, by so many standard errors and nats."""
    gain = scores - than
    mean = residuals.mean(gain)
    count = len(gain) if residuals.weight is None else residuals.weight.sum()
    error = np.sqrt(residuals.mean((gain - mean) ** 2) / count)
    return bool(mean > max(errors * error, nats))


def _unseen_surprise(residuals: Residuals, folds: npt.NDArray[np.intp], fit: Fit) -> Array:
    """Surprise (n,) as predicted by machines that have not seen the row."""
    h = np.zeros(len(residuals.y))
    for fold in np.unique(folds):
        held = folds == fold
        h[held] = fit(residuals.surprise, ~held).mean(residuals.X[held])
    return h
