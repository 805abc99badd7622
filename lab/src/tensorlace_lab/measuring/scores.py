"""Fit, predict and score a system on a split."""

from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

from tensorlace import TNKMRegressor, metrics
from tensorlace._types import Array
from tensorlace.predictive.distributions import Distribution, Samples
from tensorlace_lab.measuring.cells import Record
from tensorlace_lab.measuring.data import Split
from tensorlace_lab.systems import SYSTEMS

__all__ = ["LEVELS", "OURS", "System", "compared", "default", "score", "scored"]

System = Callable[[Split, int], tuple[Distribution, dict[str, Any]]]
"""From a split and its number to predictions of the test rows, and what was chosen."""

OURS = "tnkm"
LEVELS = tuple(k / 20 for k in range(1, 20))


def score(y: Array, dist: Distribution, *, draws: int | None = None) -> dict[str, Any]:
    """All scores, and the coverage at each of `LEVELS`.

    With ``draws`` the intervals are those of that many draws, as the authors have it.
    """
    intervals: Distribution = dist
    if draws is not None:
        intervals = Samples(dist.sample(draws, 13).T)
    names = ("ecp95", "wcpi95", "rce")
    return {
        **metrics.summary(y, dist),
        **{name: metrics.summary(y, intervals)[name] for name in names},
        "coverages": [metrics.coverage(y, intervals, level) for level in LEVELS],
    }


def scored(system: System, split: Split, number: int, *, draws: int | None = None) -> Record:
    """Fit a system to a split and score it: metrics, scale of the target, what was chosen.

    Seconds are of fitting and predicting: not of the imports before, nor of the scores after.
    """
    start, processor = perf_counter(), process_time()
    dist, about = system(split, number)
    spent = {"seconds": perf_counter() - start, "processor_seconds": process_time() - processor}
    found = score(split.y_test, dist, draws=draws)
    return {
        "metrics": found,
        **spent,
        "scale": split.scale,
        "n_train": len(split.y),
        "about": about,
    }


def default(**settings: Any) -> System:
    """The default of tensorlace, with other settings where they are given."""

    def fitted(split: Split, number: int) -> tuple[Distribution, dict[str, Any]]:
        model = TNKMRegressor(random_state=number, **settings).fit(split.X, split.y)
        best = model.search_results_.iloc[0].to_dict()
        chosen = ("rank", "n_basis", "warp", "lengthscale", "additive", "rotate")
        return model.predict_dist(split.X_test), {
            "best": {key: best[key] for key in chosen},
            "members": len(model.machines_),
            "noise": model.noise_.kind,
            "log_evidence": model.log_evidence_,
        }

    return fitted


def fixed(**settings: Any) -> System:
    """One model of a given size, by the estimator."""

    def fitted(split: Split, number: int) -> tuple[Distribution, dict[str, Any]]:
        model = TNKMRegressor(random_state=number, **settings).fit(split.X, split.y)
        return model.predict_dist(split.X_test), {
            "steps": model.n_iter_,
            "log_evidence": model.log_evidence_,
        }

    return fitted


def compared(name: str) -> System:
    """A compared system, as it comes."""

    def fitted(split: Split, number: int) -> tuple[Distribution, dict[str, Any]]:
        model = SYSTEMS[name](random_state=number).fit(split.X, split.y)
        return model.predict_dist(split.X_test), {}

    return fitted
