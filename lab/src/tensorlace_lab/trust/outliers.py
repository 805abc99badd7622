"""One target that is wrong, and what it does to the predictions of all other rows."""

from collections.abc import Iterable, Sequence
from typing import final

import numpy as np

from tensorlace_lab.measuring.cells import Cell, Record
from tensorlace_lab.measuring.runner import Options
from tensorlace_lab.trust.made_up import friedman
from tensorlace_lab.trust.section import Place, Section, Spent, Verdict, ordered, values
from tensorlace_lab.trust.systems import BOOSTED, FIXED, SETTINGS, STUDENT, ask
from tensorlace_lab.trust.tables import Rows, drawn
from tensorlace_lab.writing.markdown import markdown

__all__ = ["MOVES", "SECTION", "Outliers", "rows_of"]

MOVES = (0.0, 1e2, 1e6)
"""By how many standard deviations of the target one of them is moved."""

SEEDS, SLACK = 3, 1.05
N_ROWS = 300
FRIEDMAN = f"friedman1, {N_ROWS} rows"
PROMISE = "one target moved by 10⁶ std: RMSE on clean rows changes by less than 5 %"

ABOUT = """The target of one training row, drawn by the seed, is moved by so many standard
deviations of the target; RMSE on the test rows, in standard deviations of the clean target, means
over the seeds.
"""


def rows_of(name: str, seed: int) -> Rows:
    """Clean rows."""
    return friedman(N_ROWS, seed) if name == FRIEDMAN else drawn(name, seed)


@final
class Outliers(Section):
    """A cell is a system fitted to clean rows, and twice to rows of which one is moved."""

    name = "outliers"
    title = "One outlier"
    sets = (FRIEDMAN, "airfoil", "computers")
    systems = (FIXED, "tnkm 2 s", STUDENT, "tnkm 10 s", BOOSTED)

    def places(self, options: Options) -> Iterable[Place]:
        """Seed by seed."""
        for seed in self.seeds(options, SEEDS):
            for name in self.chosen(options):
                systems = self.systems[: 1 if options.quick else None]
                yield from (Place(name, seed, who) for who in systems)

    def run(self, cell: Cell, data: str | None) -> Record:
        """Fit three times."""
        rows = rows_of(cell.set, cell.split)
        std, at = np.std(rows.y), np.random.default_rng(cell.split).integers(len(rows.y))
        metrics = {}
        with Spent() as spent:
            for move in MOVES:
                y = rows.y.copy()
                y[at] += move * std
                predict, _ = ask(cell.system, rows.X, y, cell.split)
                error = predict(rows.X_test).mean - rows.y_test
                metrics[f"rmse, moved by {move:g}"] = np.sqrt(np.mean(error**2)) / std
        return {"metrics": metrics, **spent.seconds, "n_train": len(rows.y)}

    def verdicts(self, records: Sequence[Record]) -> list[Verdict]:
        """The largest change of all cells."""
        found = []
        for who, system, of in ordered(records):
            if system in SETTINGS:
                clean, moved = (_rmse(of, move) for move in (MOVES[0], MOVES[-1]))
                ratios = np.divide(moved, clean)
                worst = int(np.argmax(np.abs(np.log(ratios))))
                figure = f"most {ratios[worst]:.4g} times ({of[worst]['set']}); "
                figure += f"median {np.median(ratios):.4g} times, {len(of)} cells"
                kept = bool(ratios.min() >= 1 / SLACK and ratios.max() <= SLACK)
                found.append(Verdict(PROMISE, who, figure, kept))
        return found

    def tables(self, records: Sequence[Record]) -> str:
        """By table and system: RMSE with each move."""
        lines = []
        for name in self.sets:
            for who, _, of in ordered([r for r in records if r["set"] == name]):
                rmse = [f"{np.mean(_rmse(of, move)):.4g}" for move in MOVES]
                lines.append([name, who, str(len(of)), *rmse])
        header = ["table", "system", "seeds", "clean", "moved by 100 std", "moved by 10⁶ std"]
        return ABOUT + "\n" + markdown(header, lines)


def _rmse(records: Sequence[Record], move: float) -> list[float]:
    return values(records, f"rmse, moved by {move:g}")


SECTION = Outliers()
