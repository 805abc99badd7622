"""``tensorlace report``: one HTML page about a model and some rows."""

from pathlib import Path
from typing import Annotated, Any

import typer

from tensorlace.cli.files import as_text, features, take_target
from tensorlace.cli.options import Data, Model
from tensorlace.cli.output import count, note, number, say, steps
from tensorlace.errors import SourceError
from tensorlace.machines.fitted_model import holder
from tensorlace.model_file.files import describe, load
from tensorlace.sources.files import read_frame

__all__ = ["report"]


def report(
    model: Model,
    data: Data,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="HTML file; default: MODEL.html.")
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", "-t", help="Default: as in the fit.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="Of the page.")] = None,
    max_rows: Annotated[
        int, typer.Option(min=1, help="Of a longer table, report on so many rows.")
    ] = 20_000,
) -> None:
    """Write one HTML page about a model and the rows of a table, with a live what-if panel.

    The page is one file that asks for nothing from the network. With the target in the table it
    has scores, calibration and the worst rows; without, it says what the model expects.

    Examples
    --------
    tensorlace report houses.tlace test.csv -o report.html

    tensorlace report houses.tlace new.csv --title "Houses, spring"
    """
    from tensorlace.report import write_report  # takes long to import

    fitted, facts = holder(load(model)).fitted_model(), describe(model)
    notes: dict[str, Any] = dict(facts["notes"])
    name = target or notes.pop("target", None)
    frame, y, without = read_frame(data, text=as_text(fitted)), None, 0
    if target is not None or (isinstance(name, str) and name in frame.columns):
        frame, y, without = take_target(frame, str(name))
    path = output or model.with_suffix(".html")
    about = {
        "model file": f"{model.name}, {number(facts['bytes'] / 1024)} KiB",
        "table": data.name if str(data) != "-" else "standard input",
        "command": f"tensorlace report {model.name} {data.name} -o {path.name}",
        **notes,
    }
    with steps("report") as tell:
        try:
            write_report(
                *(fitted, features(fitted, frame), y, path),
                target=str(name or "y"),
                title=title,
                notes=about,
                max_rows=max_rows,
                say=tell,
            )
        except OSError as error:
            raise SourceError(f"{path} cannot be written: {error.strerror or error}") from error
    if without:
        note(f"left out {count(without, 'row')} without a target")
    if y is None:
        note("the table has no target column: the page has no scores")
    say([f"Report: {path} ({number(path.stat().st_size / 1024)} KiB)"])
