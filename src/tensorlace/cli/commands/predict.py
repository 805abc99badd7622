"""``tensorlace predict``: the input with mean, deviation, interval and novelty of each row."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from tensorlace.cli.files import as_text, features, numbered, write
from tensorlace.cli.options import Data, Json, Level, Model
from tensorlace.cli.output import count, note, print_json
from tensorlace.machines.fitted_model import holder
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

    The output is the input, its rows in their order, and six columns more: mean, std, lower,
    upper, novelty, which is above 1 where a row is unlike those of training, and unlike, which
    says why and is empty elsewhere. If one of these names is taken, all six begin with
    `predicted_`. Text that a spreadsheet would run as a formula gets an apostrophe.

    Examples
    --------
    tensorlace predict houses.tlace new.csv -o out.csv

    tensorlace predict houses.tlace new.csv --coverage 0.5 | head
    """
    fitted = holder(load(model)).fitted_model()
    X = features(fitted, read_frame(data, text=as_text(fitted)))
    with numbered(X.index):
        dist, novelty = fitted.dist_and_novelty(fitted.encode(X))
    lower, upper = fitted.interval(dist, coverage)
    numbers = (dist.mean, dist.std, lower, upper, novelty.measure)
    values = (*(column.tolist() for column in numbers), list(novelty.reasons))
    names = ("mean", "std", "lower", "upper", "novelty", "unlike")
    unlike = int(novelty.unlike.sum())
    if json:
        rows = [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]
        print_json(
            {"coverage": coverage, "rows": len(X), "extrapolated": unlike, "predictions": rows}
        )
        return
    out = read_frame(data, as_written=True)
    free = free_names(names, list(out.columns))
    for name, column in zip(free, values, strict=True):
        out[name] = column
    write(out, output)
    if free != names:
        note(f"the table has a column of the same name: predictions are {', '.join(free)}")
    if unlike:
        most = novelty.most_common
        note(f"{unlike} of {count(len(X), 'row')} unlike those of training, most often by {most}")


def free_names(names: Sequence[str], taken: Sequence[str]) -> tuple[str, ...]:
    """``names``, all with a prefix if one of them is taken.

    >>> free_names(("mean", "std"), ["x", "mean"])
    ('predicted_mean', 'predicted_std')
    """
    prefix = ""
    while any(prefix + name in taken for name in names):
        prefix += "predicted_"
    return tuple(prefix + name for name in names)
