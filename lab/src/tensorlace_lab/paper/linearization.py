"""The paper's first question: the linearised predictive (LLA) or the sampled one (LA)."""

from collections.abc import Sequence
from pathlib import Path
from typing import final

from tensorlace_lab.measuring.data import split_of
from tensorlace_lab.measuring.records import Cell, Record
from tensorlace_lab.measuring.runner import Experiment, Options
from tensorlace_lab.paper import ablation

__all__ = ["EXPERIMENT", "Linearization"]


@final
class Linearization(Experiment):
    """A cell is a predictive of the full Hessian on a split, at all thresholds."""

    name = "linearization"
    title = "LA against LLA"

    def cells(self, options: Options) -> list[Cell]:
        """Both predictives."""
        return ablation.cells(self.name, ("LLA", "LA"), options)

    def run(self, cell: Cell, data: str | None) -> Record:
        """NLL at every threshold."""
        split = split_of(cell.set, cell.split, data)
        return ablation.curve(split, "full", cell.protocol, linearized=cell.system == "LLA")

    def markdown(self, records: Sequence[Record]) -> str:
        """NLL by threshold, and what it says."""
        return ablation.report(records)

    def figures(self, records: Sequence[Record], directory: Path) -> list[Path]:
        """The paper's figure."""
        return ablation.draw(records, directory / "linearization.svg")


EXPERIMENT = Linearization()
