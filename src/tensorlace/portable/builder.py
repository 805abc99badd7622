"""How graphs are written: values with the operators of arrays."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np
import numpy.typing as npt

from tensorlace._types import Array
from tensorlace.errors import InputError
from tensorlace.portable.graph import ROWS, Graph, Input, Kind, Node, Shape
from tensorlace.portable.operations import OPERATIONS

__all__ = ["Builder", "Operand", "Value"]


@final
class Value:
    """The result of a node of a graph in the making; its operators add nodes.

    ``+ - * / @``, ``< <= > >=``, and for masks ``& | ~`` mean what they mean for arrays; a number
    or an array on either side becomes a constant. `Builder.equal` compares, ``==`` does not.
    """

    __array_ufunc__ = None  # so that an array on the left leaves operators to this class

    def __init__(self, builder: "Builder", place: int, shape: Shape, kind: Kind) -> None:
        self.builder = builder
        self.place = place
        self.shape = shape
        self.kind = kind

    @property
    def T(self) -> "Value":
        """Transposed matrix."""
        return self.builder.apply("transpose", self)

    def __add__(self, other: "Operand") -> "Value":
        return self.builder.apply("add", self, other)

    def __radd__(self, other: "Operand") -> "Value":
        return self.builder.apply("add", other, self)

    def __sub__(self, other: "Operand") -> "Value":
        return self.builder.apply("sub", self, other)

    def __rsub__(self, other: "Operand") -> "Value":
        return self.builder.apply("sub", other, self)

    def __mul__(self, other: "Operand") -> "Value":
        return self.builder.apply("mul", self, other)

    def __rmul__(self, other: "Operand") -> "Value":
        return self.builder.apply("mul", other, self)

    def __truediv__(self, other: "Operand") -> "Value":
        return self.builder.apply("div", self, other)

    def __rtruediv__(self, other: "Operand") -> "Value":
        return self.builder.apply("div", other, self)

    def __matmul__(self, other: "Operand") -> "Value":
        return self.builder.apply("matmul", self, other)

    def __rmatmul__(self, other: "Operand") -> "Value":
        return self.builder.apply("matmul", other, self)

    def __neg__(self) -> "Value":
        return self.builder.apply("neg", self)

    def __lt__(self, other: "Operand") -> "Value":
        return self.builder.apply("less", self, other)

    def __le__(self, other: "Operand") -> "Value":
        return self.builder.apply("less_equal", self, other)

    def __gt__(self, other: "Operand") -> "Value":
        return self.builder.apply("less", other, self)

    def __ge__(self, other: "Operand") -> "Value":
        return self.builder.apply("less_equal", other, self)

    def __and__(self, other: "Operand") -> "Value":
        return self.builder.apply("and", self, other)

    def __rand__(self, other: "Operand") -> "Value":
        return self.builder.apply("and", other, self)

    def __or__(self, other: "Operand") -> "Value":
        return self.builder.apply("or", self, other)

    def __ror__(self, other: "Operand") -> "Value":
        return self.builder.apply("or", other, self)

    def __invert__(self) -> "Value":
        return self.builder.apply("not", self)


Operand = Value | float | Array | npt.NDArray[np.bool_]
"""What an operation takes."""


@final
class Builder:
    """A graph in the making.

    A node that is there already is used again, so members of a mixture that look at the same column
    in the same way share that work.

    Examples
    --------
    >>> g = Builder()
    >>> u = g.column(g.input(Input("u", 1)), 0)
    >>> waves = g.cos(u * np.arange(3.0)[:, None])
    >>> waves.shape == (3, ROWS)
    True
    >>> graph = g.build({"waves": waves})
    >>> from tensorlace.portable import evaluate
    >>> evaluate(graph, {"u": np.zeros((2, 1))})["waves"]
    array([[1., 1.],
           [1., 1.],
           [1., 1.]])
    """

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self._known: dict[Any, Value] = {}

    def input(self, source: Input) -> Value:
        """Declare an input (n, width)."""
        node = Node("input", (), (ROWS, source.width), source.kind, source=source)
        return self._added(("input", source.name), node)

    def constant(self, value: float | Array | npt.NDArray[np.bool_]) -> Value:
        """Numbers, or a mask."""
        array: npt.NDArray[Any] = np.asarray(value)
        mask = array.dtype == np.bool_
        array = np.array(array, dtype=np.bool_ if mask else np.float64, order="C")
        key = ("constant", mask, array.shape, hashlib.sha256(array.tobytes()).digest())
        node = Node("constant", (), array.shape, "mask" if mask else "number", value=array)
        return self._added(key, node)

    def apply(self, name: str, *operands: Operand, **attributes: Any) -> Value:
        """The result of an operation of `OPERATIONS`.

        Raises
        ------
        InputError
            For arrays of kinds or shapes that the operation does not take.
        """
        operation = OPERATIONS[name]
        values = [self._lifted(operand) for operand in operands]
        kinds = tuple(value.kind for value in values)
        if kinds != (operation.takes or ("number",) * len(kinds)):
            raise InputError(
                f"{name} was given {', '.join(kinds)}; use {', '.join(operation.takes or kinds)}"
            )
        shape = operation.shape(*(value.shape for value in values), **attributes)
        takes = tuple(value.place for value in values)
        key = (name, takes, tuple(sorted(attributes.items())))
        return self._added(key, Node(name, takes, shape, operation.gives, attributes))

    def build(self, outputs: Mapping[str, Value]) -> Graph:
        """The graph of these outputs, without nodes that none of them needs."""
        needed = {value.place for value in outputs.values()}
        for place in reversed(range(len(self._nodes))):
            if place in needed or self._nodes[place].source is not None:
                needed.add(place)
                needed.update(self._nodes[place].takes)
        new = {place: k for k, place in enumerate(sorted(needed))}
        nodes = tuple(_renumbered(self._nodes[place], new) for place in new)
        return Graph(nodes, {name: new[value.place] for name, value in outputs.items()})

    def cos(self, x: Operand) -> Value:
        """Cosine."""
        return self.apply("cos", x)

    def sin(self, x: Operand) -> Value:
        """Sine."""
        return self.apply("sin", x)

    def exp(self, x: Operand) -> Value:
        """Exponential."""
        return self.apply("exp", x)

    def log(self, x: Operand) -> Value:
        """Natural logarithm."""
        return self.apply("log", x)

    def sqrt(self, x: Operand) -> Value:
        """Square root."""
        return self.apply("sqrt", x)

    def abs(self, x: Operand) -> Value:
        """Absolute value."""
        return self.apply("abs", x)

    def round(self, x: Operand) -> Value:
        """Nearest whole number, of two the even one."""
        return self.apply("round", x)

    def power(self, x: Operand, k: Operand) -> Value:
        """``x^k``."""
        return self.apply("pow", x, k)

    def fmod(self, x: Operand, y: Operand) -> Value:
        """Rest of a division, with the sign of ``x``."""
        return self.apply("fmod", x, y)

    def minimum(self, x: Operand, y: Operand) -> Value:
        """The smaller one."""
        return self.apply("min", x, y)

    def maximum(self, x: Operand, y: Operand) -> Value:
        """The larger one."""
        return self.apply("max", x, y)

    def clip(self, x: Operand, low: float, high: float) -> Value:
        """The nearest number from ``low`` to ``high``."""
        return self.minimum(self.maximum(x, low), high)

    def equal(self, x: Operand, y: Operand) -> Value:
        """Mask of equal numbers."""
        return self.apply("equal", x, y)

    def isnan(self, x: Operand) -> Value:
        """Mask of what is not a number."""
        return self.apply("isnan", x)

    def isinf(self, x: Operand) -> Value:
        """Mask of infinite numbers."""
        return self.apply("isinf", x)

    def number(self, mask: Operand) -> Value:
        """A mask as 0 and 1."""
        return self.apply("number", mask)

    def where(self, mask: Operand, x: Operand, y: Operand) -> Value:
        """``x`` where the mask is set, ``y`` elsewhere."""
        return self.apply("where", mask, x, y)

    def expand(self, x: Operand, like: Operand) -> Value:
        """``x`` repeated to the shape of ``like``."""
        return self.apply("expand", x, like)

    def locate(self, knots: Operand, t: Operand) -> Value:
        """Number of the last of ascending knots (K,) up to ``t``; 0 below all, and for NaN."""
        return self.apply("locate", knots, t)

    def lookup(self, table: Operand, place: Operand) -> Value:
        """Entries of a table (K,) at whole numbers from 0 to K - 1."""
        return self.apply("lookup", table, place)

    def label(self, text: Value, numbers: Mapping[str, float], other: float) -> Value:
        """The number of each text, ``other`` if it has none."""
        keys, values = tuple(numbers), tuple(map(float, numbers.values()))
        return self.apply("label", text, keys=keys, values=values, other=other)

    def sum(self, x: Operand, axis: int = 0) -> Value:
        """Sum over an axis, which goes."""
        return self.apply("sum", x, axis=axis)

    def largest(self, x: Operand, axis: int = 0) -> Value:
        """Maximum over an axis, which goes."""
        return self.apply("largest", x, axis=axis)

    def concat(self, parts: Sequence[Operand]) -> Value:
        """One array after the other along the first axis."""
        return self._lifted(parts[0]) if len(parts) == 1 else self.apply("concat", *parts)

    def stack(self, parts: Sequence[Value]) -> Value:
        """Arrays (n,) below each other, (k, n)."""
        return self.concat([self.reshape(part, (1, *part.shape)) for part in parts])

    def reshape(self, x: Value, shape: Shape) -> Value:
        """Same entries in another shape; `ROWS` stands for the rows."""
        return x if x.shape == shape else self.apply("reshape", x, shape=shape)

    def slice(self, x: Value, start: int, stop: int) -> Value:
        """Entries from ``start`` to before ``stop`` of the first axis."""
        whole = (start, stop) == (0, x.shape[0])
        return x if whole else self.apply("slice", x, start=start, stop=stop)

    def take(self, x: Value, which: Sequence[int]) -> Value:
        """Some entries of the first axis."""
        return self.apply("take", x, which=tuple(map(int, which)))

    def row(self, x: Value, place: int) -> Value:
        """One entry of the first axis, which goes."""
        return self.reshape(self.slice(x, place, place + 1), x.shape[1:])

    def column(self, x: Value, place: int) -> Value:
        """One column of a matrix, (n, k) to (n,)."""
        return self.apply("column", x, place=int(place))

    def _lifted(self, operand: Operand) -> Value:
        if not isinstance(operand, Value):
            return self.constant(operand)
        if operand.builder is not self:
            raise InputError("a value of one graph was given to another: build both in one")
        return operand

    def _added(self, key: Any, node: Node) -> Value:
        if key not in self._known:
            self._known[key] = Value(self, len(self._nodes), node.shape, node.kind)
            self._nodes.append(node)
        return self._known[key]


def _renumbered(node: Node, new: Mapping[int, int]) -> Node:
    takes = tuple(new[place] for place in node.takes)
    return Node(node.name, takes, node.shape, node.kind, node.attributes, node.value, node.source)
