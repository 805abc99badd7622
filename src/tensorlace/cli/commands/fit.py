"""``tensorlace fit``: from a table to a model file."""

from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import numpy as np
import typer

from tensorlace.cli.cells import check_numbers, odd_one
from tensorlace.cli.files import find_column, numbered, take_target
from tensorlace.cli.interrupts import keeps_best
from tensorlace.cli.kinds import parse_kinds
from tensorlace.cli.options import Data, Json, Seed
from tensorlace.cli.output import bar, count, note, number, print_json, say, table
from tensorlace.cli.scores import held_back_scores, score_rows, verdict
from tensorlace.errors import InputError
from tensorlace.estimators.regressor import TNKMRegressor
from tensorlace.model_file.files import save
from tensorlace.sources.files import read_frame
from tensorlace.sources.weighting import MEANINGS

__all__ = ["fit", "look_at", "parse_rank", "train"]


def fit(
    data: Data,
    target: Annotated[str, typer.Option("--target", "-t", help="Column to predict.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Model file; default: DATA.tlace.")
    ] = None,
    time_budget: Annotated[
        float | None, typer.Option(min=0.01, help="Seconds to aim at; default: by size.")
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(min=0.01, help="Seconds after which the fit ends with the best it has."),
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=KIND",
            help="numeric, categorical, datetime, periodic:24 or ordinal:low,middle,high.",
        ),
    ] = None,
    drop: Annotated[list[str] | None, typer.Option(help="Column to leave out.")] = None,
    weight: Annotated[str | None, typer.Option(help="Column with weights of rows.")] = None,
    weights: Annotated[
        str,
        typer.Option(
            metavar="MEANING",
            help="What weights of rows are: repetitions, relative, or auto, which decides by them.",
        ),
    ] = "auto",
    test_share: Annotated[
        float,
        typer.Option(min=0.0, max=0.9, help="Part of the rows to keep for a test; 0 fits to all."),
    ] = 0.1,
    rank: Annotated[
        str, typer.Option(help="Number of products, or auto; 0: a sum over columns.")
    ] = "auto",
    forget_rows: Annotated[
        bool,
        typer.Option("--forget-rows", help="Keep no training rows in the file: no effects then."),
    ] = False,
    seed: Seed = 0,
    notes: Annotated[
        list[str] | None, typer.Option("--note", metavar="KEY=TEXT", help="Kept in the file.")
    ] = None,
    json: Json = False,
) -> None:
    """Fit a model to a table and write it to one file.

    Ctrl-C ends a fit with the best that it has so far, which is tested and written as usual; the
    exit code is 130 then. Where there is nothing yet, and the second time, it ends at once.

    Examples
    --------
    tensorlace fit houses.csv --target price -o houses.tlace

    tensorlace fit rides.parquet -t count --columns hour=periodic:24 --drop id --time-budget 60
    """
    kinds, kept = parse_kinds(columns or []), _notes(notes or [])
    frame, y, without = take_target(read_frame(data, text=_text_columns(kinds)), target)
    if weights not in MEANINGS:
        known = ", ".join(sorted(MEANINGS))
        raise typer.BadParameter(f"{weights!r} is not one of {known}", param_hint="--weights")
    of_rows = None
    if weight is not None:
        name = find_column(frame, weight, "weight")
        of_rows = _weights(frame[name], name)
    leave = {target, weight, *(find_column(frame, name, "--drop") for name in drop or [])}
    X = frame[[name for name in frame.columns if name not in leave]]
    for name in kinds:
        find_column(X, name, "--columns")
    if X.shape[1] == 0:
        raise InputError(f"{data} has no column beside the target: nothing to predict from")
    test = np.zeros(len(y), dtype=np.bool_)
    size = round(test_share * len(y))
    if size and len(y) - size >= 2:
        test[np.random.default_rng(seed).permutation(len(y))[:size]] = True
    look_at(X, kinds)
    start = perf_counter()
    params: dict[str, Any] = {
        "rank": parse_rank(rank),
        "additive": True if rank == "0" else "auto",
        "time_budget": time_budget,
        "time_limit": time_limit,
        "columns": kinds or None,
        "weights": weights,
    }
    with keeps_best() as interrupts:
        model = train(X[~test], y[~test], _part(of_rows, ~test), seed=seed, **params)
    seconds = perf_counter() - start
    scores = None
    if test.any():
        scores, found = held_back_scores(
            model.fitted_model(), X[test], y[test], _part(of_rows, test)
        )
        model = model.with_model(model.fitted_model().with_held_back(found))
        kept |= {f"test_{key}": scores[key] for key in ("rows", "rmse", "coverage")}
    path = output or Path(data.stem if str(data) != "-" else "model").with_suffix(".tlace")
    about = {"target": target, "data": data.name, "seconds": round(seconds, 1), **kept}
    save(model, path, notes=about, background=not forget_rows)
    if json:
        print_json(
            {
                "model": str(path),
                "bytes": path.stat().st_size,
                "target": target,
                "columns": {name: repr(kind) for name, kind in model.kinds_.items()},
                "rows": model.n_rows_,
                "rows_without_target": without,
                "members": len(model.machines_),
                "log_evidence": model.log_evidence_,
                "noise_std": model.noise_precision_**-0.5,
                "seconds": seconds,
                "test": scores,
            }
        )
        if interrupts.came:
            raise typer.Exit(130)
        return
    if without:
        note(f"left out {count(without, 'row')} without a target")
    members = count(len(model.machines_), "member")
    say([f"Fitted {members} to {count(model.n_rows_, 'row')} in {seconds:.1f} s."])
    say([f"Noise: about ±{number(model.noise_precision_**-0.5)} in units of {target}."])
    if scores is not None:
        say([""])
        table(
            ("", "", "meaning"),
            score_rows(scores),
            f"{count(int(test.sum()), 'row')} kept for a test",
        )
        say(["", *verdict(scores)])
        if scores["unlike"]:
            say([f"Beware: {count(scores['unlike'], 'row')} unlike those of training."])
    say(["", f"Model: {path} ({number(path.stat().st_size / 1024)} KiB)"])
    if interrupts.came:
        raise typer.Exit(130)


