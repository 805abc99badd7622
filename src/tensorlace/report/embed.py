"""A fitted model as JSON that the page's JavaScript can compute with, to the last digits.

What takes a network to its prediction is written down as plain data: warps, bases, cores, the
posterior. Arrays are kept apart, each content once, as base64 of the smallest numbers that hold
them exactly: whole numbers for the columns of a compact model (see
`tensorlace.compact.posterior_directions`), single precision, or double.
"""

import base64
import hashlib
import math
from typing import Any, final

import numpy as np

from tensorlace._types import Array
from tensorlace.columns import bases, warps
from tensorlace.columns.bases.basis import Basis
from tensorlace.columns.columns import Column
from tensorlace.columns.warps import Warp
from tensorlace.compact.posterior_directions import exponents_of, widths_of
from tensorlace.errors import InputError
from tensorlace.laplace.posterior import Blocks, Diagonal, LowRank, Posterior, Root
from tensorlace.machines.ensemble import SHARPNESS
from tensorlace.machines.fitted_model import FittedModel, HoldsModel, fitted_model
from tensorlace.machines.machine import KernelMachine
from tensorlace.machines.noise import LARGEST_LOG, scales

__all__ = ["LEVELS", "embed"]

LEVELS = (0.025, 0.25, 0.5, 0.75, 0.975)
"""Quantiles that the panel shows: the median, and the ends of a 50 % and a 95 % band."""


def embed(model: FittedModel | HoldsModel) -> dict[str, Any]:
    """Everything that linearised predictions of a fitted model need, ready for ``json.dumps``.

    Parameters
    ----------
    model : TNKMRegressor or FittedModel
        A calibration changes the quantiles, as in ``predict_quantiles``.

    Examples
    --------
    >>> from tensorlace import TNKMRegressor
    >>> X = np.random.default_rng(0).uniform(size=(50, 2))
    >>> model = TNKMRegressor(rank=1, n_basis=3, random_state=0).fit(X, X.sum(axis=1))
    >>> embedded = embed(model)
    >>> [len(embedded["members"]), embedded["noise"]["shrink"], embedded["arrays"][0]["type"]]
    [1, 1.0, 'f8']
    """
    fitted, store = fitted_model(model), _Store()
    ensemble, noise = fitted.ensemble, fitted.noise
    shares, stds = scales(noise.degrees)
    return {
        "members": [
            {**_machine(machine, store), "weight": float(weight)}
            for machine, weight in zip(ensemble.machines, ensemble.weights, strict=True)
        ],
        "sharpness": SHARPNESS if ensemble.sharp and len(ensemble.machines) > 1 else 0.0,
        "noise": {
            "trivial": bool(noise.trivial),
            "factor": noise.factor,
            "shrink": noise.shrink,
            "shares": shares.tolist(),
            "stds": stds.tolist(),
            "strength": noise.strength,
            "level": noise.level,
            "largest": LARGEST_LOG,
            "machines": [_network(m, store) for m in noise.machines] if noise.strength else [],
        },
        "residuals": _residuals(fitted.calibration),
        "levels": list(LEVELS),
        "arrays": store.arrays,
    }


def _residuals(calibration: Any) -> list[float | None] | None:
    """Where calibrated quantiles lie on the scale of a standard normal; None if too few rows."""
    if calibration is None:
        return None
    return [float(z) if math.isfinite(z) else None for z in calibration.residual(LEVELS)]


def _network(machine: KernelMachine, store: "_Store") -> dict[str, Any]:
    """What the mean takes."""
    rotation = machine.columns.rotation
    return {
        "columns": [_column(column, store) for column in machine.columns.columns],
        "rotation": None
        if rotation is None
        else {
            "which": rotation.which.tolist(),
            "others": rotation.others.tolist(),
            "mean": store.put(rotation.mean),
            "matrix": store.put(rotation.matrix),
        },
        "cores": [store.put(V) for V in machine.fit.cores],
        "scale": machine.target.scale,
        "location": machine.target.location,
    }


def _machine(machine: KernelMachine, store: "_Store") -> dict[str, Any]:
    return {
        **_network(machine, store),
        "bayesian": list(machine.fit.bayesian_cores),
        "posterior": _posterior(machine.fit.posterior, store),
        "unseen": [store.put(v) for v in machine.unseen_variances],
        "noise": machine.noise_std,
    }


