"""The paper's toy: 20 noisy points of x³, its figure and its table."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, final

import numpy as np

from tensorlace._types import Array
from tensorlace.errors import InputError
from tensorlace.estimators.regressor import TNKMRegressor
from tensorlace.predictive.distributions import Distribution, Normal
from tensorlace_lab.measuring.cells import Cell, Record
from tensorlace_lab.measuring.runner import Experiment, Options
from tensorlace_lab.measuring.scores import score
from tensorlace_lab.measuring.statistics import mean_and_error
from tensorlace_lab.paper import literature, published
from tensorlace_lab.paper.protocols import DRAWS
from tensorlace_lab.paper.score_tables import SCORES
from tensorlace_lab.systems import SYSTEMS
from tensorlace_lab.writing.markdown import markdown, number

__all__ = ["EXPERIMENT", "Cubic", "sample"]

NOISE = 3.0
RANK, N_BASIS = 2, 4
GRID = np.linspace(-6.0, 6.0, 121)
PAPER_NAMES = {"tnkm": "LA-TNKM", "gp": "GP"}
OTHERS = ("LA-BNN", "MF-BTN", "SP-BTN")


def sample(seed: int) -> tuple[Array, Array, Array, Array]:
    """20 points of ``x³`` with noise N(0, 3²) on [-4, 4], and 100 test points on [-5, 5]."""
    rng = np.random.default_rng(seed)
    x, new = rng.uniform(-4.0, 4.0, 20), rng.uniform(-5.0, 5.0, 100)
    y, new_y = (z**3 + NOISE * rng.standard_normal(len(z)) for z in (x, new))
    return x, y, new, new_y


@final
class Cubic(Experiment):
    """A cell is a system on one drawing of the data; ``split`` is its seed."""

    name = "cubic"
    title = "The cubic toy"
    sets = ("cubic",)
    protocols = ("published", "corrected", "default")

    def cells(self, options: Options) -> list[Cell]:
        """Ours by both procedures, the Gaussian process, and other systems if they are there."""
        systems = options.systems or ("tnkm", "gp", *OTHERS)
        protocols = options.protocols or ("published", "corrected")
        return [
            Cell(self.name, "cubic", seed, system, protocol)
            for seed in options.splits or tuple(range(1, 4 if options.quick else 21))
            for system in systems
            for protocol in (protocols if system in ("tnkm", "gp") else ("corrected",))
            if protocol != "default"
        ]

    def run(self, cell: Cell, data: str | None) -> Record:
        """Fit to 20 points, score on 100, and keep the band."""
        x, y, new, new_y = sample(cell.split)
        old = cell.protocol == "published"
        at = np.concatenate([new, GRID])
        both = _predict(cell.system, x, y, at, cell.split, old=old)
        dist = both[: len(new)]
        found = score(new_y, dist, draws=DRAWS if old else None)
        band = both[len(new) :]
        curve = {"x": GRID, "mean": band.mean, "std": band.std}
        return {"metrics": found, "curve": curve, "train": {"x": x, "y": y}}

    def markdown(self, records: Sequence[Record]) -> str:
        """Means over the drawings, the printed figures of one drawing below them."""
        rows = []
        keys = dict.fromkeys((r["system"], r["protocol"]) for r in records)
        for system, protocol in keys:
            of = [
                r["metrics"] for r in records if (r["system"], r["protocol"]) == (system, protocol)
            ]
            numbers = [number(*mean_and_error([m[key] for m in of])) for key in SCORES]
            rows.append([PAPER_NAMES.get(system, system), protocol, str(len(of)), *numbers])
        for name, printed in literature.CUBIC.items():
            rows.append(
                [name, "*printed in the paper*", "1", *(number(printed[k]) for k in SCORES)]
            )
        return markdown(["system", "procedure", "drawings", *SCORES.values()], rows)

    def figures(self, records: Sequence[Record], directory: Path) -> list[Path]:
        """Bands of two standard deviations on the first drawing; below, what differs from x³."""
        first = min((r["split"] for r in records), default=None)
        shown = [r for r in records if r["split"] == first and r["protocol"] == "corrected"]
        if not shown:
            return []
        from tensorlace_lab.writing.charts import figure, save

        drawn, panels = figure(2, len(shown))
        for column, record in enumerate(shown):
            x, mean, std = (np.array(record["curve"][k]) for k in ("x", "mean", "std"))
            at, y = (np.array(record["train"][k]) for k in ("x", "y"))
            for panel, truth, truth_at in (
                (panels[0][column], 0.0 * x, 0.0 * at),
                (panels[1][column], x**3, at**3),
            ):
                low, high = mean - truth - 2 * std, mean - truth + 2 * std
                panel.fill_between(x, low, high, color="C0", alpha=0.2, lw=0)
                panel.plot(x, x**3 - truth, "k--", lw=1, label="x³")
                panel.plot(x, mean - truth, color="C0", label="mean, 2 std")
                panel.plot(at, y - truth_at, "k.", ms=4, label="data")
                panel.set_xlabel("x")
            name = PAPER_NAMES.get(record["system"], record["system"])
            panels[0][column].set_title(f"{name}, {record['protocol']}", fontsize=9)
            panels[0][column].set_ylim(-220, 220)
            panels[1][column].set_ylim(-35, 35)
        panels[0][0].legend(fontsize=8, frameon=False, loc="upper left")
        panels[0][0].set_ylabel("y")
        panels[1][0].set_ylabel("y - x³")
        return [save(drawn, directory / "cubic.svg")]


def _predict(system: str, x: Array, y: Array, at: Array, seed: int, *, old: bool) -> Distribution:
    """Predictive distributions at new points by a system that knows the noise where it can."""
    if system == "tnkm" and old:
        return published.cubic(x, y, at, RANK, N_BASIS, 1.0 / NOISE**2)
    if system == "tnkm":
        model = TNKMRegressor(
            rank=RANK,
            n_basis=N_BASIS,
            basis="polynomial",
            warp="standardise",
            curvature="last",
            core=-1,
            noise_precision=1.0 / NOISE**2,
            random_state=0,
            n_jobs=1,
        )
        return model.fit(x[:, None], y).predict_dist(at[:, None])
    if system == "gp":
        return _gaussian_process(x, y, at, old=old)
    if system not in SYSTEMS:
        raise InputError(f"system {system!r} is not known: tnkm, gp, {', '.join(SYSTEMS)}")
    same = {"sizes": [(RANK, N_BASIS)], "unit_norm": False} if system.endswith("BTN") else {}
    fitted: Any = SYSTEMS[system](random_state=seed, **same).fit(x[:, None], y)
    found: Distribution = fitted.predict_dist(at[:, None])
    return found


def _gaussian_process(x: Array, y: Array, at: Array, *, old: bool) -> Normal:
    """Exact GP of degree three; its noise is learnt by the authors, known otherwise."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct, WhiteKernel

    wide = (1e-6, 1e6)
    if old:
        kernel, alpha = DotProduct() ** 3 + WhiteKernel(), 1e-10
    else:
        kernel, alpha = ConstantKernel(1.0, wide) * DotProduct(1.0, wide) ** 3, NOISE**2
    process = GaussianProcessRegressor(kernel, alpha=alpha, random_state=0).fit(x[:, None], y)
    mean, std = process.predict(at[:, None], return_std=True)
    return Normal(mean, 0.0, std if old else np.hypot(std, NOISE))


EXPERIMENT = Cubic()
