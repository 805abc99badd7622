"""A finished graph: nodes in an order in which each comes after those it takes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, final

import numpy as np
import numpy.typing as npt

__all__ = ["ROWS", "Graph", "Input", "Kind", "Node", "Shape"]

ROWS = -1
"""The length of an axis that counts rows, in the shape of a node."""

Shape = tuple[int, ...]
"""Lengths of all axes; `ROWS` at most once."""

Kind = Literal["number", "mask", "text"]
"""What an array holds: double precision, truth values, or text, which only an input may be."""


@final
@dataclass(frozen=True)
class Input:
    """Where rows come in: an array whose first axis counts them.

    Attributes
    ----------
    name : str
    width : int
        Length of the second axis.
    kind : {"number", "text"}
    """

    name: str
    width: int
    kind: Kind = "number"


@final
@dataclass(frozen=True, eq=False)
class Node:
    """An input, a constant, or an operation on the results of other nodes.

    Attributes
    ----------
    name : str
        "input", "constant", or a key of `OPERATIONS`.
    takes : tuple of int
        Places in the graph of the nodes that an operation takes.
    attributes : mapping
        What an operation needs besides arrays: axes, shapes, places.
    shape : tuple of int
    kind : {"number", "mask", "text"}
    value : ndarray or None
        Of a constant.
    source : Input or None
        Of an input.
    """

    name: str
    takes: tuple[int, ...]
    shape: Shape
    kind: Kind = "number"
    attributes: Mapping[str, Any] = field(default_factory=dict)
    value: npt.NDArray[np.float64] | npt.NDArray[np.bool_] | None = None
    source: Input | None = None


@final
@dataclass(frozen=True, eq=False)
class Graph:
    """A function from named inputs to named outputs.

    Attributes
    ----------
    nodes : tuple of Node
        Each is needed by an output or is an input, and takes earlier ones only.
    outputs : mapping of str to int
        Places of the nodes that hold them.
    """

    nodes: tuple[Node, ...]
    outputs: Mapping[str, int]

    @property
    def inputs(self) -> tuple[Input, ...]:
        """In the order in which they were declared."""
        return tuple(node.source for node in self.nodes if node.source is not None)

    @property
    def n_bytes(self) -> int:
        """Size of all constants."""
        return sum(node.value.nbytes for node in self.nodes if node.value is not None)
