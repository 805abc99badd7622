"""A portable graph as operators of ONNX, one operation after the other, in double precision."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import numpy as np
import numpy.typing as npt

from tensorlace.errors import InputError, SizeError
from tensorlace.portable import ROWS, Graph, Node, Shape

__all__ = ["LARGEST", "onnx_model"]

OPSET, ML_OPSET, IR_VERSION = 17, 2, 8
"""Those of ONNX 1.12, so that older runtimes take the graph too."""

LARGEST = 2**31 - 2**20
"""Bytes of constants: a protobuf message ends at 2 GiB."""

_DOUBLE, _STRING, _INTEGER = 11, 8, 7
"""Numbers of types in ONNX (TensorProto.DataType)."""


def onnx_model(graph: Graph, metadata: Mapping[str, str], version: str) -> Any:
    """ModelProto of a graph; checked.

    Inputs keep their names and have shape (rows, width), outputs are (..., rows).

    Raises
    ------
    InputError
        If onnx is not installed.
    SizeError
        If the constants are larger than a file of ONNX may be.
    """
    onnx = _onnx()
    if graph.n_bytes > LARGEST:
        raise SizeError(
            f"the constants of the graph take {graph.n_bytes / 2**30:.1f} GiB, a file of ONNX ends "
            "at 2: fit with fewer members (n_members), a smaller rank, or curvature='last'"
        )
    helper, translation = onnx.helper, _Translation(graph)
    nodes = [
        helper.make_node(kind, names, [out], domain=domain, **attributes)
        for kind, domain, names, out, attributes in translation.nodes()
    ]
    nodes += [
        helper.make_node("Identity", [translation.names[place]], [name])
        for name, place in graph.outputs.items()
    ]
    info = helper.make_tensor_value_info
    text = {"text": _STRING}
    onnx_graph = helper.make_graph(
        nodes,
        "tensorlace",
        [info(x.name, text.get(x.kind, _DOUBLE), ["rows", x.width]) for x in graph.inputs],
        [
            info(name, _DOUBLE, ["rows" if k == ROWS else k for k in graph.nodes[place].shape])
            for name, place in graph.outputs.items()
        ],
        [onnx.numpy_helper.from_array(a, name) for name, a in translation.constants.items()],
    )
    domains = {"": OPSET} | {node.domain: ML_OPSET for node in nodes if node.domain}
    model = helper.make_model(
        onnx_graph,
        producer_name="tensorlace",
        producer_version=version,
        ir_version=IR_VERSION,
        opset_imports=[helper.make_opsetid(*pair) for pair in domains.items()],
    )
    helper.set_model_props(model, dict(metadata))
    onnx.checker.check_model(model)
    return model


_Operator = tuple[str, str, tuple[str, ...], str, dict[str, Any]]
"""Kind, domain, inputs, output and attributes."""


@final
class _Translation:
    """Operators and constants of a graph, with names that no input or output has."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._prefix = "t"
        taken = [*graph.outputs, *(source.name for source in graph.inputs)]
        while any(name.startswith(self._prefix) for name in taken):
            self._prefix += "_"
        self._operators: list[_Operator] = []
        self._known: dict[Any, str] = {}
        self.constants: dict[str, npt.NDArray[Any]] = {}
        self.names: list[str] = []

    def nodes(self) -> list[_Operator]:
        """All operators; afterwards ``names`` has the name of each node of the graph."""
        for node in self._graph.nodes:
            if node.source is not None:
                self.names.append(node.source.name)
            elif node.value is not None:
                self.names.append(self.constant(node.value))
            else:
                self.names.append(self._translated(node))
        used = {name for _, _, names, _, _ in self._operators for name in names}
        used |= {self.names[place] for place in self._graph.outputs.values()}
        self.constants = {name: a for name, a in self.constants.items() if name in used}
        return self._operators

    def op(self, kind: str, *names: str, domain: str = "", **attributes: Any) -> str:
        """Name of the result of an operator with one output."""
        out = f"{self._prefix}{len(self._operators) + len(self.constants)}"
        self._operators.append((kind, domain, names, out, attributes))
        return out

    def constant(self, value: int | float | npt.NDArray[Any]) -> str:
        """Name of a constant: whole numbers are int64, others double."""
        array = np.asarray(value)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._known:
            self._known[key] = f"{self._prefix}{len(self._operators) + len(self.constants)}"
            self.constants[self._known[key]] = array
        return self._known[key]

    def _translated(self, node: Node) -> str:
        names = [self.names[place] for place in node.takes]
        if node.name in _SPECIAL:
            return _SPECIAL[node.name](self, *names, **node.attributes)
        values = [self._graph.nodes[place].value for place in node.takes]
        return self._plain(node.name, names, values)

    def _plain(self, name: str, names: list[str], values: list[npt.NDArray[Any] | None]) -> str:
        """An operator on arrays, of which some are constants.

        onnxruntime leaves operators with a neutral number out, which it looks up in single
        precision: if it would be wrong, exact powers of two make the number another one.
        """
        for place, value in enumerate(values):
            if value is not None and _looks_neutral(name, place, value):
                break
        else:
            return self.op(_SAME[name], *names)
        scaled = list(names)
        if _NEUTRAL[name] == 1.0:
            scaled[place] = self.constant(2.0 * value)
            back = self.constant(0.5 if name == "mul" else 2.0)
            return self.op("Mul", self.op(_SAME[name], *scaled), back)
        larger = 2.0**100 * value
        scaled[place] = self.constant(larger)
        scaled[1 - place] = self.op("Mul", names[1 - place], self.constant(2.0**100))
        values = [larger if k == place else None for k in range(2)]
        return self.op("Mul", self._plain(name, scaled, values), self.constant(2.0**-100))


