"""Many real tables, beside what users would take instead."""

from collections.abc import Iterable, Sequence
from typing import final

import numpy as np

from tensorlace_lab.measuring.cells import Cell, Record
from tensorlace_lab.measuring.runner import Options
from tensorlace_lab.trust.judging import judged, share_range
from tensorlace_lab.trust.section import Place, Section, Spent, Verdict, of_ours, ordered, values
from tensorlace_lab.trust.systems import (
    BOOSTED,
    CATBOOST,
    GP,
    GP_MOST_ROWS,
    GP_SEARCH_ROWS,
    OURS,
    RIDGE,
    SETTINGS,
    ask,
)
from tensorlace_lab.trust.tables import ALL_ROWS, MOST_TEST, MOST_TRAIN, TABLES, drawn
from tensorlace_lab.writing.markdown import markdown

__all__ = ["SECTION", "OnTables", "coverage_of", "held", "small_first"]

SEEDS = 3
BAND = (0.935, 0.965)
RARE, MOST_Z = 1 / 20_000, 30.0
CRPS_SLACK, RMSE_SLACK, BUDGET_SLACK = 1.02, 1.10, 1.5
BUDGETS = {"tnkm 2 s": 2.0, "tnkm 10 s": 10.0}

ABOUT = f"""A fifth of the rows to test on, at most {MOST_TEST:,}, and of the rest at most
{MOST_TRAIN:,} to learn from, drawn by the seed; `{ALL_ROWS}` learns from all the rest, and is
measured only where it is named (`--sets {ALL_ROWS}`). Columns come as they are: numbers, text as
categories, dates, gaps. Columns that number rows or give the target away are left out. An exact GP
(a length scale per column, one-hot codes, hyperparameters from {GP_SEARCH_ROWS} rows) runs where at
most {GP_MOST_ROWS:,} rows are learned from. scikit-learn's boosted trees give no distribution: here
a second model learns the variance from the squared errors of cross-validation by the gamma loss,
and the prediction is normal. CatBoost learns mean and variance (RMSEWithUncertainty) and stops on a
fifth of the rows.

*z* is (y − mean)/std. CRPS, NLL and RMSE are in the unit of the target, means over the seeds;
coverage and rows beyond 10 std are of the test rows of all seeds together, worst |z| is of all. A
table is within the band if its share of covered rows is, at 95 % confidence, compatible with a
coverage in it; seeds whose test rows overlap are taken for independent. Seconds are of fitting and
predicting, on two cores with other work beside; processor seconds count workers.
"""


def small_first() -> tuple[str, ...]:
    """The tables, those of few rows first, without the one of all rows."""
    names = (name for name in TABLES if name != ALL_ROWS)
    return tuple(sorted(names, key=lambda name: TABLES[name].n_rows))


def coverage_of(records: Sequence[Record], key: str = "coverage95") -> tuple[float, int]:
    """Rows that are covered, and rows, of all records together."""
    rows = [record["n_test"] for record in records]
    return sum(n * record["metrics"][key] for n, record in zip(rows, records, strict=True)), sum(
        rows
    )


def held(records: Sequence[Record], band: tuple[float, float] = BAND) -> bool:
    """Whether a coverage within the band is compatible with what these test rows show.

    Rows are taken for independent: those that several seeds test are not, so the true range is
    somewhat wider.
    """
    low, high = share_range(*coverage_of(records))
    return low <= band[1] and high >= band[0]


