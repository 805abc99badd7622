"""A fitted model as JSON that the page's JavaScript can compute with, to the last digits.

What takes rows to their predictive distributions is the portable graph of the model. Constants are
kept apart, each content once, as base64 of the smallest numbers that hold them exactly: whole
numbers for the columns of a compact model (see `tensorlace.compact.posterior_directions`), single
precision, or double.
"""

import base64
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from tensorlace.compact.posterior_directions import exponents_of, widths_of
from tensorlace.machines.fitted_model import FittedModel, HoldsModel, holder
from tensorlace.machines.portable_ensemble import portable_mixture
from tensorlace.machines.portable_novelty import portable_novelty
from tensorlace.portable import Builder, Graph, Input, Node

__all__ = ["LEVELS", "embed", "graph_as_json"]

LEVELS = (0.025, 0.25, 0.5, 0.75, 0.975)
"""Quantiles that the panel shows: the median, and the ends of a 50 % and a 95 % band."""

_SMALL = 8
"""Numbers of a constant that is written as a list."""


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
    >>> sorted(embedded), sorted(embedded["graph"])
    (['graph', 'levels', 'names', 'residuals', 'scale'], ['arrays', 'nodes', 'outputs'])
    """
    fitted = holder(model).fitted_model()
    return {
        "graph": graph_as_json(_graph(fitted)),
        "residuals": _residuals(fitted.calibration),
        "names": [column.name for column in fitted.ensemble.columns.columns],
        "levels": list(LEVELS),
        "scale": None if fitted.scale.trivial else fitted.scale.on_page(),
    }


def _graph(model: FittedModel) -> Graph:
    """From encoded rows ``X`` (n, D) to all that the panel shows of them but quantiles."""
    g, columns = Builder(), model.ensemble.columns
    X = g.input(Input("X", columns.n_columns))
    x = [g.column(X, d) for d in range(columns.n_columns)]
    mixture = portable_mixture(g, model.ensemble, x)
    novelty = portable_novelty(g, columns, x, mixture.ratio)
    return g.build({**mixture.moments(g, model.scale), **mixture.normals(g), **novelty})


def _residuals(calibration: Any) -> list[float | None] | None:
    """Where calibrated quantiles lie on the scale of a standard normal; None if too few rows."""
    if calibration is None:
        return None
    return [float(z) if math.isfinite(z) else None for z in calibration.residual(LEVELS)]


def graph_as_json(graph: Graph) -> dict[str, Any]:
    """A graph as plain data for ``assets/engine.js``.

    Returns
    -------
    dict
        ``nodes``: name, shape, places of what the node takes, and attributes, which for a constant
        are its place in ``arrays``; ``outputs``: places by name.
    """
    arrays: list[dict[str, Any]] = []
    nodes = [_node(node, arrays) for node in graph.nodes]
    return {"nodes": nodes, "arrays": arrays, "outputs": dict(graph.outputs)}


def _node(node: Node, arrays: list[dict[str, Any]]) -> list[Any]:
    if node.value is not None:
        arrays.append(_packed(node.value.astype(np.float64)))
        return [node.name, node.shape, [], len(arrays) - 1]
    if node.source is not None:
        return [node.name, node.shape, [], {"name": node.source.name, "kind": node.kind}]
    attributes = [dict(node.attributes)] if node.attributes else []
    return [node.name, node.shape, node.takes, *attributes]


def _packed(array: npt.NDArray[np.float64]) -> dict[str, Any]:
    """The array as text, in the fewest bytes that keep every bit."""
    finite = bool(np.all(np.isfinite(array)))
    if finite and array.size <= _SMALL:
        return {"type": "list", "data": array.ravel().tolist()}
    widths = widths_of(array) if finite and array.ndim == 2 and array.size else None
    if widths is not None:
        exponents = exponents_of(array, widths)
        numbers = np.ldexp(array, -exponents).astype("<i4")
        parts = (
            np.ascontiguousarray(column).view(np.uint8).reshape(-1, 4)[:, :width].tobytes()
            for column, width in zip(numbers.T, widths, strict=True)
        )
        columns = {"exponents": exponents.tolist(), "widths": widths.tolist()}
        data = _text(b"".join(parts))
        return {"type": "whole", "shape": list(array.shape), **columns, "data": data}
    with np.errstate(over="ignore"):
        single = array.astype("<f4")
    if np.array_equal(single, array):
        return {"type": "f4", "data": _text(single.tobytes())}
    return {"type": "f8", "data": _text(array.astype("<f8").tobytes())}


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
