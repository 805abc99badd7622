"""``tensorlace predict``: the input with mean, standard deviation and interval of each row."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from tensorlace.cli.files import as_text, features, numbered, write
from tensorlace.cli.options import Data, Json, Level, Model
from tensorlace.cli.output import count, note, print_json
from tensorlace.model_file.files import load
from tensorlace.sources.files import read_frame

__all__ = ["free_names", "predict"]


def predict(
    model: Model,
    data: Data,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="CSV or Parquet; default: CSV on standard output."),
    ] = None,
    coverage: Level = 0.9,
    json: Json = False,
) -> None:
    """Predict the rows of a table.

    The output is the input, its rows in their order, and four columns more: mean, std, lower,
    upper. If one of these names is taken, all four begin with `predicted_`. Text that a
    spreadsheet would run as a formula gets an apostrophe.

    Examples
    --------
    tensorlace predict houses.tlace new.csv -o out.csv

    tensorlace predict houses.tlace new.csv --coverage 0.5 | head
    """
    machine = load(model)
    fitted = machine.fitted_model()
    X = features(fitted, read_frame(data, text=as_text(fitted)))
    with numbered(X.index):
        dist = machine.predict_dist(X)
    lower, upper = fitted.interval(dist, coverage)
    values = (dist.mean, dist.std, lower, upper)
    names = ("mean", "std", "lower", "upper")
    beyond = int(machine.extrapolated(X).sum())
    if json:
        rows = [dict(zip(names, map(float, row), strict=True)) for row in zip(*values, strict=True)]
        print_json(
            {"coverage": coverage, "rows": len(X), "extrapolated": beyond, "predictions": rows}
        )
        return
    out = read_frame(data, as_written=True)
    free = free_names(names, list(out.columns))
    for name, column in zip(free, values, strict=True):
        out[name] = column
    write(out, output)
    if free != names:
        note(f"the table has a column of the same name: predictions are {', '.join(free)}")
    if beyond:
        note(f"{beyond} of {count(len(X), 'row')} with values that training did not have")


def free_names(names: Sequence[str], taken: Sequence[str]) -> tuple[str, ...]:
    """``names``, all with a prefix if one of them is taken.

    >>> free_names(("mean", "std"), ["x", "mean"])
    ('predicted_mean', 'predicted_std')
    """
    prefix = ""
    while any(prefix + name in taken for name in names):
        prefix += "predicted_"
    return tuple(prefix + name for name in names)
