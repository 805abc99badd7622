"""The paper's findings at equal size: LLA against LA, Last against GGN, which core is last.

The published comparison lets every Hessian choose its own rank and basis size, under a selection
that keeps the noise precision at 1. Here all posteriors belong to the same MAP weights and prior
precision, those of the corrected procedure; each has its own noise precision. No direction is cut
off: the (D - 1) R directions in which factors of a rank-one term trade scale have only the prior to
hold them, so that draws of the network wander off in them while the linearised model does not see
them.
"""

from collections.abc import Sequence
from typing import Any, final

import numpy as np

from tensorlace import metrics
from tensorlace.fitting.registry import CURVATURES
from tensorlace.laplace.curvature import Curvature, Last
from tensorlace_lab.measuring.cells import Cell, Record
from tensorlace_lab.measuring.data import SETS, Split, split_of
from tensorlace_lab.measuring.runner import Experiment, Options
from tensorlace_lab.measuring.statistics import mean_and_error, paired_p
from tensorlace_lab.paper import corrected
from tensorlace_lab.paper.refits import Refit
from tensorlace_lab.paper.uci import SMALL_FIRST
from tensorlace_lab.writing.markdown import markdown, number

__all__ = ["EXPERIMENT", "EqualSize", "compare", "findings"]

RANK, N_BASIS, SWEEPS = 4, 8, 100
DRAWS = 300
_ENDS = ((np.min, np.argmin), (np.max, np.argmax))

COLUMNS = {"ggn": "GGN", "block": "Block", "last": "Last"}


def compare(split: Split, size: tuple[int, int] = (RANK, N_BASIS)) -> dict[str, Any]:
    """Test NLL of LLA and LA with GGN, Block and every core as the Bayesian one."""
    model = corrected.fit(split.X, split.y, size, max_sweeps=SWEEPS, n_jobs=1)
    D = split.X.shape[1]

    def nlls(curvature: Curvature) -> tuple[float, float]:
        refit = Refit.of(model, split.X, split.y, curvature)
        machine = refit.machine(None, refit.noise_precision(None))
        draws = machine.sampled(split.X_test, DRAWS, np.random.default_rng(0))
        both = machine.linearized(split.X_test), draws
        linear, sampled = (metrics.nll(split.y_test, dist) for dist in both)
        return linear, sampled

    ggn, block = (nlls(CURVATURES[name]) for name in ("ggn", "block"))
    last = [nlls(Last(d)) for d in range(D)]
    return {
        "lla_ggn": ggn[0],
        "la_ggn": ggn[1],
        "lla_block": block[0],
        "la_block": block[1],
        "lla_last": last[-1][0],
        "la_last": last[-1][1],
        "lla_by_core": [linear for linear, _ in last],
        "rmse": metrics.rmse(split.y_test, model.predict(split.X_test)),
    }


@final
class EqualSize(Experiment):
    """A cell is a split of a set: one MAP fit, all posteriors."""

    name = "equal-size"
    title = "The paper's findings at equal size"
    sets = SETS
    protocols = ("corrected",)

    def cells(self, options: Options) -> list[Cell]:
        """Split by split, small sets first."""
        quick = options.quick
        return [
            Cell(self.name, name, split, "tnkm", "corrected")
            for split in options.splits or ((1, 2) if quick else tuple(range(1, 11)))
            for name in options.sets or (("yacht",) if quick else SMALL_FIRST)
        ]

    def run(self, cell: Cell, data: str | None) -> Record:
        """Compare all posteriors."""
        split = split_of(cell.set, cell.split, data)
        about = {"rank": RANK, "n_basis": N_BASIS}
        return {"metrics": compare(split), "scale": split.scale, "about": about}

    def markdown(self, records: Sequence[Record]) -> str:
        """A column per set: means over the splits, and p-values of the two differences."""
        sets = [name for name in SETS if any(r["set"] == name for r in records)]
        of = {name: [r["metrics"] for r in records if r["set"] == name] for name in sets}
        rows = [["splits", *(str(len(of[name])) for name in sets)]]
        for bend, title in COLUMNS.items():
            for kind in ("lla", "la"):
                values = ([m[f"{kind}_{bend}"] for m in of[name]] for name in sets)
                rows.append(
                    [f"{kind.upper()} {title}", *(number(*mean_and_error(v)) for v in values)]
                )
        by_core = [np.mean([m["lla_by_core"] for m in of[name]], axis=0) for name in sets]
        best, worst = ([f"{at(v):.2f} (x{arg(v) + 1})" for v in by_core] for at, arg in _ENDS)
        rows += [["LLA Last, best core", *best], ["LLA Last, worst core", *worst]]
        pairs = (("LA = LLA (GGN)", "la_ggn", "lla_ggn"),)
        for title, a, b in (*pairs, ("Last = GGN (LLA)", "lla_last", "lla_ggn")):
            p = (_probability([m[a] - m[b] for m in of[name]]) for name in sets)
            rows.append([f"p, {title}", *p])
        note = f"Test NLL at R = {RANK}, I = {N_BASIS} for all. {findings(records)}"
        return f"{markdown(['', *sets], rows)}\n\n{note}"


def _probability(differences: Sequence[float]) -> str:
    """Of differences at least as large by chance, in words; one split says nothing."""
    if len(differences) < 2:
        return "–"
    p = paired_p(differences)
    return f"{p:.2f}" if p >= 0.005 else "< 0.005"


def findings(records: Sequence[Record]) -> str:
    """What the table says on the paper's three claims, in words."""
    means, spans = [], []
    for name in SETS:
        of = [r["metrics"] for r in records if r["set"] == name]
        if of:
            keys = ("lla_ggn", "la_ggn", "lla_last")
            means.append([float(np.mean([m[key] for m in of])) for key in keys])
            spans.append((float(np.ptp(np.mean([m["lla_by_core"] for m in of], axis=0))), name))
    if not means:
        return ""
    n = len(means)
    linear = sum(lla < la for lla, la, _ in means)
    last = sum(last < lla for lla, _, last in means)
    span, where = max(spans)
    return (
        f"LLA is better than LA (GGN) on {linear} of {n} sets; Last is better than GGN on "
        f"{last} of {n}; which core is last moves the NLL by up to {span:.2f} ({where})."
    )


EXPERIMENT = EqualSize()
