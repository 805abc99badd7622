"""The tensor train by the public estimator, beside the paper's related work with such a network."""

from collections.abc import Sequence
from itertools import product
from typing import Any, final

from tensorlace_lab.default.quality import mean_of, rows_of
from tensorlace_lab.measuring import scores
from tensorlace_lab.measuring.cells import Cell, Record
from tensorlace_lab.measuring.data import split_of
from tensorlace_lab.measuring.runner import Experiment, Options
from tensorlace_lab.measuring.scores import OURS

__all__ = ["EXPERIMENT", "Train"]

SETTINGS: dict[str, Any] = {
    "network": "tt",
    "rank": 6,
    "n_basis": 10,
    "warp": "quantile",
    "prior_groups": "column_order",
    "max_sweeps": 150,
}
"""Of all sets. Chosen on split 101 of kin8nm and protein, see docs/decisions.md."""

STARTS = {"tt": 1, "tt-3-starts": 3}
"""Fits from random cores that are mixed in equal parts, by protocol."""

PEER = {"kin8nm": (0.246, 3), "protein": (0.678, 1)}
"""Mean RMSE of LA-TTKM in docs/uci.md, and over how many splits, from the first on."""

ABOUT = """`python -m tensorlace_lab train` makes the results, `make pages` this page. One call,
`TNKMRegressor(network="tt", rank=6, n_basis=10, warp="quantile", prior_groups="column_order",
max_sweeps=150, random_state=s)`: a train with noise and prior precisions by evidence and a GGN
posterior of all cores; with three starts `n_members=3` as well, an equal mixture of fits that begin
at other random cores. Targets are standardised by the training rows. LA-TTKM is the system of that
name in [the comparison](uci.md), on the same splits (of protein on the first only).

"""


@final
class Train(Experiment):
    """A cell is a split of a set."""

    name = "train"
    title = "The tensor train"
    sets = tuple(PEER)
    protocols = tuple(STARTS)
    packages = ("numpy", "scipy", "scikit-learn")
    jobs = 0  # a fit uses all cores

    def cells(self, options: Options) -> list[Cell]:
        """Three splits, the smaller set first."""
        splits = options.splits or ((1,) if options.quick else (1, 2, 3))
        sets = options.sets or (self.sets[:1] if options.quick else self.sets)
        return [
            Cell(self.name, name, split, OURS, protocol)
            for protocol in options.protocols or self.protocols
            for name in sets
            for split in splits
        ]

    def run(self, cell: Cell, data: str | None) -> Record:
        """Fit to nine tenths of the rows, score on the rest."""
        split = split_of(cell.set, cell.split, data)
        fitted = scores.fixed(**SETTINGS, n_members=STARTS[cell.protocol])
        return scores.scored(fitted, split, cell.split)

    def markdown(self, records: Sequence[Record]) -> str:
        """Means over the finished splits."""
        lines = [
            "| set | starts | splits | RMSE | RMSE on the splits of LA-TTKM | LA-TTKM | NLL | RCE "
            "| ECP-95 | processor seconds |",
            "|---|---|---|---|---|---|---|---|---|---|",
        ]
        for name, (protocol, starts) in product(self.sets, STARTS.items()):
            rows = rows_of(records, name, OURS, protocol)
            if rows:
                rmse, splits = PEER[name]
                same = [row for row in rows if row["split"] <= splits]
                beside = mean_of("rmse", same, 4) if same else "–"
                seconds = sum(row["processor_seconds"] for row in rows) / len(rows)
                lines.append(
                    f"| {name} | {starts} | {len(rows)} | {mean_of('rmse', rows, 4)} | {beside} "
                    f"| {rmse} | {mean_of('nll', rows)} | {mean_of('rce', rows)} | "
                    f"{mean_of('ecp95', rows)} | {seconds:.0f} |"
                )
        return ABOUT + "\n".join(lines)


EXPERIMENT = Train()
