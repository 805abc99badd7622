"""A graph of ONNX operators in the making: rows first, double precision, nothing twice."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from tensorlace.errors import InputError, SizeError

__all__ = ["Graph", "Tensor", "Value"]

OPSET, ML_OPSET, IR_VERSION = 17, 2, 8
"""Those of ONNX 1.12, so that older runtimes take the graph too."""

_LARGEST = 2**31 - 2**20
"""Bytes of constants: a protobuf message ends at 2 GiB."""

_NEUTRAL = {"Add": 0.0, "Sub": 0.0, "Mul": 1.0, "Div": 1.0}
"""onnxruntime leaves these out if a number is neutral, which it looks up in single precision."""

Value = str | int | float | npt.NDArray[Any]
"""Name of a tensor, or a constant: whole numbers are int64, others double."""


@final
@dataclass(frozen=True)
class Tensor:
    """An input or output: ``shape`` counts from the second axis, the first one is the rows."""

    name: str
    dtype: type
    shape: tuple[int, ...] = ()


@final
class Graph:
    """Operators in the order of their making; an operator that is there already is used again.

    So members of a mixture that look at the same column in the same way share that work.

    Parameters
    ----------
    taken : iterable of str
        Names of inputs and outputs, which no tensor between may have.

    Examples
    --------
    >>> g = Graph(["x"])
    >>> g.op("Add", "x", 1.0) == g.op("Add", "x", 1.0)
    True
    """

    def __init__(self, taken: Iterable[str]) -> None:
        self._prefix = "t"
        while any(name.startswith(self._prefix) for name in taken):
            self._prefix += "_"
        self._nodes: list[tuple[str, str, tuple[str, ...], str, dict[str, Any]]] = []
        self._known: dict[Any, str] = {}
        self._constants: dict[str, npt.NDArray[Any]] = {}

    def op(self, kind: str, *inputs: Value, domain: str = "", **attributes: Any) -> str:
        """Name of the result of an operator with one output."""
        if kind in _NEUTRAL and len(inputs) == 2 and _looks_neutral(kind, inputs[1]):
            return self._not_neutral(kind, *inputs)
        names = tuple(x if isinstance(x, str) else self.constant(x) for x in inputs)
        key = (kind, domain, names, repr(sorted(attributes.items())))
        if key not in self._known:
            self._known[key] = self._new_name()
            self._nodes.append((kind, domain, names, self._known[key], attributes))
        return self._known[key]

    def constant(self, value: int | float | npt.NDArray[Any]) -> str:
        """Name of a constant tensor."""
        array = np.asarray(value)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._known:
            self._known[key] = self._new_name()
            self._constants[self._known[key]] = array
            size = sum(a.nbytes for a in self._constants.values())
            if size > _LARGEST:
                raise SizeError(
                    f"the constants of the graph take {size / 2**30:.1f} GiB, a file of ONNX ends "
                    "at 2: fit with fewer members (n_members), a smaller rank, or curvature='last'"
                )
        return self._known[key]

    def as_number(self, x: str) -> str:
        """A mask as 0 and 1, or whole numbers, in double precision."""
        return self.op("Cast", x, to=_DOUBLE)

    def affine(self, x: str, scale: float, shift: float) -> str:
        """``shift + scale * x``."""
        return self.op("Add", self.op("Mul", x, scale), shift)

    def row_sum(self, x: str) -> str:
        """Sum over the second axis: (n, k) gives (n, 1)."""
        return self.op("ReduceSum", x, np.array([1]), keepdims=1)

    def row_squares(self, x: str) -> str:
        """Sum of squares over the second axis: (n, k) gives (n, 1)."""
        return self.op("ReduceSumSquare", x, axes=[1], keepdims=1)

    def side_by_side(self, parts: Sequence[str]) -> str:
        """Columns of all parts: k tensors (n, m_k) give one."""
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=1)

    def columns(self, x: str, which: Sequence[int] | npt.NDArray[np.intp]) -> str:
        """Some columns of a tensor (n, k)."""
        return self.op("Gather", x, np.asarray(which, dtype=np.int64), axis=1)

    def model(
        self,
        inputs: Sequence[Tensor],
        outputs: Mapping[Tensor, str],
        metadata: Mapping[str, str],
        version: str,
    ) -> Any:
        """ModelProto with these inputs, and outputs by the tensors that hold them; checked."""
        onnx = _onnx()
        helper = onnx.helper
        nodes = [
            helper.make_node(kind, names, [out], domain=domain, **attributes)
            for kind, domain, names, out, attributes in self._nodes
        ]
        nodes += [helper.make_node("Identity", [x], [out.name]) for out, x in outputs.items()]
        graph = helper.make_graph(
            nodes,
            "tensorlace",
            [_info(helper, tensor) for tensor in inputs],
            [_info(helper, tensor) for tensor in outputs],
            [onnx.numpy_helper.from_array(a, name) for name, a in self._constants.items()],
        )
        domains = {"": OPSET, **{domain: ML_OPSET for _, domain, *_ in self._nodes if domain}}
        model = helper.make_model(
            graph,
            producer_name="tensorlace",
            producer_version=version,
            ir_version=IR_VERSION,
            opset_imports=[helper.make_opsetid(*pair) for pair in domains.items()],
        )
        helper.set_model_props(model, dict(metadata))
        onnx.checker.check_model(model)
        return model

    def _not_neutral(self, kind: str, x: Value, c: Any) -> str:
        """``x`` and a number that single precision takes for 0 or 1, by exact powers of two."""
        if _NEUTRAL[kind]:
            return self.op("Mul", self.op(kind, x, 2.0 * c), 0.5 if kind == "Mul" else 2.0)
        return self.op("Mul", self.op(kind, self.op("Mul", x, 2.0**100), c * 2.0**100), 2.0**-100)

    def _new_name(self) -> str:
        return f"{self._prefix}{len(self._known)}"


_DOUBLE, _STRING = 11, 8
"""Numbers of types in ONNX (TensorProto.DataType)."""


def _looks_neutral(kind: str, value: Value) -> bool:
    if isinstance(value, str | int) or np.size(value) != 1:
        return False
    number, neutral = float(np.ravel(value)[0]), _NEUTRAL[kind]
    with np.errstate(over="ignore", under="ignore"):
        return number != neutral and float(np.float32(number)) == neutral


def _info(helper: Any, tensor: Tensor) -> Any:
    kind = _STRING if tensor.dtype is str else _DOUBLE
    return helper.make_tensor_value_info(tensor.name, kind, ["rows", *tensor.shape])


def _onnx() -> Any:
    try:
        import onnx
    except ImportError as error:
        raise InputError("the export needs onnx: pip install 'tensorlace[onnx]'") from error
    return onnx