@final
class OnTables(Section):
    """A cell is a system on a drawing of a table."""

    name = "tables"
    title = "Real tables"
    sets = (*small_first(), ALL_ROWS)
    systems = (*OURS, RIDGE, BOOSTED, CATBOOST, GP)

    def places(self, options: Options) -> Iterable[Place]:
        """Seed by seed, small tables first; all rows only where they are asked for."""
        for seed in self.seeds(options, SEEDS):
            for name in self.chosen(options):
                if name == ALL_ROWS:
                    if options.sets is not None:
                        yield from (Place(name, seed, who) for who in (OURS[-1], RIDGE, BOOSTED))
                    continue
                for system in (OURS[0], RIDGE) if options.quick else self.systems:
                    if system != GP or TABLES[name].n_train <= GP_MOST_ROWS:
                        yield Place(name, seed, system)

    def run(self, cell: Cell, data: str | None) -> Record:
        """Fit, predict, judge; of ours relevance, too."""
        rows = drawn(cell.set, cell.split)
        with Spent() as spent:
            predict, model = ask(cell.system, rows.X, rows.y, cell.split)
            dist = predict(rows.X_test)
        metrics = judged(rows.y_test, dist)
        if model is not None:
            relevance = np.asarray(model.relevance_)
            metrics |= {"relevance_sum": relevance.sum(), "relevance_largest": relevance.max()}
        about = {"n_train": len(rows.y), "n_test": len(rows.y_test), "scale": np.std(rows.y)}
        return {"metrics": metrics, **spent.seconds, **about}

    def verdicts(self, records: Sequence[Record]) -> list[Verdict]:
        """Coverage, far rows, CRPS beside the line, all flights, budgets."""
        found = []
        for who, _, of in of_ours([r for r in records if r["set"] != ALL_ROWS]):
            found += [_coverage(who, of), _far(who, of)]
        for who, _, of in of_ours(records):
            line = [r for r in records if r["system"] == RIDGE]
            found += _beside(NO_WORSE, who, of, line, "crps", CRPS_SLACK)
            found += _beside(NO_RUNAWAY, who, of, line, "rmse", RMSE_SLACK)
        for who, _, of in of_ours([r for r in records if r["set"] == ALL_ROWS]):
            found += _all_rows(who, of, [r for r in records if r["system"] == BOOSTED])
        for who, system, of in of_ours(records):
            if system in BUDGETS:
                found.append(_budget(who, BUDGETS[system], of))
        return sorted(found, key=lambda v: PROMISES.index(v.promise))

    def tables(self, records: Sequence[Record]) -> str:
        """All tables together, then each."""
        few = [r for r in records if r["set"] != ALL_ROWS]
        return "\n\n".join((ABOUT, _together(few), "### Each table", _each(records)))


COVERAGE = "95 % intervals hold between 0.935 and 0.965 of the test rows on every table"
FAR_ROWS = "fewer than one row of 20,000 beyond 10 std, none beyond 30"
NO_WORSE = "CRPS nowhere worse than that of BayesianRidge by more than 2 %"
NO_RUNAWAY = "RMSE nowhere worse than that of BayesianRidge by more than 10 %"
FLIGHTS = "all flights: RMSE within 10 % of that of boosted trees"
IN_TIME = "processor time of each thread within 1.5 times the budget"
PROMISES = (COVERAGE, FAR_ROWS, NO_WORSE, NO_RUNAWAY, FLIGHTS, IN_TIME)


def _by_table(records: Sequence[Record]) -> dict[str, list[Record]]:
    names = dict.fromkeys(record["set"] for record in records)
    return {name: [r for r in records if r["set"] == name] for name in names}


def _coverage(who: str, records: Sequence[Record]) -> Verdict:
    by_table = _by_table(records)
    good = [name for name, of in by_table.items() if held(of)]
    share = {name: np.divide(*coverage_of(of)) for name, of in by_table.items()}
    low, high = min(share, key=lambda name: share[name]), max(share, key=lambda name: share[name])
    figure = f"on {len(good)} of {len(by_table)} tables, sampling error allowed for"
    figure += f"; least {share[low]:.3f} ({low}), most {share[high]:.3f} ({high})"
    figure += f"; all rows together {np.divide(*coverage_of(records)):.3f}"
    return Verdict(COVERAGE, who, figure, len(good) == len(by_table))


def _far(who: str, records: Sequence[Record]) -> Verdict:
    far, rows = coverage_of(records, "beyond10")
    worst = max(records, key=lambda r: r["metrics"]["worst_z"])
    z = worst["metrics"]["worst_z"]
    figure = f"{far:.0f} of {rows:,} rows; worst {z:.3g} ({worst['set']}, seed {worst['split']})"
    return Verdict(FAR_ROWS, who, figure, far < RARE * rows and z <= MOST_Z)


def _ratios(
    records: Sequence[Record], line: Sequence[Record], key: str
) -> dict[tuple[str, int], float]:
    """A score over that of the line, by table and seed, where both are there."""
    peer = {(r["set"], r["split"]): r["metrics"][key] for r in line}
    places = {(r["set"], r["split"]): r["metrics"][key] for r in records}
    return {at: score / peer[at] for at, score in places.items() if at in peer}


