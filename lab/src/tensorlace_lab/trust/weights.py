"""Weights that are not repetitions: all small, or one by the number of rows."""

from collections.abc import Iterable, Mapping, Sequence
from typing import final

import numpy as np

from tensorlace_lab.measuring.cells import Cell, Record
from tensorlace_lab.measuring.runner import Options
from tensorlace_lab.trust.judging import judged
from tensorlace_lab.trust.made_up import friedman
from tensorlace_lab.trust.section import Place, Section, Spent, Verdict, ordered, values
from tensorlace_lab.trust.systems import FIXED, ask
from tensorlace_lab.writing.markdown import markdown

__all__ = ["SECTION", "WEIGHTS", "Weights"]

N_ROWS = 256
"""A power of two: weights of one by it sum to one without rounding."""

NONE = "no weights"
WEIGHTS: Mapping[str, float] = {
    NONE: 1.0,
    "all 1e-3": 1e-3,
    "all 1e-6": 1e-6,
    "all one by n": 1.0 / N_ROWS,
}
SEEDS, LEAST, MOST_RATIO = 3, 0.9, 1.05
PROMISE = "equal weights of any size: 95 % intervals hold at least 90 %, RMSE as without weights"

ABOUT = f"""Friedman's first function, {N_ROWS} rows, the same weight for all: coverage of 95 %
intervals and RMSE, means over the seeds, or the error that was raised.
"""


@final
class Weights(Section):
    """A cell is a system with such weights."""

    name = "weights"
    title = "Weights"
    sets = tuple(WEIGHTS)
    systems = (FIXED, "tnkm 2 s")

    def places(self, options: Options) -> Iterable[Place]:
        """Seed by seed."""
        for seed in self.seeds(options, SEEDS):
            for name in self.chosen(options):
                yield from (Place(name, seed, who) for who in self.systems)

    def run(self, cell: Cell, data: str | None) -> Record:
        """Fit and judge; an error is a result, too."""
        rows, weight = friedman(N_ROWS, cell.split), WEIGHTS[cell.set]
        weights = None if weight == 1.0 else np.full(len(rows.y), weight)
        with Spent() as spent:
            try:
                predict, _ = ask(cell.system, rows.X, rows.y, cell.split, weights)
                metrics = judged(rows.y_test, predict(rows.X_test))
            except (ArithmeticError, ValueError) as error:
                return {"metrics": {}, "seconds": 0.0, "error": type(error).__name__}
        return {"metrics": metrics, **spent.seconds, "n_train": len(rows.y)}

    def verdicts(self, records: Sequence[Record]) -> list[Verdict]:
        """The least coverage of any weights, the largest RMSE, and how many fits failed."""
        found = []
        for who, _, of in ordered(records):
            plain = {r["split"]: r["metrics"].get("rmse") for r in of if r["set"] == NONE}
            weighted = [r for r in of if r["set"] != NONE and plain.get(r["split"])]
            done = [r for r in weighted if r["metrics"]]
            if not weighted:
                continue
            failed = len(weighted) - len(done)
            figure = f"{failed} of {len(weighted)} fits failed"
            kept = failed == 0
            if done:
                least = min(done, key=lambda r: r["metrics"]["coverage95"])
                share = least["metrics"]["coverage95"]
                ratio = max(r["metrics"]["rmse"] / plain[r["split"]] for r in done)
                figure = (
                    f"least {share:.3f} ({least['set']}); RMSE up to {ratio:.3g} times; {figure}"
                )
                kept = kept and share >= LEAST and ratio <= MOST_RATIO
            found.append(Verdict(PROMISE, who, figure, kept))
        return found

    def tables(self, records: Sequence[Record]) -> str:
        """By weights and system."""
        lines = []
        for name in self.sets:
            for who, _, of in ordered([r for r in records if r["set"] == name]):
                errors = sorted({r["error"] for r in of if "error" in r})
                scores = [values(of, key) for key in ("coverage95", "rmse")]
                said = [f"{np.mean(v):.3f}" if v else ", ".join(errors) for v in scores]
                lines.append([name, who, str(len(of)), *said])
        return ABOUT + "\n" + markdown(["weights", "system", "seeds", "95 %", "RMSE"], lines)


SECTION = Weights()
