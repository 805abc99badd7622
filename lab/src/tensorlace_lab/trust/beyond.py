"""Smooth functions of one column, asked outside of where they were seen."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import final

import numpy as np
import pandas as pd

from tensorlace._types import Array
from tensorlace_lab.measuring.cells import Cell, Record
from tensorlace_lab.measuring.runner import Options
from tensorlace_lab.trust.judging import standardised
from tensorlace_lab.trust.section import Place, Section, Spent, Verdict, ordered
from tensorlace_lab.trust.systems import FIXED, GP, SETTINGS, ask
from tensorlace_lab.writing.markdown import markdown

__all__ = ["FUNCTIONS", "POINTS", "SECTION", "Beyond", "seen"]

FUNCTIONS: Mapping[str, Callable[[Array], Array]] = {
    "sin 3x": lambda x: np.sin(3 * x),
    "cos 6x": lambda x: np.cos(6 * x),
    "exp x": np.exp,
    "x squared": np.square,
    "root of x": np.sqrt,
    "tanh": lambda x: np.tanh(3 * x - 1.5),
}
POINTS = (1.5, 3.0)
N_ROWS, NOISE, SEEDS, OFF = 100, 0.05, 3, 5.0
MOST_OFF = 1 / 6

ABOUT = f"""{N_ROWS} rows uniform in [0, 1], with noise of {NOISE:g} standard deviations of the
function; asked at x = 1.5 and 3. The figure is the error of the mean, in predicted standard
deviations, of the function itself, of each seed; more than {OFF:.0f} is wrong and sure of it.
"""


def seen(name: str, seed: int) -> tuple[pd.DataFrame, Array]:
    """Rows to learn from."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=N_ROWS)
    f = FUNCTIONS[name](x)
    return pd.DataFrame({"x": x}), f + NOISE * np.std(f) * rng.standard_normal(N_ROWS)


@final
class Beyond(Section):
    """A cell is a system on one function."""

    name = "beyond"
    title = "Beyond the data"
    sets = tuple(FUNCTIONS)
    systems = ("tnkm 10 s", FIXED, GP)

    def places(self, options: Options) -> Iterable[Place]:
        """Seed by seed."""
        for seed in self.seeds(options, SEEDS):
            for name in self.chosen(options):
                yield from (Place(name, seed, who) for who in self.systems[options.quick :])

    def run(self, cell: Cell, data: str | None) -> Record:
        """Fit, and ask at the points."""
        X, y = seen(cell.set, cell.split)
        with Spent() as spent:
            predict, _ = ask(cell.system, X, y, cell.split)
            dist = predict(pd.DataFrame({"x": POINTS}))
        z = standardised(FUNCTIONS[cell.set](np.array(POINTS)), dist)
        metrics = {
            key: value
            for x, of_z, std in zip(POINTS, np.abs(z), dist.std, strict=True)
            for key, value in ((f"z at {x:g}", of_z), (f"std at {x:g}", std))
        }
        return {"metrics": metrics, **spent.seconds}

    def verdicts(self, records: Sequence[Record]) -> list[Verdict]:
        """How many are wrong and sure of it, at each point."""
        found = []
        groups = [group for group in ordered(records) if group[1] in SETTINGS]
        for x in POINTS:
            promise = f"six functions of one column at x = {x:g}: at most one in six beyond 5 std"
            for who, _, of in groups:
                z = [r["metrics"][f"z at {x:g}"] for r in of]
                off = sum(value > OFF for value in z)
                figure = f"{off} of {len(z)} fits; worst {max(z):.3g} std"
                found.append(Verdict(promise, who, figure, off <= MOST_OFF * len(z)))
        return found

    def tables(self, records: Sequence[Record]) -> str:
        """By function and point: errors of the seeds."""
        groups = ordered(records)
        lines = []
        for name in FUNCTIONS:
            for x in POINTS:
                line = [name, f"{x:g}"]
                for _, _, of in groups:
                    here = [r["metrics"][f"z at {x:g}"] for r in of if r["set"] == name]
                    line.append(", ".join(f"{z:.3g}" for z in here) or "–")
                lines.append(line)
        return ABOUT + "\n" + markdown(["function", "x", *(who for who, _, _ in groups)], lines)


SECTION = Beyond()