def _beside(
    promise: str,
    who: str,
    records: Sequence[Record],
    line: Sequence[Record],
    key: str,
    slack: float,
) -> list[Verdict]:
    ratios = _ratios(records, line, key)
    if not ratios:
        return []
    bad = [ratio for ratio in ratios.values() if ratio > slack]
    worst = max(ratios, key=lambda at: ratios[at])
    figure = f"worse on {len(bad)} of {len(ratios)} drawings"
    figure += f"; worst {ratios[worst]:.3g} times ({worst[0]}, seed {worst[1]})"
    figure += f"; median {np.median(list(ratios.values())):.3f}"
    return [Verdict(promise, who, figure, not bad)]


def _all_rows(who: str, records: Sequence[Record], trees: Sequence[Record]) -> list[Verdict]:
    ours, theirs = (values(of, "rmse") for of in (records, _by_table(trees).get(ALL_ROWS, [])))
    if not theirs:
        return []
    ratio = np.mean(ours) / np.mean(theirs)
    figure = f"{np.mean(ours):.3g} beside {np.mean(theirs):.3g} minutes"
    return [Verdict(FLIGHTS, who, figure, bool(ratio <= RMSE_SLACK))]


def _budget(who: str, budget: float, records: Sequence[Record]) -> Verdict:
    spent = [(r["processor_seconds"] / r["cores"], r["set"]) for r in records]
    median, (most, where) = np.median([seconds for seconds, _ in spent]), max(spent)
    figure = f"median {median:.3g} s, most {most:.3g} s ({where})"
    return Verdict(IN_TIME, who, figure, most <= BUDGET_SLACK * budget)


def _together(records: Sequence[Record]) -> str:
    header = ["system", "tables", "cells", "50 %", "90 %", "95 %", "tables within", "beyond 10 std"]
    header += ["worst \\|z\\|", "CRPS / line's, median", "worst", "processor s, median", "most"]
    line = [r for r in records if r["system"] == RIDGE]
    lines = []
    for who, _, of in ordered(records):
        by_table = _by_table(of)
        shares = [np.divide(*coverage_of(of, f"coverage{k}")) for k in (50, 90, 95)]
        far, rows = coverage_of(of, "beyond10")
        ratios = list(_ratios(of, line, "crps").values())
        spent = [r["processor_seconds"] for r in of]
        lines.append(
            [
                who,
                str(len(by_table)),
                str(len(of)),
                *(f"{share:.3f}" for share in shares),
                str(sum(held(found) for found in by_table.values())),
                f"{far:.0f} of {rows:,}",
                f"{max(values(of, 'worst_z')):.3g}",
                f"{np.median(ratios):.3f}" if ratios else "–",
                f"{max(ratios):.3g}" if ratios else "–",
                f"{np.median(spent):.3g}",
                f"{max(spent):.3g}",
            ]
        )
    return markdown(header, lines)


def _each(records: Sequence[Record]) -> str:
    header = ["table", "rows", "unit", "system", "seeds", "50 %", "90 %", "95 %", "beyond 10 std"]
    header += ["worst \\|z\\|", "CRPS", "NLL", "RMSE", "processor s", "s"]
    lines = []
    for name in TABLES:
        first = [name, f"{TABLES[name].n_rows:,}", TABLES[name].unit]
        for who, system, of in ordered([r for r in records if r["set"] == name]):
            shares = [np.divide(*coverage_of(of, f"coverage{k}")) for k in (50, 90, 95)]
            low = "**" if system in SETTINGS and not held(of) else ""
            scores = [np.mean(values(of, key)) for key in ("crps", "nll", "rmse")]
            seconds = [np.mean([r[key] for r in of]) for key in ("processor_seconds", "seconds")]
            lines.append(
                [
                    *first,
                    who,
                    str(len(of)),
                    *(f"{share:.3f}" for share in shares[:2]),
                    f"{low}{shares[2]:.3f}{low}",
                    f"{coverage_of(of, 'beyond10')[0]:.0f}",
                    f"{max(values(of, 'worst_z')):.3g}",
                    *(f"{score:.4g}" for score in scores),
                    *(f"{spent:.3g}" for spent in seconds),
                ]
            )
            first = ["", "", ""]
    return markdown(header, lines)


SECTION = OnTables()
