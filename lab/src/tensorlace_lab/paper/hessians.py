"""The paper's second question: which Hessian? Five of them over the threshold."""

from collections.abc import Sequence
from pathlib import Path
from typing import final

from tensorlace_lab.measuring.data import split_of
from tensorlace_lab.measuring.records import Cell, Record
from tensorlace_lab.measuring.runner import Experiment, Options
from tensorlace_lab.paper import ablation

__all__ = ["EXPERIMENT", "Hessians"]

CURVATURES = ("full", "ggn", "block", "diag", "last")


@final
class Hessians(Experiment):
    """A cell is a Hessian on a split, at all thresholds."""

    name = "hessians"
    title = "Five Hessians over the threshold"

    def cells(self, options: Options) -> list[Cell]:
        """All five."""
        return ablation.cells(self.name, CURVATURES, options)

    def run(self, cell: Cell, data: str | None) -> Record:
        """NLL at every threshold."""
        return ablation.curve(split_of(cell.set, cell.split, data), cell.system, cell.protocol)

    def markdown(self, records: Sequence[Record]) -> str:
        """NLL by threshold, and what it says."""
        return ablation.report(records)

    def figures(self, records: Sequence[Record], directory: Path) -> list[Path]:
        """The paper's figure."""
        return ablation.draw(records, directory / "hessians.svg")


EXPERIMENT = Hessians()
