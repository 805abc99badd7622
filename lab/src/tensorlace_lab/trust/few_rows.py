"""A handful of rows, and a model of a fixed size."""

from collections.abc import Iterable, Sequence
from typing import final

import numpy as np

from tensorlace_lab.measuring.cells import Cell, Record
from tensorlace_lab.measuring.runner import Options
from tensorlace_lab.trust.judging import judged
from tensorlace_lab.trust.made_up import wave
from tensorlace_lab.trust.section import Place, Section, Spent, Verdict, ordered, values
from tensorlace_lab.trust.systems import FIXED, GP, RIDGE, SETTINGS, ask
from tensorlace_lab.writing.markdown import markdown

__all__ = ["SECTION", "FewRows"]

ROWS = (2, 3, 4, 6, 8, 12)
DRAWS, N_TEST, SEEDS, LEAST, MOST_Z = 20, 100, 3, 0.9, 30.0
PROMISE = "2 to 12 rows with a fixed rank: 95 % intervals hold at least 90 %, none beyond 30 std"

ABOUT = f"""A wave in one column, a slope in another, noise of standard deviation 0.1; {DRAWS}
drawings of the rows per seed, {N_TEST} rows to test on for each. Coverage of 95 % intervals, and
the worst |z|, of all drawings.
"""


@final
class FewRows(Section):
    """A cell is a system on many drawings of so many rows."""

    name = "few"
    title = "Few rows"
    sets = tuple(f"{n} rows" for n in ROWS)
    systems = (FIXED, GP, RIDGE)

    def places(self, options: Options) -> Iterable[Place]:
        """Seed by seed."""
        for seed in self.seeds(options, SEEDS):
            for name in self.chosen(options):
                yield from (Place(name, seed, who) for who in self.systems)

    def run(self, cell: Cell, data: str | None) -> Record:
        """Fit each drawing and judge; means over the drawings, and the worst."""
        rng, n_rows = np.random.default_rng(cell.split), int(cell.set.split()[0])
        found = []
        with Spent() as spent:
            for k in range(DRAWS):
                rows = wave(n_rows, N_TEST, rng)
                predict, _ = ask(cell.system, rows.X, rows.y, k)
                found.append(judged(rows.y_test, predict(rows.X_test)))
        metrics = {key: np.mean([f[key] for f in found]) for key in found[0]}
        metrics["worst_z"] = max(f["worst_z"] for f in found)
        return {"metrics": metrics, **spent.seconds, "n_train": n_rows}

    def verdicts(self, records: Sequence[Record]) -> list[Verdict]:
        """The least coverage of a number of rows, and the worst error."""
        found = []
        for who, system, of in ordered(records):
            if system in SETTINGS:
                share = {
                    name: np.mean(values([r for r in of if r["set"] == name], "coverage95"))
                    for name in dict.fromkeys(r["set"] for r in of)
                }
                least = min(share, key=lambda name: share[name])
                z = max(values(of, "worst_z"))
                figure = f"least {share[least]:.3f} ({least}); worst {z:.3g} std"
                kept = bool(share[least] >= LEAST and z <= MOST_Z)
                found.append(Verdict(PROMISE, who, figure, kept))
        return found

    def tables(self, records: Sequence[Record]) -> str:
        """By number of rows."""
        groups = ordered(records)
        header = ["rows"]
        for who, _, _ in groups:
            header += [f"{who}: 95 %", "worst \\|z\\|"]
        lines = []
        for name in self.sets:
            line = [name]
            for _, _, of in groups:
                here = [r for r in of if r["set"] == name]
                line.append(f"{np.mean(values(here, 'coverage95')):.3f}" if here else "–")
                line.append(f"{max(values(here, 'worst_z')):.3g}" if here else "–")
            lines.append(line)
        return ABOUT + "\n" + markdown(header, lines)


SECTION = FewRows()