_SAME = {
    "add": "Add",
    "sub": "Sub",
    "mul": "Mul",
    "div": "Div",
    "pow": "Pow",
    "min": "Min",
    "max": "Max",
    "less": "Less",
    "less_equal": "LessOrEqual",
    "equal": "Equal",
    "and": "And",
    "or": "Or",
    "neg": "Neg",
    "abs": "Abs",
    "sqrt": "Sqrt",
    "exp": "Exp",
    "log": "Log",
    "cos": "Cos",
    "sin": "Sin",
    "round": "Round",
    "isnan": "IsNaN",
    "isinf": "IsInf",
    "not": "Not",
    "where": "Where",
    "matmul": "MatMul",
}
"""Operations that ONNX has under another name."""

_NEUTRAL = {"add": 0.0, "sub": 0.0, "mul": 1.0, "div": 1.0}
"""Operations that onnxruntime leaves out if one number is neutral."""


def _looks_neutral(name: str, place: int, value: npt.NDArray[Any]) -> bool:
    if name not in _NEUTRAL or value.size != 1 or (place == 0 and name in ("sub", "div")):
        return False
    number, neutral = float(value.ravel()[0]), _NEUTRAL[name]
    with np.errstate(over="ignore", under="ignore"):
        return number != neutral and float(np.float32(number)) == neutral


def _fmod(t: _Translation, x: str, y: str) -> str:
    return t.op("Mod", x, y, fmod=1)


def _number(t: _Translation, x: str) -> str:
    return t.op("Cast", x, to=_DOUBLE)


def _expand(t: _Translation, x: str, like: str) -> str:
    return t.op("Expand", x, t.op("Shape", like))


def _locate(t: _Translation, knots: str, x: str) -> str:
    """A binary search for the last knot up to each number."""
    values = t.constants.get(knots)
    if values is None:
        raise InputError("the knots of locate are computed in the graph: give a constant array")
    steps = (values.size - 1).bit_length()
    table = t.constant(np.concatenate([values, np.full(2**steps - values.size, np.inf)]))
    at = t.op("Expand", t.constant(np.zeros(1, np.int64)), t.op("Shape", x))
    for k in reversed(range(steps)):
        further = t.op("Add", at, t.constant(2**k))
        reached = t.op("LessOrEqual", t.op("Gather", table, further, axis=0), x)
        at = t.op("Where", reached, further, at)
    return t.op("Cast", at, to=_DOUBLE)


def _lookup(t: _Translation, table: str, place: str) -> str:
    return t.op("Gather", table, t.op("Cast", place, to=_INTEGER), axis=0)


def _label(
    t: _Translation, x: str, *, keys: Sequence[str], values: Sequence[float], other: float
) -> str:
    found = t.op(
        "LabelEncoder",
        x,
        domain="ai.onnx.ml",
        keys_strings=list(keys),
        values_int64s=[int(value) for value in values],
        default_int64=int(other),
    )
    return t.op("Cast", found, to=_DOUBLE)


def _sum(t: _Translation, x: str, *, axis: int) -> str:
    return t.op("ReduceSum", x, t.constant(np.array([axis])), keepdims=0)


def _largest(t: _Translation, x: str, *, axis: int) -> str:
    return t.op("ReduceMax", x, axes=[axis], keepdims=0)


def _concat(t: _Translation, *parts: str) -> str:
    return t.op("Concat", *parts, axis=0)


def _reshape(t: _Translation, x: str, *, shape: Shape) -> str:
    return t.op("Reshape", x, t.constant(np.array(shape, dtype=np.int64)))


def _transpose(t: _Translation, x: str) -> str:
    return t.op("Transpose", x, perm=[1, 0])


def _slice(t: _Translation, x: str, *, start: int, stop: int) -> str:
    return t.op("Slice", x, *(t.constant(np.array([k])) for k in (start, stop, 0)))


def _take(t: _Translation, x: str, *, which: Sequence[int]) -> str:
    return t.op("Gather", x, t.constant(np.array(which)), axis=0)


def _column(t: _Translation, x: str, *, place: int) -> str:
    return t.op("Gather", x, t.constant(place), axis=1)


_SPECIAL: Mapping[str, Callable[..., str]] = {
    "fmod": _fmod,
    "number": _number,
    "expand": _expand,
    "locate": _locate,
    "lookup": _lookup,
    "label": _label,
    "sum": _sum,
    "largest": _largest,
    "concat": _concat,
    "reshape": _reshape,
    "transpose": _transpose,
    "slice": _slice,
    "take": _take,
    "column": _column,
}
"""Operations that take operators with attributes, or several."""


def _onnx() -> Any:
    try:
        import onnx
    except ImportError as error:
        raise InputError("the export needs onnx: pip install 'tensorlace[onnx]'") from error
    return onnx
