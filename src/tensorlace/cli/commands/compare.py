"""``tensorlace compare``: the default beside other regressors, on the user's own table."""

import warnings
from time import perf_counter
from typing import Annotated, Any

import numpy as np
import typer

from tensorlace.cli.commands.fit import look_at, parse_rank, train
from tensorlace.cli.files import find_column, take_target
from tensorlace.cli.options import Data, Json, Seed
from tensorlace.cli.output import bar, count, note, number, print_json, say, table
from tensorlace.cli.rivals import numbers, rivals
from tensorlace.cli.scores import score
from tensorlace.errors import InputError
from tensorlace.sources.files import read_frame

__all__ = ["compare", "judge"]

OURS = "tensorlace"
_SHOWN = ("rmse", "nll", "crps", "coverage", "width", "seconds")


def compare(
    data: Data,
    target: Annotated[str, typer.Option("--target", "-t", help="Column to predict.")],
    splits: Annotated[int, typer.Option(min=1, max=100, help="Random splits.")] = 3,
    test_share: Annotated[float, typer.Option(min=0.01, max=0.9, help="Rows to test on.")] = 0.2,
    time_budget: Annotated[
        float | None, typer.Option(min=0.01, help="Of each fit of ours.")
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(min=0.01, help="Seconds after which each fit of ours ends.")
    ] = None,
    drop: Annotated[list[str] | None, typer.Option(help="Column to leave out.")] = None,
    gp_rows: Annotated[int, typer.Option(min=10, help="Most rows of the exact GP.")] = 1000,
    rank: Annotated[str, typer.Option(help="Of tensorlace: a number, or auto.")] = "auto",
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Compare with other regressors on your own table.

    Exact Gaussian process (on some of the rows), BayesianRidge and, where they are installed,
    NGBoost and LightGBM quantiles see the same random splits.

    Examples
    --------
    tensorlace compare houses.csv --target price

    tensorlace compare houses.csv -t price --splits 10 --time-budget 5 --json
    """
    frame, y, without = take_target(read_frame(data), target)
    leave = {target, *(find_column(frame, name, "--drop") for name in drop or [])}
    X = frame[[name for name in frame.columns if name not in leave]]
    size = max(1, round(test_share * len(y)))
    if X.shape[1] == 0 or len(y) - size < 5:
        raise InputError(f"{len(y)} rows and {X.shape[1]} columns are too few to compare on")
    look_at(X, {})
    results: dict[str, list[dict[str, float]]] = {}
    failures: dict[str, str] = {}
    for split in range(splits):
        order = np.random.default_rng([seed, split]).permutation(len(y))
        test, rest = order[:size], order[size:]
        how: dict[str, Any] = {"rank": parse_rank(rank), "time_budget": time_budget}
        how["time_limit"] = time_limit
        which = f"split {split + 1} of {splits}: "
        start = perf_counter()
        dist = train(X.iloc[rest], y[rest], seed=seed, title=which, **how).predict_dist(
            X.iloc[test]
        )
        seconds = perf_counter() - start
        results.setdefault(OURS, []).append({**score(y[test], dist), "seconds": seconds})
        plain, plain_test = numbers(X.iloc[rest], X.iloc[test])
        for name, rival in rivals(gp_rows).items():
            start = perf_counter()
            try:
                with warnings.catch_warnings(), bar(f"{which}{name} "):
                    warnings.simplefilter("ignore")
                    dist = rival(plain, y[rest], plain_test, seed)
            except Exception as error:  # another library's trouble is a result, not ours to raise
                failures[name] = f"{type(error).__name__}: {' '.join(str(error).split())[:100]}"
                continue
            seconds = perf_counter() - start
            results.setdefault(name, []).append({**score(y[test], dist), "seconds": seconds})
    results = {name: rows for name, rows in results.items() if len(rows) == splits}
    means = {name: _mean(rows) for name, rows in results.items()}
    words = judge(results)
    if json:
        facts: dict[str, Any] = {"target": target, "rows": len(y), "splits": splits}
        facts |= {"test_rows": size, "rows_without_target": without}
        print_json({**facts, "models": means, "failures": failures, "verdict": words})
        return
    if without:
        note(f"left out {count(without, 'row')} without a target")
    rows = [(n, *(_cell(key, m[key]) for key in _SHOWN)) for n, m in means.items()]
    title = f"mean of {splits} splits: {len(y) - size} rows to fit, {size} to test"
    table(("", "RMSE", "NLL", "CRPS", "cover 95%", "width 95%", "seconds"), rows, title)
    for name, reason in failures.items():
        note(f"{name} failed: {reason}")
    say(["", *words])


def _mean(rows: list[dict[str, float]]) -> dict[str, float]:
    return {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}


def _cell(key: str, value: float) -> str:
    return f"{value:.1%}" if key == "coverage" else number(value)


def judge(results: dict[str, list[dict[str, float]]]) -> list[str]:
    """What the splits say about ours beside the best of the others, in words.

    >>> splits = {"tensorlace": [1.0, 1.1], "exact GP": [2.0, 2.1]}
    >>> judge({n: [{"crps": v, "nll": v} for v in vs] for n, vs in splits.items()})[0]
    'By CRPS tensorlace is best: 1.05, exact GP follows with 2.05 (better on 2 of 2 splits).'
    """
    lines = []
    for key in ("crps", "nll"):
        values = {n: np.array([row[key] for row in rows]) for n, rows in results.items()}
        values = {n: v for n, v in values.items() if np.all(np.isfinite(v))}
        others = sorted((n for n in values if n != OURS), key=lambda n: values[n].mean())
        if OURS not in values or not others:
            continue
        ours, best = values[OURS], values[others[0]]
        gap = best - ours
        wins = f"better on {int((gap > 0).sum())} of {len(gap)} splits"
        error = gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else np.inf
        a, b, name = number(ours.mean()), number(best.mean()), others[0]
        if abs(gap.mean()) <= 2.0 * error:
            text = f"tensorlace ({a}) and {name} ({b}) are too close to tell apart ({wins})."
        elif gap.mean() > 0.0:
            text = f"tensorlace is best: {a}, {name} follows with {b} ({wins})."
        else:
            text = f"{name} is better: {b}, tensorlace has {a} ({wins}): use it if that matters."
        lines.append(f"By {key.upper()} {text}")
    return lines
