"""What a graph computes, in NumPy: the meaning that every translation has to keep."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tensorlace.errors import InputError
from tensorlace.portable.graph import Graph
from tensorlace.portable.operations import OPERATIONS

__all__ = ["evaluate"]


def evaluate(graph: Graph, inputs: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    """Outputs by name.

    Parameters
    ----------
    graph : Graph
    inputs : mapping of str to (n, width) arrays

    Examples
    --------
    >>> from tensorlace.portable import Builder, Input
    >>> g = Builder()
    >>> x = g.input(Input("x", 2))
    >>> graph = g.build({"y": g.column(x, 0) + 10.0 * g.column(x, 1)})
    >>> evaluate(graph, {"x": np.array([[1.0, 2.0], [3.0, 4.0]])})["y"]
    array([21., 43.])
    """
    results: list[npt.NDArray[Any]] = []
    with np.errstate(all="ignore"):  # of a choice between two, both are computed
        for node in graph.nodes:
            if node.value is not None:
                results.append(node.value)
            elif node.source is not None:
                results.append(_given(inputs, node.source.name, node.source.width))
            else:
                arrays = (results[k] for k in node.takes)
                results.append(OPERATIONS[node.name].compute(*arrays, **node.attributes))
    return {name: results[place] for name, place in graph.outputs.items()}


def _given(inputs: Mapping[str, npt.NDArray[Any]], name: str, width: int) -> npt.NDArray[Any]:
    array = inputs.get(name)
    if array is None or array.ndim != 2 or array.shape[1] != width:
        what = "nothing" if array is None else f"shape {array.shape}"
        raise InputError(f"the input {name} was given {what}; use an array of shape (n, {width})")
    return array
