"""A fitted model as one ONNX graph: members, how much each counts in a row, and the noise."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tensorlace._atomic import write_atomically
from tensorlace.errors import InputError, ModelFileError
from tensorlace.export.graph import Graph, Tensor, Value
from tensorlace.export.inputs import Inputs
from tensorlace.export.machines import moments, response
from tensorlace.machines.ensemble import SHARPNESS, Ensemble
from tensorlace.machines.fitted_model import FittedModel, HoldsModel, fitted_model
from tensorlace.machines.noise import LARGEST_LOG, Noise, scales

__all__ = ["OUTPUTS", "save_onnx", "to_onnx"]

OUTPUTS = ("mean", "std", "epistemic_std", "aleatoric_std")
"""All of shape (rows,); with ``predicted_`` before them if a column has such a name."""


def to_onnx(model: FittedModel | HoldsModel, *, target: str | None = None) -> Any:
    """ONNX graph of a fitted model.

    Inputs. If all columns are numbers, there is one input ``X`` (rows, D) in double precision. If
    not, each column is an input of its own name and of shape (rows, 1): numbers are double; dates
    are double, in days since 1970-01-01 UTC; categories are strings, or double if all of them are
    numbers. A missing value is NaN, and in a string column the empty string. A category that
    training did not have may be given. `onnx_inputs` makes these tensors from a table.

    Outputs, in double precision and of shape (rows,): ``mean``, ``std``, ``epistemic_std`` and
    ``aleatoric_std``, as those of `predict_dist`; NaN in rows that `predict_dist` refuses, which
    have an infinite number or a value that is not in the order of an `Ordinal` column.

    Metadata: ``tensorlace.version``; ``tensorlace.columns``, JSON with name, kind, unit, categories
    and the missing value of each column; ``tensorlace.target`` if known.

    Parameters
    ----------
    model : TNKMRegressor or FittedModel
        With ``predictive="linearized"``.
    target : str, optional
        What is predicted.

    Returns
    -------
    onnx.ModelProto
        Checked by ``onnx.checker``.

    Raises
    ------
    InputError
        If onnx is not installed, for ``predictive="sampled"``, whose draws have no closed form, and
        for columns that a graph cannot tell apart.
    SizeError
        If the graph is larger than a file of ONNX may be.

    Examples
    --------
    >>> import numpy as np
    >>> from tensorlace import TNKMRegressor
    >>> from tensorlace.export import onnx_inputs, to_onnx
    >>> X = np.random.default_rng(0).uniform(size=(50, 2))
    >>> model = TNKMRegressor(rank=1, n_basis=3).fit(X, X.prod(axis=1))
    >>> graph = to_onnx(model)
    >>> [output.name for output in graph.graph.output]
    ['mean', 'std', 'epistemic_std', 'aleatoric_std']
    >>> import onnxruntime
    >>> session = onnxruntime.InferenceSession(graph.SerializeToString())
    >>> mean, std, *_ = session.run(None, onnx_inputs(model, X))
    >>> bool(np.allclose([mean, std], model.predict(X, return_std=True), rtol=1e-9))
    True
    """
    fitted = fitted_model(model)
    if fitted.n_draws:
        raise InputError(
            f"predictive='sampled' draws {fitted.n_draws} networks, for which there is no graph: "
            "fit with predictive='linearized', which has a closed form"
        )
    from importlib.metadata import version

    inputs = Inputs.of(fitted)
    tensors = inputs.tensors
    taken = [tensor.name for tensor in tensors]
    prefix = ""
    while any(prefix + name in taken for name in OUTPUTS):
        prefix += "predicted_"
    names = [prefix + name for name in OUTPUTS]
    g = Graph([*taken, *names])
    columns = inputs.columns(g)
    results = _results(g, fitted.ensemble, columns)
    about = {
        "tensorlace.version": version("tensorlace"),
        "tensorlace.columns": json.dumps(inputs.describe(), ensure_ascii=False),
    }
    if target is not None:
        about["tensorlace.target"] = target
    outputs = {Tensor(n, float): x for n, x in zip(names, results, strict=True)}
    return g.model(tensors, outputs, about, about["tensorlace.version"])


def save_onnx(
    model: FittedModel | HoldsModel, path: str | os.PathLike[str], *, target: str | None = None
) -> None:
    """Write the ONNX graph of a fitted model to a file, all or nothing; see `to_onnx`."""
    data = to_onnx(model, target=target).SerializeToString()
    try:
        write_atomically(Path(os.path.realpath(path)), data)
    except OSError as error:
        raise ModelFileError(f"{path} cannot be written: {error.strerror or error}") from error


def _results(g: Graph, ensemble: Ensemble, columns: Sequence[str]) -> list[str]:
    """`OUTPUTS`, each (n,).

    All is in units of the target of the first member until the end, so that no square overflows.
    """
    counting = [(m, w) for m, w in zip(ensemble.machines, ensemble.weights, strict=True) if w > 0.0]
    first = counting[0][0].target
    means, epistemic, noises = [], [], []
    for machine, _ in counting:
        f, variance = moments(g, machine, columns)
        unit = machine.target.scale / first.scale
        shift = (machine.target.location - first.location) / first.scale
        means.append(g.affine(f, unit, shift))
        epistemic.append(g.op("Mul", variance, unit * unit))
        noises.append((machine.noise_std * unit) ** 2)
    mu, e2 = g.side_by_side(means), g.side_by_side(epistemic)  # (n, M)
    a2, weights = np.array([noises]), np.array([[w for _, w in counting]])
    noise = ensemble.noise
    shares, stds = scales(noise.degrees)
    tails = float(shares @ stds**2)  # by how much the variance of Student's t is larger
    larger = (noise.shrink * noise.factor) ** 2 * tails
    w: Value
    aleatoric2: Value
    if ensemble.sharp and len(counting) > 1:  # see `ensemble.blend`
        log_std = g.op("Mul", g.op("Log", g.op("Add", e2, a2)), -0.5 * SHARPNESS)
        w = g.op("Softmax", g.op("Add", log_std, np.log(weights)), axis=1)
        aleatoric2 = g.op("MatMul", w, larger * a2.T)
    else:
        w = weights / weights.sum()
        aleatoric2 = larger * (w @ a2.T)
    mean = g.row_sum(g.op("Mul", mu, w))
    away = g.op("Sub", mu, mean)
    spread = g.row_sum(g.op("Mul", g.op("Mul", away, away), w))
    own = g.row_sum(g.op("Mul", e2, w))
    epistemic2 = g.op("Add", spread, g.op("Mul", own, noise.shrink**2))
    if noise.strength > 0.0:
        aleatoric2 = g.op("Mul", g.op("Exp", _log_variance(g, noise, columns)), aleatoric2)
    total2 = g.op("Add", epistemic2, aleatoric2)
    roots = [g.op("Mul", g.op("Sqrt", x), first.scale) for x in (total2, epistemic2, aleatoric2)]
    middle = g.affine(mean, first.scale, first.location)
    infinite = g.as_number(g.op("IsInf", g.side_by_side(columns)))
    refused = g.op("Greater", g.row_sum(infinite), 0.0)
    # the noise may be one number so far: the mask gives it a value for each row
    out = [g.op("Where", refused, np.nan, x) for x in (middle, *roots)]
    return [g.op("Squeeze", x, np.array([1])) for x in out]


def _log_variance(g: Graph, noise: Noise, columns: Sequence[str]) -> str:
    """`Noise.log_variance` (n, 1)."""
    parts = [
        g.affine(response(g, m, columns), m.target.scale, m.target.location) for m in noise.machines
    ]
    h = g.op("Sum", *parts)
    centred = g.affine(h, noise.strength / len(parts), -noise.strength * noise.level)
    return g.op("Clip", centred, -LARGEST_LOG, LARGEST_LOG)
