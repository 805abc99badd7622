"""``tensorlace export``: a model as an ONNX graph, for runtimes without Python."""

from pathlib import Path
from typing import Annotated

import typer

from tensorlace.cli.options import Model
from tensorlace.cli.output import count, number, say
from tensorlace.errors import InputError
from tensorlace.machines.fitted_model import holder
from tensorlace.model_file.files import describe, load

__all__ = ["export"]


def export(
    model: Model,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="ONNX file; default: beside the model, `.onnx`."),
    ] = None,
) -> None:
    """Write a model as an ONNX graph that gives mean and standard deviation.

    If all columns are numbers, the graph takes one input `X` (rows, columns) in double precision;
    otherwise one input (rows, 1) per column: double for numbers and for dates, which are days since
    1970-01-01, strings for categories. Missing is NaN, or the empty string. Its outputs are `mean`,
    `std`, `epistemic_std` and `aleatoric_std`. Needs `tensorlace[onnx]`.

    Examples
    --------
    tensorlace export houses.tlace

    tensorlace export houses.tlace -o houses.onnx
    """
    from tensorlace.export import save_onnx
    from tensorlace.export.inputs import Inputs

    fitted = holder(load(model)).fitted_model()
    path = model.with_suffix(".onnx") if output is None else output
    if path.exists() and path.samefile(model):
        raise InputError(f"{path} is the model itself: choose another name with --output")
    target = describe(model)["notes"].get("target")
    save_onnx(fitted, path, target=None if target is None else str(target))
    size = number(path.stat().st_size / 1024)
    tensors = Inputs.of(fitted).tensors
    if tensors[0].name == "X" and fitted.encoding.plain:
        takes = f"one input X (rows, {fitted.n_columns}) in double precision"
    else:
        takes = f"{count(len(tensors), 'input')} (rows, 1) by the names of the columns"
    say([f"Wrote {path}, {size} KiB: {takes}; mean and std out."])
