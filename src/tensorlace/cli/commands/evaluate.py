"""``tensorlace evaluate``: how good a model is on rows whose target is known."""

from typing import Annotated

import typer

from tensorlace.cli.files import as_text, features, numbered, take_target
from tensorlace.cli.options import Data, Json, Level, Model
from tensorlace.cli.output import count, note, print_json, say, table
from tensorlace.cli.scores import score, score_rows, verdict
from tensorlace.errors import InputError
from tensorlace.machines.fitted_model import holder
from tensorlace.model_file.files import describe, load
from tensorlace.sources.files import read_frame

__all__ = ["evaluate"]


def evaluate(
    model: Model,
    data: Data,
    target: Annotated[
        str | None, typer.Option("--target", "-t", help="Default: as in the fit.")
    ] = None,
    coverage: Level = 0.95,
    json: Json = False,
) -> None:
    """Score a model on a table it was not fitted to, and say what the scores mean.

    Examples
    --------
    tensorlace evaluate houses.tlace test.csv

    tensorlace evaluate houses.tlace test.csv --coverage 0.5 --json
    """
    fitted = holder(load(model)).fitted_model()
    name = target or describe(model)["notes"].get("target")
    if not isinstance(name, str):
        raise InputError(f"{model} does not say which column is the target: give --target")
    frame, y, without = take_target(read_frame(data, text=as_text(fitted)), name)
    X = features(fitted, frame)
    with numbered(X.index):
        dist, novelty = fitted.dist_and_novelty(fitted.encode(X))
    scores = score(y, dist, coverage)
    words = verdict(scores)
    unlike, most = int(novelty.unlike.sum()), novelty.most_common
    if unlike:
        words.append(f"Beware: {count(unlike, 'row')} unlike those of training, mostly by {most}.")
    if json:
        facts = {"model": str(model), "target": name, "rows_without_target": without}
        why = {"extrapolated": unlike, "unlike": most or None}
        print_json({**facts, **why, **scores, "verdict": words})
        return
    if without:
        note(f"left out {count(without, 'row')} without a target")
    table(("", "", "meaning"), score_rows(scores), f"{count(len(y), 'row')} of {data.name}")
    say(["", *words])