def _posterior(posterior: Posterior, store: "_Store") -> dict[str, Any]:
    if isinstance(posterior, Root):
        return {"type": "root", "W": store.put(posterior.W)}
    if isinstance(posterior, Diagonal):
        return {"type": "diagonal", "variance": store.put(posterior.variance)}
    if isinstance(posterior, LowRank):
        parts = {"scale": posterior.scale, "U": posterior.U, "c": posterior.c}
        return {"type": "low_rank", **{key: store.put(a) for key, a in parts.items()}}
    if isinstance(posterior, Blocks):
        parts_of = [{**_posterior(p, store), "size": p.n_weights} for p in posterior.parts]
        return {"type": "blocks", "parts": parts_of}
    raise InputError(f"a posterior {type(posterior).__name__} has no form in JavaScript")


def _column(column: Column, store: "_Store") -> dict[str, Any]:
    stretched = column.warp.interval and column.basis.interval is not None
    return {
        "warp": _warp(column.warp, store),
        "basis": _basis(column.basis, store),
        "interval": list(column.basis.interval or ()) if stretched else None,
        "typical": store.put(column.basis.typical()),
    }


def _basis(basis: Basis, store: "_Store") -> dict[str, Any]:
    out: dict[str, Any] = {"type": basis.name, "n": basis.n}
    if isinstance(basis, bases.Cosine):
        out["amplitude"] = store.put(basis.amplitude())
    elif isinstance(basis, bases.Sine):
        out["amplitude"] = store.put(basis._amplitude())
    elif isinstance(basis, bases.BSpline):
        out["degree"] = basis.degree
    elif isinstance(basis, bases.Missing):
        out |= {"base": _basis(basis.base, store), "typical": store.put(basis.base.typical())}
    elif isinstance(basis, bases.Subset):
        out |= {"base": _basis(basis.base, store), "which": list(basis.which)}
    return out


def _warp(warp: Warp, store: "_Store") -> dict[str, Any]:
    if isinstance(warp, warps.Codes):
        return {"type": "codes", "values": store.put(warp.values), "missing": bool(warp.missing)}
    if isinstance(warp, warps.Cyclic):
        return {"type": "cyclic", "period": float(warp.period)}
    frame = warp.frame  # type: ignore[attr-defined]
    out: dict[str, Any] = {
        "type": type(warp).__name__.lower(),
        "low": frame.low,
        "high": frame.high,
        "width": frame.width,
        "exponent": frame.exponent,
    }
    if isinstance(warp, warps.Standardise):
        out |= {"offset": warp.offset, "spread": warp.spread}
    quantile = warp.quantile if isinstance(warp, warps.Mixed) else warp
    if isinstance(quantile, warps.Quantile):
        out |= {"knots": store.put(quantile.knots), "heights": store.put(quantile.heights)}
    return out


@final
class _Store:
    """Arrays, each content once; `put` gives the number of one."""

    def __init__(self) -> None:
        self.arrays: list[dict[str, Any]] = []
        self._places: dict[bytes, int] = {}

    def put(self, array: Array) -> int:
        key = hashlib.sha256(repr(array.shape).encode() + np.ascontiguousarray(array).tobytes())
        place = self._places.setdefault(key.digest(), len(self.arrays))
        if place == len(self.arrays):
            self.arrays.append(_packed(array))
        return place


def _packed(array: Array) -> dict[str, Any]:
    """The array as text, in the fewest bytes that keep every bit."""
    head = {"shape": list(array.shape)}
    widths = widths_of(array) if array.ndim == 2 and array.size else None
    if widths is not None:
        exponents = exponents_of(array, widths)
        numbers = np.ldexp(array, -exponents).astype("<i4")
        parts = (
            np.ascontiguousarray(column).view(np.uint8).reshape(-1, 4)[:, :width].tobytes()
            for column, width in zip(numbers.T, widths, strict=True)
        )
        columns = {"exponents": exponents.tolist(), "widths": widths.tolist()}
        return {"type": "whole", **head, **columns, "data": _text(b"".join(parts))}
    if np.array_equal(array.astype(np.float32).astype(np.float64), array):
        return {"type": "f4", **head, "data": _text(array.astype("<f4").tobytes())}
    return {"type": "f8", **head, "data": _text(array.astype("<f8").tobytes())}


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
