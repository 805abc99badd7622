"""A fitted model as one ONNX graph: members, their weights row by row, and the noise."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from tensorlace._atomic import write_atomically
from tensorlace.errors import InputError, ModelFileError
from tensorlace.export.inputs import Inputs
from tensorlace.export.translation import onnx_model
from tensorlace.machines.fitted_model import FittedModel, HoldsModel, holder
from tensorlace.machines.portable_ensemble import portable_mixture
from tensorlace.portable import Builder

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
    fitted = holder(model).fitted_model()
    if fitted.n_draws:
        raise InputError(
            f"predictive='sampled' draws {fitted.n_draws} networks, for which there is no graph: "
            "fit with predictive='linearized', which has a closed form"
        )
    from importlib.metadata import version

    inputs = Inputs.of(fitted)
    g = Builder()
    columns = inputs.columns(g)
    moments = portable_mixture(g, fitted.ensemble, columns).moments(g, fitted.scale)
    infinite = g.sum(g.number(g.isinf(g.stack(columns)))) > 0.0
    prefix = ""
    while any(prefix + name in inputs.names for name in OUTPUTS):
        prefix += "predicted_"
    outputs = {prefix + name: g.where(infinite, np.nan, moments[name]) for name in OUTPUTS}
    about = {
        "tensorlace.version": version("tensorlace"),
        "tensorlace.columns": json.dumps(inputs.describe(), ensure_ascii=False),
    }
    if target is not None:
        about["tensorlace.target"] = target
    return onnx_model(g.build(outputs), about, about["tensorlace.version"])


def save_onnx(
    model: FittedModel | HoldsModel, path: str | os.PathLike[str], *, target: str | None = None
) -> None:
    """Write the ONNX graph of a fitted model to a file, all or nothing; see `to_onnx`."""
    data = to_onnx(model, target=target).SerializeToString()
    try:
        write_atomically(Path(os.path.realpath(path)), data)
    except OSError as error:
        raise ModelFileError(f"{path} cannot be written: {error.strerror or error}") from error
