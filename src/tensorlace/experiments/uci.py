"""The paper's comparison: NLL, RMSE, RCE, ECP-95 and WCPI-95 of all systems on the nine sets."""

from collections.abc import Sequence
from typing import final

from tensorlace.experiments import tables
from tensorlace.experiments.data import SETS, split_of
from tensorlace.experiments.records import Cell, Record
from tensorlace.experiments.runner import Experiment, Options
from tensorlace.experiments.systems import OURS, PROTOCOLS, result, system_names

__all__ = ["EXPERIMENT", "UCI"]

SMALL_FIRST = ("yacht", "boston", "energy", "concrete", "wine", "power", "kin8nm", "naval")
"""So that a run that is stopped has something to show; protein comes last."""


@final
class UCI(Experiment):
    """A cell is a system on a split of a set."""

    name = "uci"
    title = "Nine sets, all systems"

    def cells(self, options: Options) -> list[Cell]:
        """Split by split, small sets first."""
        quick = options.quick
        sets = options.sets or (("yacht",) if quick else (*SMALL_FIRST, "protein"))
        splits = options.splits or ((1, 2) if quick else tuple(range(1, 11)))
        systems = options.systems or (OURS,)
        systems = system_names() if systems == ("all",) else systems
        protocols = options.protocols or (PROTOCOLS[:2] if quick else PROTOCOLS)
        return [
            Cell(self.name, name, split, system, protocol)
            for split in splits
            for name in sets
            for system in systems
            for protocol in (protocols if system == OURS else ("default",))
        ]

    def run(self, cell: Cell, data: str | None) -> Record:
        """Fit to nine tenths of the rows, score on the rest."""
        split = split_of(cell.set, cell.split, data)
        return result(split, cell.system, cell.protocol, cell.split)

    def markdown(self, records: Sequence[Record]) -> str:
        """One table per score, means and standard errors over the splits."""
        sets = [name for name in SETS if any(r["set"] == name for r in records)]
        return tables.comparison(records, sets)


EXPERIMENT = UCI()
