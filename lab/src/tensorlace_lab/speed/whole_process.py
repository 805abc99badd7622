"""Import and first fit by three systems, each called in a process of its own.

Nothing but the standard library is imported before a function is called: imports are timed.
"""

import os
from time import perf_counter
from typing import Any

__all__ = ["core", "tensorlace", "tnkm"]

SEED, D, SWEEPS, BETA, GAMMA = 0, 8, 10, 1.0, 1e-2


def tensorlace(rows: int, I: int, R: int) -> dict[str, float]:
    """Ten sweeps and the posterior of the last core, as a user would ask for them."""
    started = perf_counter()
    import sklearn.base  # noqa: F401

    sklearn_s = perf_counter() - started
    from tensorlace import TNKMRegressor

    imported = perf_counter()
    X, y = _table(rows)
    model = TNKMRegressor(**_arguments(I, R), random_state=SEED).fit(X, y)
    sweeps = len(model.machines_[0].fit.history)
    return {**_seconds(started, imported, sweeps), "sklearn_s": sklearn_s}


def core(rows: int, I: int, R: int) -> dict[str, float]:
    """The same by the functions below the estimator, which do not import scikit-learn."""
    started = perf_counter()
    from tensorlace.fitting.config import Config
    from tensorlace.fitting.fit_machines import fit_machines
    from tensorlace.sources import ArraySource

    imported = perf_counter()
    table = ArraySource(*_table(rows))
    config = Config.of({**_REST, **_arguments(I, R)}, D)
    (machine,) = fit_machines(config, table, seeds=[SEED], threads=os.cpu_count() or 1)
    return _seconds(started, imported, len(machine.fit.history))


def _arguments(I: int, R: int) -> dict[str, Any]:
    return {
        "rank": R,
        "n_basis": I,
        "basis": "unit_polynomial",
        "warp": "standardise",
        "solver": "als",
        "curvature": "last",
        "core": -1,
        "noise_precision": BETA,
        "prior_precision": GAMMA,
        "max_sweeps": SWEEPS,
        "tol": 1e-15,
        "grow_rows": False,
    }


_REST = {
    "threshold": None,
    "relative_threshold": False,
    "prior_groups": "auto",
    "additive": "auto",
    "rotate": "auto",
    "row_dtype": "float64",
    "engine": "numpy",
}
"""Arguments that the estimator has by default."""


def tnkm(rows: int, I: int, R: int) -> dict[str, float]:
    """Ten sweeps by the library's own training function, in double precision, without posterior."""
    started = perf_counter()
    os.environ["JAX_ENABLE_X64"] = "1"
    import jax.numpy as jnp
    from tnkm.features import PolyNormFeature, ProductFeatures
    from tnkm.models import CPKM
    from tnkm.optim import train_als

    imported = perf_counter()
    X, y = _table(rows)
    x, y = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
    features = ProductFeatures(tuple(PolyNormFeature(I, k_col=d) for d in range(D)))
    model = CPKM(features, rank=R, seed=SEED, dtype=jnp.float64)
    train_als(model, jnp.asarray(x), jnp.asarray(y), n_epoch=SWEEPS, gamma_w=GAMMA, beta_e=BETA)
    model.params[-1].block_until_ready()
    return _seconds(started, imported, SWEEPS)


def _table(rows: int) -> tuple[Any, Any]:
    import numpy as np

    rng = np.random.default_rng(SEED)
    X = rng.uniform(-1.5, 1.5, (rows, D))
    return X, np.sin(2 * X[:, 0]) * X[:, 1] + X[:, 2] ** 2 + 0.1 * rng.standard_normal(rows)


def _seconds(started: float, imported: float, sweeps: int) -> dict[str, float]:
    return {"import_s": imported - started, "fit_s": perf_counter() - imported, "sweeps": sweeps}
