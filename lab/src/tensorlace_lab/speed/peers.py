"""End to end beside other probabilistic regressors: seconds, accuracy and calibration.

Smooth data with noise of standard deviation 0.3, tables of 500 to 50,000 rows, 2,000 rows to test
on. Each cell is a process of its own. Rules: a cell may take 120 seconds, and exact Gaussian
processes, whose time is cubic in the rows, get at most 2,000. They were set after a first run had
been too long. What was left out has a reason instead of numbers. GPJax stands for the GPU-minded
Gaussian process libraries: GPyTorch would drag several gigabytes of CUDA into a benchmark on two
cores.
"""

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, final

import numpy as np

from tensorlace._types import Array
from tensorlace_lab.measuring.cells import Cell, Record, size_name, size_of
from tensorlace_lab.measuring.processes import isolated
from tensorlace_lab.measuring.runner import Experiment, Options
from tensorlace_lab.speed import figures
from tensorlace_lab.systems import SYSTEMS
from tensorlace_lab.writing.markdown import markdown, seconds_text

__all__ = ["EXPERIMENT", "Peers"]

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
    return _as_it_comes("scikit-learn GP", X, y)


def ngboost(X: Array, y: Array) -> Fitted:
    """Natural gradient boosting of a normal distribution, as it comes."""
    return _as_it_comes("NGBoost", X, y)


def lightgbm(X: Array, y: Array) -> Fitted:
    """Three boosted quantiles; the standard deviation from the distance of the outer two."""
    model: Any = SYSTEMS["LightGBM quantiles"](
        levels=(0.05, 0.5, 0.95), n_jobs=None, random_state=SEED
    )
    model.fit(X, y)

    def both(new: Array) -> tuple[Array, Array]:
        low, middle, high = model.quantiles(new).T
        return middle, np.maximum((high - low) / (2 * 1.6448536269514722), 1e-3 * y.std())

    return lambda new: model.quantiles(new)[:, 1], both


def _as_it_comes(system: str, X: Array, y: Array) -> Fitted:
    model = SYSTEMS[system](random_state=SEED).fit(X, y)
    return model.predict, lambda new: model.predict(new, return_std=True)


def gpjax(X: Array, y: Array) -> Fitted:
    """Exact up to 2,000 rows, beyond a collapsed bound (SGPR) with 200 inducing rows."""
    import jax

    jax.config.update("jax_enable_x64", True)  # type: ignore[no-untyped-call]
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


ENTRANTS: dict[str, tuple[Callable[[Array, Array], Fitted], int, int]] = {
    "tensorlace, searched": (searched, 0, 10**9),
    "tensorlace, rank 8": (rank_8, 0, 10**9),
    "sklearn GP": (sklearn_gp, 0, EXACT_ROWS),
    "GPJax, exact": (gpjax, 0, EXACT_ROWS),
    "GPJax, inducing": (gpjax, EXACT_ROWS + 1, 10**9),
    "NGBoost": (ngboost, 0, 10**9),
    "LightGBM": (lightgbm, 0, 10**9),
}
"""How to fit, and from how many up to how many rows it takes part."""


def measure(system: str, N: int) -> dict[str, float]:
    """Fit and predict; called in a process of its own."""
    from tensorlace import Normal

    rng = np.random.default_rng(SEED)
    X, y = table(N, rng)
    new, truth = table(N_TEST, rng)
    start = perf_counter()
    mean_of, both_of = ENTRANTS[system][0](X, y)
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


@final
class Peers(Experiment):
    """A cell is a system at a number of rows."""

    name = "peers"
    title = "Beside other regressors"
    packages = ("numpy", "scipy", "scikit-learn", "gpjax", "jax", "ngboost", "lightgbm")
    jobs, local = 0, True

    def cells(self, options: Options) -> list[Cell]:
        """From few rows to many."""
        return [
            Cell(self.name, size_name(N=N), SEED, system)
            for N in (SIZES[:1] if options.quick else SIZES)
            for system, (_, least, most) in ENTRANTS.items()
            if least <= N <= most
        ]

    def run(self, cell: Cell, data: str | None) -> Record:
        """Numbers, or the reason why there are none."""
        how = {"system": cell.system, "N": size_of(cell.set)["N"]}
        try:
            return {"metrics": isolated(f"{__name__}:measure", timeout=CAP, **how)}
        except subprocess.TimeoutExpired:
            return {"metrics": {}, "reason": f"over {CAP:.0f} s"}
        except RuntimeError as error:
            return {"metrics": {}, "reason": f"failed: {error}"[:160]}

    def markdown(self, records: Sequence[Record]) -> str:
        """Seconds and scores by size, and who has the lower NLL."""
        header = ["rows", "system", "fit", "mean", "mean and std", "RMSE", "NLL", "CRPS"]
        rows, nll = [], dict[int, dict[str, float]]()
        for r in _in_order(records):
            N, m = size_of(r["set"])["N"], r["metrics"]
            cells = [f"{N:,}", r["system"]]
            if "reason" in r:
                rows.append([*cells, r["reason"], *[""] * 5])
                continue
            nll.setdefault(N, {})[r["system"]] = m["nll"]
            times = [seconds_text(m[k]) for k in ("fit_s", "mean_s", "mean_and_std_s")]
            rows.append([*cells, *times, *(f"{m[k]:.4f}" for k in ("rmse", "nll", "crps"))])
        beaten: list[str] = []
        for N, of in nll.items():
            own = [v for system, v in of.items() if system.startswith("tensorlace")]
            better = [system for system, v in of.items() if own and v < min(own)]
            if better:
                beaten.append(f"{N:,} rows ({', '.join(better)})")
        verdict = "No peer has a lower NLL at any size."
        if beaten:
            verdict = f"A peer has the lower NLL at {'; '.join(beaten)}."
        return (
            "A smooth function of eight columns with noise of standard deviation 0.3; 2,000 test "
            "rows. tensorlace as it comes with a search of 10 seconds, and as one model of rank 8 "
            "with 8 basis functions; exact Gaussian processes up to 2,000 rows, GPJax with 200 "
            "inducing rows beyond; the others as they come. LightGBM's standard deviation is read "
            "off its 5 % and 95 % quantiles. A cell may take 120 seconds.\n\n"
            "![Fit time and NLL against rows](benchmarks/peers.svg)\n\n"
            f"{markdown(header, rows)}\n\n{verdict}"
        )

    def figures(self, records: Sequence[Record], directory: Path) -> list[Path]:
        """Fit time and NLL against rows."""
        points = [
            {"N": size_of(r["set"])["N"], "system": r["system"], **r["metrics"]}
            for r in _in_order(records)
        ]
        return [figures.peers(points, directory / "peers.svg")]


def _in_order(records: Sequence[Record]) -> list[Record]:
    """From few rows to many."""
    entrants = list(ENTRANTS)
    return sorted(records, key=lambda r: (size_of(r["set"])["N"], entrants.index(r["system"])))


EXPERIMENT = Peers()
