"""End to end beside other probabilistic regressors: seconds, accuracy and calibration.

Smooth data with noise of standard deviation 0.3, tables of 500 to 50,000 rows, 2,000 rows to test
on. Each cell is a process of its own. Rules: a cell may take 120 seconds, a system that took longer
is not asked again for more rows, and exact Gaussian processes, whose time is cubic in the rows, get
at most 2,000. They were set after a first run had been too long. What was left out has a reason
instead of numbers, and a run that was stopped goes on where it was. GPJax stands for the GPU-minded
Gaussian process libraries: GPyTorch would drag several gigabytes of CUDA into a benchmark on two
cores.
"""

import argparse
import subprocess
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from tensorlace._types import Array
from tensorlace_lab.measuring.bench_record import Finished, Row, isolated

SEED, D, N_TEST, CAP, NOISE_STD = 0, 8, 2_000, 120.0, 0.3
SIZES = (500, 2_000, 10_000, 50_000)
EXACT_ROWS, INDUCING, SEARCH_S = 2_000, 200, 10

Predict = Callable[[Array], Any]
Fitted = tuple[Predict, Predict]
"""Functions of new rows: the mean (n,), and the mean and standard deviation, each (n,)."""


def table(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    X = rng.uniform(0, 1, (n, D))
    f = np.sin(2 * np.pi * X[:, 0]) * X[:, 1] + 4 * (X[:, 2] - 0.5) ** 2 + X[:, 3] * X[:, 4]
    return X, f + np.cos(3 * X[:, 5]) + NOISE_STD * rng.standard_normal(n)


def searched(X: Array, y: Array) -> Fitted:
    """As it comes: ten seconds to choose size, warp and noise, and a mixture."""
    return _tensorlace(X, y, time_budget=SEARCH_S)


def rank_8(X: Array, y: Array) -> Fitted:
    """One model of rank 8 with 8 basis functions, the rest as it comes."""
    return _tensorlace(X, y, rank=8, n_basis=8)


def _tensorlace(X: Array, y: Array, **arguments: Any) -> Fitted:
    from tensorlace import TNKMRegressor

    model = TNKMRegressor(random_state=SEED, **arguments).fit(X, y)
    return model.predict, lambda new: model.predict(new, return_std=True)


def sklearn_gp(X: Array, y: Array) -> Fitted:
    """An exact Gaussian process with one length scale per column."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
    from threadpoolctl import threadpool_limits

    kernel = ConstantKernel(1.0) * RBF(np.ones(D)) + WhiteKernel(0.1)
    model = GaussianProcessRegressor(kernel, normalize_y=True, random_state=SEED)
    with threadpool_limits(1):  # as the demo does
        model.fit(X, y)
    return model.predict, lambda new: model.predict(new, return_std=True)


def gpjax(X: Array, y: Array) -> Fitted:
    """Exact up to 2,000 rows, beyond a collapsed bound (SGPR) with 200 inducing rows."""
    import jax

    jax.config.update("jax_enable_x64", True)
    import gpjax as gpx
    import jax.numpy as jnp

    mean, std = y.mean(), y.std()
    data = gpx.Dataset(X=jnp.asarray(X), y=jnp.asarray((y - mean) / std)[:, None])
    kernel = gpx.kernels.RBF(lengthscale=jnp.ones(D))
    prior = gpx.gps.Prior(mean_function=gpx.mean_functions.Zero(), kernel=kernel)
    model = prior * gpx.likelihoods.Gaussian(obs_stddev=jnp.array(0.3))
    objective = gpx.objectives.conjugate_mll
    if len(y) > EXACT_ROWS:
        chosen = np.random.default_rng(SEED).choice(len(y), INDUCING, replace=False)
        model = gpx.variational_families.CollapsedVariationalGaussian(
            model=model, inducing_inputs=jnp.asarray(X[chosen])
        )
        objective = gpx.objectives.collapsed_elbo
    fitted, _ = gpx.fit_scipy(
        model=model,
        objective=lambda m, d: -objective(m, d),
        train_data=data,
        max_iters=200,
        verbose=False,
    )
    posterior = fitted.condition(data)
    likelihood = (fitted.model if len(y) > EXACT_ROWS else fitted).likelihood

    @jax.jit
    def moments(new: Any) -> Any:
        found = likelihood(posterior(new, covariance="diagonal"))
        return found.mean.ravel(), jnp.sqrt(found.variance.ravel())

    def both(new: Array) -> tuple[Array, Array]:
        f, s = moments(jnp.asarray(new))
        return mean + std * np.asarray(f), std * np.asarray(s)

    mean_only = jax.jit(lambda new: moments(new)[0])  # the compiler drops what is not asked for
    return lambda new: mean + std * np.asarray(mean_only(jnp.asarray(new))), both


def ngboost(X: Array, y: Array) -> Fitted:
    """Natural gradient boosting of a normal distribution, as it comes."""
    from ngboost import NGBRegressor

    model = NGBRegressor(random_state=SEED, verbose=False).fit(X, y)

    def both(new: Array) -> tuple[Array, Array]:
        found = model.pred_dist(new)
        return found.params["loc"], found.params["scale"]

    return model.predict, both


def lightgbm(X: Array, y: Array) -> Fitted:
    """Three boosted quantiles; the standard deviation from the distance of the outer two."""
    from lightgbm import LGBMRegressor

    low, middle, high = (
        LGBMRegressor(objective="quantile", alpha=q, random_state=SEED, verbose=-1).fit(X, y)
        for q in (0.05, 0.5, 0.95)
    )

    def both(new: Array) -> tuple[Array, Array]:
        spread = (high.predict(new) - low.predict(new)) / (2 * 1.6448536269514722)
        return middle.predict(new), np.maximum(spread, 1e-3 * y.std())

    return middle.predict, both


SYSTEMS: dict[str, tuple[Callable[[Array, Array], Fitted], int, int]] = {
    "tensorlace, searched": (searched, 0, 10**9),
    "tensorlace, rank 8": (rank_8, 0, 10**9),
    "sklearn GP": (sklearn_gp, 0, EXACT_ROWS),
    "GPJax, exact": (gpjax, 0, EXACT_ROWS),
    "GPJax, inducing": (gpjax, EXACT_ROWS + 1, 10**9),
    "NGBoost": (ngboost, 0, 10**9),
    "LightGBM": (lightgbm, 0, 10**9),
}
"""How to fit, and from how many up to how many rows it takes part."""


def measure(system: str, N: int) -> Row:
    """Fit and predict; called in a process of its own."""
    from tensorlace import Normal

    rng = np.random.default_rng(SEED)
    X, y = table(N, rng)
    new, truth = table(N_TEST, rng)
    start = perf_counter()
    mean_of, both_of = SYSTEMS[system][0](X, y)
    fit_s = perf_counter() - start
    mean_of(new), both_of(new)  # compile what compiles
    start = perf_counter()
    mean_of(new)
    mean_s = perf_counter() - start
    start = perf_counter()
    mean, std = both_of(new)
    both_s = perf_counter() - start
    found = Normal(mean, std, 0.0)
    return {
        "fit_s": fit_s,
        "mean_s": mean_s,
        "mean_and_std_s": both_s,
        "rmse": float(np.sqrt(np.mean((mean - truth) ** 2))),
        "nll": float(-np.mean(found.logpdf(truth))),
        "crps": float(np.mean(found.crps(truth))),
    }


def cell(system: str, N: int, before: list[Row]) -> Row:
    """Numbers, or the reason why there are none; ``before`` are the cells of fewer rows."""
    if any(row["system"] == system and row.get("slow") for row in before):
        return {"reason": f"over {CAP:.0f} s with fewer rows", "slow": True}
    try:
        return isolated("benchmarks.peers:measure", timeout=CAP, system=system, N=N)
    except subprocess.TimeoutExpired:
        return {"reason": f"over {CAP:.0f} s", "slow": True}
    except RuntimeError as error:
        return {"reason": f"failed: {error}"[:160]}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks peers")
    parser.add_argument("--fresh", action="store_true", help="forget finished rows")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    options, _ = parser.parse_known_args()
    packages = ("numpy", "scipy", "scikit-learn", "gpjax", "jax", "ngboost", "lightgbm")
    sizes = " ".join(map(str, options.sizes))
    given = () if options.sizes == list(SIZES) else (f"--sizes {sizes}",)
    done = Finished("peers", SEED, ("system", "N"), packages, options.fresh, given)
    for N in sorted(options.sizes):
        for system, (_, least, most) in SYSTEMS.items():
            if not least <= N <= most or {"system": system, "N": N} in done:
                continue
            row = cell(system, N, [old for old in done.rows if old["N"] < N])
            said = row.get("reason") or (
                f"fit {row['fit_s']:.2f} s, mean {row['mean_s'] * 1e3:.1f} ms, with std "
                f"{row['mean_and_std_s'] * 1e3:.1f} ms, rmse {row['rmse']:.4f}, nll "
                f"{row['nll']:.4f}, crps {row['crps']:.4f}"
            )
            print(f"{N:6d} {system:21s} {said}", flush=True)
            done.add({"system": system, "N": N, "D": D, **row})
