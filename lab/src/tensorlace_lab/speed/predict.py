"""What a prediction costs: the mean, mean and standard deviation, and 30 posterior samples."""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import final

import numpy as np
from sklearn.base import clone

from tensorlace import TNKMRegressor
from tensorlace._types import Array
from tensorlace.fitting.registry import ENGINES
from tensorlace.machines.machine import KernelMachine
from tensorlace.networks.network import Network
from tensorlace_lab.measuring.cells import Cell, Record, size_name, size_of
from tensorlace_lab.measuring.processes import best_of
from tensorlace_lab.measuring.runner import Experiment, Options
from tensorlace_lab.writing.markdown import goal_text, markdown, seconds_text, times_text

__all__ = ["EXPERIMENT", "Predict"]

SEED, D, I, R, DRAWS = 0, 8, 8, 16, 30
N = 100_000
KINDS = {
    "mean_s": "mean",
    "mean_and_std_s": "mean and standard deviation, closed form",
    "joint_mean_s": "mean, all cores uncertain (GGN, the default curvature)",
    "joint_mean_and_std_s": "mean and standard deviation, all cores uncertain",
    "samples_s": f"{DRAWS} posterior samples, features shared",
    "draws_s": f"{DRAWS} draws of new targets (`sample_y`)",
    "networks_s": f"{DRAWS} sampled networks, one after the other",
}


def table(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    X = rng.uniform(-1, 1, (n, D))
    noise = 0.1 * rng.standard_normal(n)
    return X, np.sin(2 * X[:, 0]) * X[:, 1] + X[:, 2] ** 2 + noise


def moved(machine: KernelMachine, deviation: Array) -> Network:
    """Network of a draw from the posterior of the last core."""
    network, d = machine.fit.network, len(machine.fit.cores) - 1
    return network.with_core(d, network.cores[d] + deviation.reshape(network.cores[d].shape))


def measured(
    model: TNKMRegressor, joint: TNKMRegressor, X: Array, engine: str, rng: np.random.Generator
) -> dict[str, float]:
    """Seconds of each kind of prediction by one engine; ``joint`` has all cores uncertain."""
    model, joint = (copy(m).set_params(engine=engine) for m in (model, joint))
    sampler = copy(model).set_params(predictive="sampled", n_draws=DRAWS)
    machine = model.machines_[0]
    deviations = machine.fit.posterior.sample(rng, DRAWS)
    networks = [
        replace(machine, fit=replace(machine.fit, network=moved(machine, deviation)))
        for deviation in deviations.T
    ]
    mean, both, joint_mean, joint_both, samples, draws, one_by_one = best_of(
        5,
        lambda: model.predict(X),
        lambda: model.predict(X, return_std=True),
        lambda: joint.predict(X),
        lambda: joint.predict(X, return_std=True),
        lambda: sampler.predict(X, return_std=True),
        lambda: model.sample_y(X, DRAWS),
        lambda: np.std([network.mean(X, 2, ENGINES[engine]) for network in networks], axis=0),
    )
    return {
        "mean_s": mean,
        "mean_and_std_s": both,
        "joint_mean_s": joint_mean,
        "joint_mean_and_std_s": joint_both,
        "samples_s": samples,
        "draws_s": draws,
        "networks_s": one_by_one,
    }


@final
class Predict(Experiment):
    """A cell is an engine."""

    name = "predict"
    title = "Predictions"
    packages = ("numpy", "scipy")
    jobs, local = 0, True

    def cells(self, options: Options) -> list[Cell]:
        """All engines."""
        size = size_name(N=2_000 if options.quick else N, D=D, I=I, R=R)
        engines = options.systems or tuple(ENGINES)
        return [Cell(self.name, size, SEED, engine) for engine in engines]

    def run(self, cell: Cell, data: str | None) -> Record:
        """Fit in twenty sweeps, which need not be enough here, and predict."""
        rng = np.random.default_rng(SEED)
        model = TNKMRegressor(
            rank=R,
            n_basis=I,
            solver="als",
            curvature="last",
            core=-1,
            max_sweeps=20,
            random_state=SEED,
        )
        joint = clone(model).set_params(curvature="ggn")
        trained = table(5_000, rng)
        model.fit(*trained)
        joint.fit(*trained)
        X, _ = table(size_of(cell.set)["N"], rng)
        return {"metrics": measured(model, joint, X, cell.system, rng)}

    def markdown(self, records: Sequence[Record]) -> str:
        """Seconds of each kind of prediction, and ratios by engine."""
        found = {r["system"]: r["metrics"] for r in sorted(records, key=_place)}
        rows = [[KINDS[k], *(seconds_text(m[k]) for m in found.values())] for k in KINDS]
        text = (
            f"Predictions at {size_of(records[0]['set'])['N']:,} rows, D = {D}, I = {I}, R = {R}, "
            "posterior of the last core.\n\n"
            + markdown(["what", *(f"engine {engine}" for engine in found)], rows)
        )
        for engine, m in found.items():
            up = {k: m[k] / m["mean_and_std_s"] for k in KINDS if "mean" not in k}
            down = m["mean_and_std_s"] / m["mean_s"]
            joint = m["joint_mean_and_std_s"] / m["joint_mean_s"]
            times = "; ".join(
                f"{KINDS[k]} {times_text(v)}{'' if v >= 10 else ' (**less than 10×**)'}"
                for k, v in up.items()
            )
            text += (
                f"\n\nEngine {engine}: relative to mean and standard deviation, {times}. The aim "
                f"was 10×. The mean alone is {times_text(down)} as fast as both. "
                f"{goal_text(down >= 5, '5×')} With all cores uncertain it is "
                f"{times_text(joint)} as fast as both."
            )
        return text + EXPLANATION


def _place(record: Record) -> int:
    return [*ENGINES, record["system"]].index(record["system"])


EXPLANATION = (
    "\n\nFor the last core the two aims exclude each other. A sampled network costs what the "
    "mean costs, so 30 cost at most 30 means, and a standard deviation ten times as fast at "
    "most 3. Through the product closure it takes R(R+1)/2·(2I-1) multiplications, 2,040 per "
    "row here, where the mean takes D·I·R, 1,024. Samples that share everything but the last "
    "core need another 30·I·R, 3,840, so in one engine no closed form is ten times as fast as "
    "these; they are drawn by NumPy in both columns, so the compiled ratio flatters."
)

EXPERIMENT = Predict()
