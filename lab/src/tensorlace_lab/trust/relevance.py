"""Relevance: shares of the variance, which cannot be more than all of it."""

from collections.abc import Iterable, Sequence
from typing import final

import numpy as np

from tensorlace_lab.measuring.cells import Cell, Record
from tensorlace_lab.measuring.runner import Options
from tensorlace_lab.trust.on_tables import SECTION as ON_TABLES
from tensorlace_lab.trust.on_tables import small_first
from tensorlace_lab.trust.section import Place, Section, Verdict, of_ours
from tensorlace_lab.trust.systems import FIXED
from tensorlace_lab.writing.markdown import markdown

__all__ = ["SECTION", "Relevance"]

SEEDS = 1
SLACK = 1e-9
PROMISE = "relevance sums to at most one on every table"

ABOUT = """The relevance of a column is said to be a share of the variance of the predictions: none
may exceed one, nor may their sum. Of the fits to the tables above, and of one model of rank 4.
"""


@final
class Relevance(Section):
    """A cell is one model on a drawing of a table; the default's are those of the tables."""

    name = "relevance"
    title = "Relevance"
    sets = small_first()
    systems = (FIXED,)

    def places(self, options: Options) -> Iterable[Place]:
        """Table by table."""
        for seed in self.seeds(options, SEEDS):
            yield from (Place(name, seed, FIXED) for name in self.chosen(options))

    def run(self, cell: Cell, data: str | None) -> Record:
        """As on the tables."""
        return ON_TABLES.run(cell, data)

    def verdicts(self, records: Sequence[Record]) -> list[Verdict]:
        """On how many tables shares are shares."""
        found = []
        for who, _, of in of_ours(_with_relevance(records)):
            sums = {r["set"]: r["metrics"]["relevance_sum"] for r in of}
            bad = [name for name, total in sums.items() if total > 1 + SLACK]
            worst = max(of, key=lambda r: r["metrics"]["relevance_sum"])
            figure = f"above one on {len(bad)} of {len(sums)} tables; largest sum "
            figure += f"{worst['metrics']['relevance_sum']:.4g} ({worst['set']}), largest of a "
            figure += f"column {max(r['metrics']['relevance_largest'] for r in of):.4g}"
            found.append(Verdict(PROMISE, who, figure, not bad))
        return found

    def tables(self, records: Sequence[Record]) -> str:
        """Largest sum and largest share over the seeds, by table."""
        groups = of_ours(_with_relevance(records))
        header = ["table"]
        for who, _, _ in groups:
            header += [f"{who}: sum", "largest"]
        lines = []
        for name in sorted({r["set"] for _, _, of in groups for r in of}):
            line = [name]
            for _, _, of in groups:
                here = [r["metrics"] for r in of if r["set"] == name]
                for key in ("relevance_sum", "relevance_largest"):
                    line.append(f"{np.max([m[key] for m in here]):.3g}" if here else "–")
            lines.append(line)
        return ABOUT + "\n" + markdown(header, lines)


def _with_relevance(records: Sequence[Record]) -> list[Record]:
    return [r for r in records if r["metrics"].get("relevance_sum") is not None]


SECTION = Relevance()
