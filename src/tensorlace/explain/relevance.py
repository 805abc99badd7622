"""Relevance of columns: total Sobol indices of the predictive mean over reference rows."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from tensorlace._types import Array
from tensorlace.explain.averaged_response import ROTATED_ROWS, features, position
from tensorlace.machines.fitted_model import FittedModel
from tensorlace.machines.machine import KernelMachine
from tensorlace.sources.reference_rows import ReferenceRows

__all__ = ["relevance_of", "sampled_effects", "total_effects"]

_SHIFTS, _PAIRS = 8, 4096
"""Values that each row is given in turn where nothing factorises, more if rows are few."""


def relevance_of(model: FittedModel) -> Array:
    """Share (D,) of the variance of y that each column of the table accounts for.

    Total effects on the predictive mean over the reference rows, in units of the variance of y:
    those in the record of the model, or else computed.
    """
    if model.record.relevance is not None:
        return model.record.relevance
    rows, ensemble = model.reference_rows, model.ensemble
    if ensemble.plain:
        return total_effects(ensemble.machines, ensemble.weights, rows, model.n_columns)
    mean = partial(ensemble.mean, threads=model.threads)
    return sampled_effects(mean, rows, model.n_columns) / ensemble.machines[0].target.scale ** 2


def sampled_effects(mean: Callable[[Array], Array], rows: ReferenceRows, n_columns: int) -> Array:
    """Total effect (D,) of each raw column on a function of the table, see `total_effects`.

    Over some values of the column for each of some rows, in squared units of the function.
    """
    few = rows.part(ROTATED_ROWS)
    return np.array([_sampled_effect(mean, few, d) for d in range(n_columns)])


def total_effects(
    machines: Sequence[KernelMachine], weights: Array, rows: ReferenceRows, n_columns: int
) -> Array:
    """Total effect (D,) of each raw column on the mean of machines with the given weights (M,).

    That is ``E Var(f | all other columns)``, with the column drawn from its own distribution
    whatever the others are, in units of the variance of the target. In closed form where no member
    rotates the column, else over a few values for each row.
    """

    def mean(X: Array) -> Array:
        parts = [machine.fit.network.response(features(machine, X)) for machine in machines]
        return np.asarray(weights @ np.stack(parts))

    few = rows.part(ROTATED_ROWS * 2)
    out = np.empty(n_columns)
    phis = [features(machine, rows.X) for machine in machines]
    all_slopes = [m.fit.network.slopes(phi) for m, phi in zip(machines, phis, strict=True)]
    for d in range(n_columns):
        places = [position(machine, d) for machine in machines]
        if any(p is None for p in places):
            out[d] = _sampled_effect(mean, few, d)
            continue
        slopes, own = [], []
        for w, phi, slope, p in zip(weights, phis, all_slopes, places, strict=True):
            assert p is not None
            slopes.append(w * slope[p])
            own.append(phi[p])
        out[d] = _spread(np.concatenate(slopes), np.concatenate(own), rows.weight)
    return out


def _spread(slope: Array, phi: Array, weight: Array) -> float:
    """``Σ_n w_n slope_nᵀ C slope_n`` with the covariance C of the features (I, n)."""
    centred = phi - (phi @ weight)[:, None]
    root = centred * np.sqrt(weight)
    # a sum of squares, never a difference; through the smaller of two square matrices
    R = np.linalg.qr(root.T, mode="r")
    return float(np.sum((R @ slope) ** 2 @ weight))


def _sampled_effect(mean: Callable[[Array], Array], rows: ReferenceRows, d: int) -> float:
    """Mean variance of each row as the column takes values from other rows."""
    n, shifts = len(rows.X), _shifts(len(rows.X))
    f, w = np.empty((len(shifts), n)), np.empty((len(shifts), n))
    for k, shift in enumerate(shifts):
        X = rows.X.copy()
        X[:, d] = np.roll(X[:, d], shift)
        f[k], w[k] = mean(X), np.roll(rows.weight, shift)
    w /= w.sum(axis=0)
    square = np.sum(w * (f - np.sum(w * f, axis=0)) ** 2, axis=0)
    free = 1.0 - np.sum(w * w, axis=0)  # 1 - 1/k for k values that count alike
    variance = np.divide(square, free, out=np.zeros(n), where=free > 0.0)
    return float(variance @ rows.weight)


def _shifts(n: int) -> list[int]:
    """By how many rows a column of n is shifted: all but none if they are few."""
    most = min(max(n - 1, 1), max(_SHIFTS, _PAIRS // n))
    return sorted({1 + k * (n - 1) // most for k in range(most)})
