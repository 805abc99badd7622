"""Functions of a model written down as data: a graph of few array operations that any runtime has.

Imports from: no other room.
"""

from tensorlace.portable.builder import Builder, Operand, Value
from tensorlace.portable.evaluate import evaluate
from tensorlace.portable.graph import ROWS, Graph, Input, Node, Shape
from tensorlace.portable.operations import OPERATIONS
from tensorlace.portable.powers import complex_powers

__all__ = [
    "OPERATIONS",
    "ROWS",
    "Builder",
    "Graph",
    "Input",
    "Node",
    "Operand",
    "Shape",
    "Value",
    "complex_powers",
    "evaluate",
]
