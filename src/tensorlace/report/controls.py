"""Controls of the what-if panel, one per column, and the row that it begins with."""

from typing import Any

import numpy as np

from tensorlace._types import Array
from tensorlace.columns.bases import Missing
from tensorlace.columns.encoding import DayCodes, LevelCodes
from tensorlace.columns.warps import Codes
from tensorlace.explain.averaged_response import position
from tensorlace.kinds import Categorical, Periodic
from tensorlace.machines.fitted_model import FittedModel
from tensorlace.machines.machine import KernelMachine

__all__ = ["controls", "typical_row"]

_FEW = 40
"""Widest range of whole numbers whose slider stops at each of them."""

_ROWS = 1024
"""Reference rows among which the typical one is chosen."""


def controls(model: FittedModel, X: Array) -> list[dict[str, Any]]:
    """One control per column of the table, from the training rows and the rows ``X`` (n, D).

    Values are the numbers that networks see: codes of categories, days since the first date.
    """
    return [_control(model, d, name, X[:, d]) for d, name in enumerate(model.names)]


def _control(model: FittedModel, d: int, name: str, mine: Array) -> dict[str, Any]:
    code, kind = model.encoding.codes[d], model.encoding.kinds[d]
    trained = model.reference_rows.X[:, d]
    seen = np.unique(trained[np.isfinite(trained)])
    base = {
        "name": name,
        "missing": bool(np.isnan(trained).any() or np.isnan(mine).any() or _knows_gaps(model, d)),
    }
    options = _options(model, d, seen)
    if options is not None:
        other = isinstance(kind, Categorical) and (
            code.open if isinstance(code, LevelCodes) else True
        )
        return {**base, "type": "select", "options": options, "other": bool(other)}
    low, high = (float(seen[0]), float(seen[-1])) if seen.size else (0.0, 1.0)
    if isinstance(kind, Periodic):
        low, high = 0.0, float(kind.period)
    if isinstance(code, DayCodes):
        origin = float(code.origin.astype("datetime64[us]").astype(np.int64)) / 1000.0
        return {**base, "type": "date", "low": low, "high": high, "origin": origin}
    whole = bool(seen.size and np.all(seen == np.rint(seen)) and high - low <= _FEW)
    return {**base, "type": "number", "low": low, "high": high, "whole": whole}


def _options(model: FittedModel, d: int, seen: Array) -> list[list[Any]] | None:
    """Labels and values of a column that has only a few; None for one of numbers."""
    labels = model.encoding.labels(d)
    if labels is not None:
        return [[str(text), float(k)] for k, text in enumerate(labels)]
    codes = next((w for w in _warps(model, d) if isinstance(w, Codes)), None)
    if codes is not None:
        return [[f"{v:.10g}", float(v)] for v in codes.values]
    if set(seen.tolist()) == {0.0, 1.0}:
        return [["no (0)", 0.0], ["yes (1)", 1.0]]
    return None


def _warps(model: FittedModel, d: int) -> list[Any]:
    return [c.warp for m in model.machines if (c := _column(m, d)) is not None]


def _knows_gaps(model: FittedModel, d: int) -> bool:
    columns = [c for m in model.machines if (c := _column(m, d)) is not None]
    return any(isinstance(c.basis, Missing) or getattr(c.warp, "missing", False) for c in columns)


def _column(machine: KernelMachine, d: int) -> Any:
    """How a machine sees a column of the table, or None if it sees it rotated."""
    place = position(machine, d)
    return None if place is None else machine.columns.columns[place]


def typical_row(model: FittedModel) -> Array:
    """The training row (D,) that is nearest to the middle of all columns at once.

    The middles themselves may be a combination that no row has.
    """
    X = model.reference_rows.X[:_ROWS]
    distance = np.zeros(len(X))
    for d, column in enumerate(X.T):
        values, place, counts = np.unique(column, return_inverse=True, return_counts=True)
        if isinstance(model.encoding.codes[d], LevelCodes) or values.size <= 2:
            distance += 1.0 - counts[place] / counts.max()
        else:
            rank = (np.cumsum(counts) - 0.5 * counts) / len(column)
            distance += (2.0 * rank[place] - 1.0) ** 2 + np.isnan(column)
    return X[int(np.argmin(distance))].copy()
