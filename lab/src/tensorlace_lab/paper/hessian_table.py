"""The paper's table of Hessians: RMSE, NLL and RCE with GGN, Block and Last on nine sets."""

from collections.abc import Sequence
from functools import partial
from typing import Any, final

from tensorlace.predictive.distributions import Distribution
from tensorlace_lab.measuring.cells import Cell, Record
from tensorlace_lab.measuring.data import SETS, Split, split_of
from tensorlace_lab.measuring.runner import Experiment, Options
from tensorlace_lab.measuring.scores import scored
from tensorlace_lab.measuring.statistics import mean_and_error
from tensorlace_lab.paper import corrected, literature, published
from tensorlace_lab.paper.protocols import DRAWS, PROTOCOLS
from tensorlace_lab.paper.uci import SMALL_FIRST
from tensorlace_lab.writing.markdown import markdown, number

__all__ = ["EXPERIMENT", "HessianTable"]

COLUMNS = ("rmse", "nll", "rce")


@final
class HessianTable(Experiment):
    """A cell is a Hessian on a split, size and threshold chosen by cross-validation with it."""

    name = "hessian-table"
    title = "GGN, Block and Last on nine sets"
    sets = SETS
    protocols = PROTOCOLS

    def cells(self, options: Options) -> list[Cell]:
        """Split by split, small sets first."""
        quick = options.quick
        protocols = options.protocols or ("published", "corrected")
        return [
            Cell(self.name, name, split, system, protocol)
            for split in options.splits or ((1,) if quick else tuple(range(1, 11)))
            for name in options.sets or (("yacht",) if quick else SMALL_FIRST)
            for protocol in ([p for p in protocols if p != "default"][:1] if quick else protocols)
            if protocol != "default"
            for system in options.systems or corrected.HESSIANS
        ]

    def run(self, cell: Cell, data: str | None) -> Record:
        """Choose, fit and score."""
        split = split_of(cell.set, cell.split, data)
        old = cell.protocol == "published"
        system = partial(_published if old else _corrected, hessian=cell.system)
        return scored(system, split, cell.split, draws=DRAWS if old else None)

    def markdown(self, records: Sequence[Record]) -> str:
        """Our means, and the printed ones in brackets beside the authors' procedure."""
        rows = []
        for name in SETS:
            for protocol in ("published", "corrected"):
                of = [r for r in records if (r["set"], r["protocol"]) == (name, protocol)]
                if not of:
                    continue
                row = [name, protocol]
                for j, key in enumerate(COLUMNS):
                    for system in corrected.HESSIANS:
                        values = [r["metrics"][key] for r in of if r["system"] == system]
                        text = number(*mean_and_error(values)) if values else "–"
                        printed = literature.HESSIANS[name][system][j]
                        row.append(f"{text} [{printed:.2f}]" if protocol == "published" else text)
                rows.append(row)
        heads = [f"{key.upper()} {system}" for key in COLUMNS for system in corrected.HESSIANS]
        note = "In square brackets: the published figure."
        return markdown(["set", "procedure", *heads], rows) + f"\n\n{note}"


def _published(split: Split, _: int, *, hessian: str) -> tuple[Distribution, dict[str, Any]]:
    return published.reproduce(split.X, split.y, split.X_test, hessian)


def _corrected(split: Split, _: int, *, hessian: str) -> tuple[Distribution, dict[str, Any]]:
    return corrected.select(split.X, split.y, split.X_test, (hessian,), n_jobs=1)


EXPERIMENT = HessianTable()
