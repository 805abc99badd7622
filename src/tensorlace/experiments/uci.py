"""The paper's comparison: NLL, RMSE, RCE, ECP-95 and WCPI-95 of all systems on the nine sets."""

from collections.abc import Sequence
from typing import final

from tensorlace.experiments import tables
from tensorlace.experiments.data import SETS, split_of
from tensorlace.experiments.records import Cell, Record
from tensorlace.experiments.runner import Experiment, Options
from tensorlace.experiments.systems import OURS, PROTOCOLS, result, system_names

__all__ = ["EXPERIMENT", "SMALL_FIRST", "UCI"]

SMALL = ("yacht", "boston", "energy", "concrete", "wine")
LARGE = {"power": 3, "kin8nm": 3, "naval": 3, "protein": 1}
"""Sets of more than 2000 rows, and the splits of each where none are asked for; else ten."""
SMALL_FIRST = (*SMALL, *LARGE)


@final
class UCI(Experiment):
    """A cell is a system on a split of a set."""

    name = "uci"
    title = "Nine sets, all systems"

    def cells(self, options: Options) -> list[Cell]:
        """Small sets first, and there split by split: a run that is stopped has all systems."""
        quick = options.quick
        sets = options.sets or (("yacht",) if quick else SMALL_FIRST)
        systems = options.systems or (OURS,)
        systems = system_names() if systems == ("all",) else systems
        protocols = options.protocols or (PROTOCOLS[:2] if quick else PROTOCOLS)
        small = [name for name in sets if name not in LARGE]
        groups = [*([small] if small else []), *([name] for name in LARGE if name in sets)]
        return [
            Cell(self.name, name, split, system, protocol)
            for group in groups
            for split in options.splits or range(1, 1 + (2 if quick else LARGE.get(group[0], 10)))
            for name in group
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
