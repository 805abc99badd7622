"""The first fit of a fresh process, imports and compilation included, against PyPI's tnkm."""

from collections.abc import Sequence
from typing import Any, final

from tensorlace_lab.measuring.cells import Cell, Record, size_name, size_of
from tensorlace_lab.measuring.processes import isolated
from tensorlace_lab.measuring.runner import Experiment, Options
from tensorlace_lab.speed.whole_process import SEED, D
from tensorlace_lab.writing.markdown import goal_text, markdown, seconds_text, times_text

__all__ = ["EXPERIMENT", "FirstFit"]

N, REPEATS = 10_000, 2
SIZES = ((8, 8), (16, 20), (40, 20))
"""I and R."""

SYSTEMS = ("tensorlace", "core", "tnkm")
PARTS = {"process_s": "whole process", "import_s": "imports", "fit_s": "first fit"}


@final
class FirstFit(Experiment):
    """A cell is a size, at which the systems take turns."""

    name = "first_fit"
    title = "The first fit of a fresh process"
    packages = ("numpy", "scipy", "scikit-learn", "tnkm", "jax")
    jobs, local = 0, True

    def cells(self, options: Options) -> list[Cell]:
        """Three sizes."""
        rows = 1_000 if options.quick else N
        sizes = SIZES[:1] if options.quick else SIZES
        return [Cell(self.name, size_name(N=rows, D=D, I=I, R=R), SEED, "all") for I, R in sizes]

    def run(self, cell: Cell, data: str | None) -> Record:
        """The quickest process of each system, and ratios to tnkm."""
        size, best = size_of(cell.set), dict[str, dict[str, Any]]()
        for _ in range(REPEATS):
            for system in SYSTEMS:
                where = f"tensorlace_lab.speed.whole_process:{system}"
                row = isolated(where, rows=size["N"], I=size["I"], R=size["R"])
                if system not in best or row["process_s"] < best[system]["process_s"]:
                    best[system] = row
        ratios = {
            name: {part: best["tnkm"][part] / best[system][part] for part in PARTS}
            for system, name in (("tensorlace", "ratio"), ("core", "ratio, core"))
        }
        return {"metrics": best | ratios}

    def markdown(self, records: Sequence[Record]) -> str:
        """Seconds by part, and ratios."""
        rows = []
        for r in records:
            size = size_of(r["set"])
            for system, parts in r["metrics"].items():
                show = times_text if system.startswith("ratio") else seconds_text
                texts = (show(parts[part]) for part in PARTS)
                rows.append([f"{size['I']}, {size['R']}", system, *texts])
        size, ours = size_of(records[0]["set"]), records[0]["metrics"]["tensorlace"]
        least = min(r["metrics"]["ratio"]["process_s"] for r in records)
        return (
            f"A fresh process that imports the library and fits {size['N']:,} × {size['D']} rows "
            f"in {ours['sweeps']} sweeps. tnkm compiles first; tensorlace also computes the "
            "posterior. The core is the same fit by `tensorlace.fitting.fit_machines`, below the "
            "estimator.\n\n"
            + markdown(["I, R", "system", *PARTS.values()], rows)
            + f"\n\n{goal_text(least >= 10, '10× for the whole process')} Importing "
            "scikit-learn, which loads scipy.stats and pandas, alone takes "
            f"{seconds_text(ours['sklearn_s'])}."
        )


EXPERIMENT = FirstFit()
