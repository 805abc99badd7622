"""Rows beyond the data: the top tenth of a column is left out."""

from collections.abc import Iterable, Sequence
from typing import Any, final

import numpy as np

from tensorlace._types import Array
from tensorlace.errors import InputError
from tensorlace_lab.measuring.cells import Cell, Record
from tensorlace_lab.measuring.runner import Options
from tensorlace_lab.trust.judging import judged, standardised
from tensorlace_lab.trust.on_tables import small_first
from tensorlace_lab.trust.section import Place, Section, Spent, Verdict, ordered, values
from tensorlace_lab.trust.systems import FIXED, GP, RIDGE, SETTINGS, ask
from tensorlace_lab.trust.tables import loaded
from tensorlace_lab.writing.markdown import markdown

__all__ = ["SECTION", "Shift", "beyond_top"]

SEEDS = 3
MOST_ROWS, LEAST_VALUES, TOP, OFF = 2_200, 20, 0.1, 5.0
NO_SUCH_COLUMN = ("doctor-visits",)
"""Tables of which no column has so many values."""

HOLDS = "top tenth of a column left out: 95 % intervals hold at least 80 % in the median table"
RARELY_OFF = "top tenth of a column left out: beyond 5 std no more often than the exact GP"

ABOUT = f"""At most {MOST_ROWS:,} rows of a table are drawn by the seed, and one of its columns of
numbers with at least {LEAST_VALUES} different values. Rows above its nine tenths quantile are
predicted by who has seen only the others: coverage of 95 % intervals, and share of errors beyond
{OFF:.0f} std. Means over the finished seeds.
"""


def beyond_top(frame: Any, seed: int) -> tuple[str, Array, Array]:
    """A column, positions of rows below its top tenth, and of those in it, all drawn by a seed."""
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(frame))[:MOST_ROWS]
    some = frame.iloc[rows]
    names = some.select_dtypes("number").columns
    names = [name for name in names if some[name].nunique() >= LEAST_VALUES]
    while names:
        name = names[rng.integers(len(names))]
        x = some[name].to_numpy(np.float64)
        top = x > np.nanquantile(x, 1.0 - TOP)
        if top.any():
            return str(name), rows[~top], rows[top]
        names.remove(name)  # its largest value is that of more than a tenth of the rows
    raise InputError(f"no column has {LEAST_VALUES} values and a top tenth: leave the table out")


@final
class Shift(Section):
    """A cell is a system on a drawing of a table and of a column."""

    name = "shift"
    title = "A part of the range left out"
    sets = tuple(name for name in small_first() if name not in NO_SUCH_COLUMN)
    systems = ("tnkm 10 s", FIXED, GP, RIDGE)

    def places(self, options: Options) -> Iterable[Place]:
        """Seed by seed, small tables first."""
        for seed in self.seeds(options, SEEDS):
            for name in self.chosen(options):
                yield from (Place(name, seed, who) for who in self.systems[options.quick :])

    def run(self, cell: Cell, data: str | None) -> Record:
        """Fit below the top tenth, judge in it."""
        frame, y = loaded(cell.set)
        column, train, test = beyond_top(frame, cell.split)
        with Spent() as spent:
            predict, _ = ask(cell.system, frame.iloc[train], y[train], cell.split)
            dist = predict(frame.iloc[test])
        off = np.abs(standardised(y[test], dist)) > OFF
        metrics = {**judged(y[test], dist), "off": np.mean(off)}
        about = {"n_train": len(train), "n_test": len(test), "column": column}
        return {"metrics": metrics, **spent.seconds, **about}

    def verdicts(self, records: Sequence[Record]) -> list[Verdict]:
        """The median table, and how often beside the exact GP on the same cells."""
        found = []
        peer = {(r["set"], r["split"]): r for r in records if r["system"] == GP}
        groups = [group for group in ordered(records) if group[1] in SETTINGS]
        for who, _, of in groups:
            share = _means(of, "coverage95")
            worst = min(share, key=lambda name: share[name])
            median = float(np.median(list(share.values())))
            figure = f"median {median:.3f} of {len(share)} tables; least {share[worst]:.3f}"
            found.append(Verdict(HOLDS, who, f"{figure} ({worst})", median >= 0.8))
        for who, _, of in groups:
            both = [(r, peer[r["set"], r["split"]]) for r in of if (r["set"], r["split"]) in peer]
            if both:
                ours, theirs = (np.mean(values(rs, "off")) for rs in zip(*both, strict=True))
                figure = f"{ours:.2%} of the rows beside {theirs:.2%}, means of {len(both)} cells"
                found.append(Verdict(RARELY_OFF, who, figure, bool(ours <= theirs)))
        return found

    def tables(self, records: Sequence[Record]) -> str:
        """By table: coverage and share of large errors of each system."""
        groups = ordered(records)
        header = ["table", "columns"]
        for who, _, _ in groups:
            header += [f"{who}: 95 %", "beyond 5 std"]
        lines = []
        for name in sorted({r["set"] for r in records}):
            columns = sorted({r["column"] for r in records if r["set"] == name})
            line = [name, ", ".join(f"`{column}`" for column in columns)]
            for _, _, of in groups:
                here = [r for r in of if r["set"] == name]
                for key in ("coverage95", "off"):
                    line.append(f"{np.mean(values(here, key)):.3f}" if here else "–")
            lines.append(line)
        return ABOUT + "\n" + markdown(header, lines)


def _means(records: Sequence[Record], key: str) -> dict[str, float]:
    names = dict.fromkeys(r["set"] for r in records)
    return {
        name: float(np.mean(values([r for r in records if r["set"] == name], key)))
        for name in names
    }


SECTION = Shift()
