"""The Open Inference Protocol, version 2: tensors in, tensors out, and what a model takes."""

import math
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from tensorlace.errors import InputError
from tensorlace.serve.model import OUTPUTS, ServedModel
from tensorlace.serve.values import nearest

__all__ = ["Coverage", "InferRequest", "InferResponse", "ModelMetadata", "infer", "metadata"]

_NUMBERS = {
    "BOOL",
    "FP16",
    "FP32",
    "FP64",
    *(f"{u}INT{b}" for u in ("", "U") for b in (8, 16, 32, 64)),
}

Coverage = Annotated[float, Field(ge=0.01, le=0.999, description="Nominal coverage of intervals.")]


class InferInput(BaseModel):
    """A tensor: numbers, or strings if ``datatype`` is BYTES; null is a missing value."""

    model_config = ConfigDict(strict=True)
    name: str
    shape: list[Annotated[int, Field(ge=1)]] = Field(min_length=1, max_length=2)
    datatype: str
    parameters: dict[str, Any] = {}
    data: list[Any] = Field(min_length=1)


class InferOutput(BaseModel):
    """An output that is asked for."""

    model_config = ConfigDict(strict=True)
    name: str
    parameters: dict[str, Any] = {}


class InferParameters(BaseModel):
    """Parameters of a request."""

    model_config = ConfigDict(strict=True)
    coverage: Coverage = 0.9


class InferRequest(BaseModel):
    """Inference request."""

    model_config = ConfigDict(strict=True)
    id: str | None = None
    parameters: InferParameters = InferParameters()
    inputs: list[InferInput] = Field(min_length=1)
    outputs: list[InferOutput] | None = None


class TensorMetadata(BaseModel):
    """Name, type and shape of a tensor; -1 is any number of rows."""

    name: str
    datatype: str
    shape: list[int]


class ModelMetadata(BaseModel):
    """What a model takes and gives."""

    name: str
    versions: list[str] = ["1"]
    platform: str = "tensorlace"
    inputs: list[TensorMetadata]
    outputs: list[TensorMetadata]


class OutputTensor(BaseModel):
    """One number per row, or one text (BYTES)."""

    name: str
    datatype: str = "FP64"
    shape: list[int]
    data: list[float] | list[str]


class InferResponse(BaseModel):
    """Inference response."""

    model_name: str
    model_version: str = "1"
    id: str | None = None
    outputs: list[OutputTensor]


def metadata(model: ServedModel) -> ModelMetadata:
    """One input ``X`` (rows, D) if all columns are numbers, else one per column."""
    values = model.values
    if values.encoding.plain:
        inputs = [TensorMetadata(name="X", datatype="FP64", shape=[-1, len(values.names)])]
    else:
        inputs = [
            TensorMetadata(name=n, datatype="FP64" if k == "number" else "BYTES", shape=[-1])
            for n, k in zip(values.names, values.kinds, strict=True)
        ]
    outputs = [TensorMetadata(name=n, datatype=_type_of(n), shape=[-1]) for n in OUTPUTS]
    return ModelMetadata(name=model.name, inputs=inputs, outputs=outputs)


def infer(model: ServedModel, request: InferRequest) -> dict[str, Any]:
    """Answer a request, as what `InferResponse` describes.

    Raises
    ------
    InputError
        For tensors that are not those of `metadata`.
    """
    asked = OUTPUTS if not request.outputs else [o.name for o in request.outputs]
    for name in asked:
        if name not in OUTPUTS:
            raise InputError(f"no output {name!r:.80}: {nearest(name, OUTPUTS)}")
    columns = _columns(model, request.inputs)
    found = model.predict(model.values.table(columns), request.parameters.coverage)
    n = len(columns[0])
    tensors = [
        {"name": name, "datatype": _type_of(name), "shape": [n], "data": found[name]}
        for name in asked
    ]
    own = {} if request.id is None else {"id": request.id}
    return {"model_name": model.name, "model_version": "1", **own, "outputs": tensors}


def _type_of(output: str) -> str:
    return "BYTES" if output == "unlike" else "FP64"


def _columns(model: ServedModel, inputs: Sequence[InferInput]) -> list[list[Any]]:
    """Values of all columns, D times n."""
    values, wanted = model.values, [tensor.name for tensor in metadata(model).inputs]
    by_name: dict[str, InferInput] = {}
    for tensor in inputs:
        if tensor.name not in wanted:
            raise InputError(f"no input {tensor.name!r:.80}: {nearest(tensor.name, wanted)}")
        if tensor.name in by_name:
            raise InputError(f"input {tensor.name!r} is there twice: give it once")
        by_name[tensor.name] = tensor
    lacking = [name for name in wanted if name not in by_name]
    if lacking:
        raise InputError(
            f"{len(lacking)} of {len(wanted)} inputs are not there, such as {lacking[0]!r}: give "
            "all, with null for a missing value"
        )
    if values.encoding.plain:
        tensor, width = by_name["X"], len(values.names)
        if len(tensor.shape) != 2 or tensor.shape[1] != width:
            raise InputError(f"input 'X' has shape {tensor.shape}; give [rows, {width}]")
        _check_type(tensor, "number")
        flat = _flat(tensor)
        return [flat[d::width] for d in range(width)]
    rows = by_name[wanted[0]].shape[0]
    for (name, tensor), kind in zip(
        ((name, by_name[name]) for name in wanted), values.kinds, strict=True
    ):
        if tensor.shape not in ([rows], [rows, 1]):
            raise InputError(f"input {name!r} has shape {tensor.shape}; give [{rows}], as others")
        _check_type(tensor, kind)
    return [_flat(by_name[name]) for name in wanted]


def _check_type(tensor: InferInput, kind: str) -> None:
    fits = {"number": _NUMBERS, "category": {"BYTES", *_NUMBERS}, "date": {"BYTES"}}[kind]
    if tensor.datatype not in fits:
        expected = "FP64" if kind == "number" else "BYTES"
        raise InputError(
            f"input {tensor.name!r} has datatype {tensor.datatype!r:.40}; it is a {kind}: give "
            f"{expected}"
        )


def _flat(tensor: InferInput) -> list[Any]:
    """Data in row-major order, whether it came flat or as a list of rows."""
    data, shape = tensor.data, tensor.shape
    if any(isinstance(v, list) for v in data):
        width = shape[1] if len(shape) == 2 else -1
        if not all(isinstance(v, list) and len(v) == width for v in data):
            raise InputError(f"input {tensor.name!r}: its data are not rows of shape {shape}")
        data = [value for row in data for value in row]
    if len(data) != math.prod(shape):
        raise InputError(
            f"input {tensor.name!r} has {len(data)} values; shape {shape} takes {math.prod(shape)}"
        )
    return data