def train(
    X: Any, y: Any, weight: Any = None, *, seed: int, title: str = "", **params: Any
) -> TNKMRegressor:
    """Fit with a bar on standard error."""
    model = TNKMRegressor(random_state=seed, verbose=2, **params)
    with bar(title), numbered(X.index):
        model.fit(X, y, sample_weight=weight)
    return model.set_params(verbose=0)


def look_at(X: Any, kinds: dict[str, Any]) -> None:
    """Refuse what cannot be meant, and point out what may not be; columns of ``kinds`` are."""
    for name in X.columns:
        if name in kinds:
            continue
        check_numbers(X[name])
        odd = odd_one(X[name])
        if odd is not None:
            note(f"column {name!r} is categories, since row {odd[0]} has {odd[1]!r}")


def _text_columns(kinds: dict[str, Any]) -> list[str]:
    """Columns whose values are given as words."""
    return [name for name, kind in kinds.items() if hasattr(kind, "order")]


def _weights(column: Any, name: str) -> Any:
    import pandas as pd

    values = pd.to_numeric(column, errors="coerce")
    if values.isna().any():
        row = int(np.argmax(values.isna()))
        place = column.index[row] + 1
        raise InputError(f"weight column {name!r} has {column.iloc[row]!r} in row {place}")
    return values.to_numpy(dtype=np.float64)


def _part(values: Any, rows: Any) -> Any:
    return None if values is None else values[rows]


def parse_rank(text: str) -> int | str:
    """Number of rank-one terms as given on the command line, or "auto"."""
    if text == "auto" or text.isdecimal():
        return text if text == "auto" else int(text)
    raise typer.BadParameter(f"{text!r} is neither a whole number nor auto", param_hint="--rank")


def _notes(texts: list[str]) -> dict[str, Any]:
    pairs = [text.partition("=") for text in texts]
    for text, (_, equals, _) in zip(texts, pairs, strict=True):
        if not equals:
            raise typer.BadParameter(f"{text!r} is not key=text", param_hint="--note")
    return {key: value for key, _, value in pairs}
