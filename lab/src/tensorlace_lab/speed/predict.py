"""What a prediction costs: the mean, mean and standard deviation, and 30 posterior samples."""

import argparse
import warnings
from copy import copy
from dataclasses import replace

import numpy as np
from sklearn.base import clone

from tensorlace import TNKMRegressor
from tensorlace._types import Array
from tensorlace.fitting.registry import ENGINES
from tensorlace.machines.machine import KernelMachine
from tensorlace.networks.cpd import Cores
from tensorlace_lab.measuring.bench_record import best_of, rounded, save

SEED, D, I, R, DRAWS = 0, 8, 8, 16, 30


def table(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    X = rng.uniform(-1, 1, (n, D))
    noise = 0.1 * rng.standard_normal(n)
    return X, np.sin(2 * X[:, 0]) * X[:, 1] + X[:, 2] ** 2 + noise


def moved(machine: KernelMachine, deviation: Array) -> Cores:
    """Cores of a draw from the posterior of the last core."""
    *others, last = machine.fit.cores
    return (*others, last + deviation.reshape(last.shape))


def measured(
    model: TNKMRegressor, joint: TNKMRegressor, X: Array, engine: str, rng: np.random.Generator
) -> dict:
    """Seconds of each kind of prediction by one engine; ``joint`` has all cores uncertain."""
    model, joint = (copy(m).set_params(engine=engine) for m in (model, joint))
    sampler = copy(model).set_params(predictive="sampled", n_draws=DRAWS)
    machine = model.machines_[0]
    deviations = machine.fit.posterior.sample(rng, DRAWS)
    networks = [
        replace(machine, fit=replace(machine.fit, cores=moved(machine, deviation)))
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
    print(
        f"{engine}, {len(X)} rows: mean {mean * 1e3:.1f} ms, mean and std {both * 1e3:.1f} ms "
        f"(× {both / mean:.2f}), all cores {joint_both * 1e3:.1f} ms "
        f"(× {joint_both / joint_mean:.2f}), "
        f"{DRAWS} samples {samples * 1e3:.1f} ms (× {samples / both:.2f}), "
        f"sample_y {draws * 1e3:.1f} ms (× {draws / both:.2f}), "
        f"{DRAWS} networks one by one {one_by_one * 1e3:.1f} ms (× {one_by_one / both:.2f})"
    )
    return {
        "engine": engine,
        "N": len(X),
        "D": D,
        "I": I,
        "R": R,
        "draws": DRAWS,
        "mean_s": mean,
        "mean_and_std_s": both,
        "joint_mean_s": joint_mean,
        "joint_mean_and_std_s": joint_both,
        "samples_s": samples,
        "draws_s": draws,
        "networks_s": one_by_one,
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks predict")
    parser.add_argument("--rows", type=int, default=100_000)
    options, _ = parser.parse_known_args()
    rng = np.random.default_rng(SEED)
    model = TNKMRegressor(
        rank=R, n_basis=I, solver="als", curvature="last", core=-1, max_sweeps=20, random_state=SEED
    )
    joint = clone(model).set_params(curvature="ggn")
    trained = table(5_000, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # twenty sweeps need not be enough here
        model.fit(*trained)
        joint.fit(*trained)
    X, _ = table(options.rows, rng)
    rows = [measured(model, joint, X, engine, rng) for engine in ENGINES]
    given = () if options.rows == parser.get_default("rows") else (f"--rows {options.rows}",)
    save("predict", SEED, [rounded(row) for row in rows], ("numpy", "scipy"), given)
