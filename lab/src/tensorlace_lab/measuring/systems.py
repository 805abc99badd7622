"""Who is measured: a name becomes a function from training rows to predictive distributions."""

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from time import perf_counter, process_time
from typing import Any

from joblib import parallel_config

from tensorlace import metrics
from tensorlace._types import Array
from tensorlace.errors import InputError
from tensorlace.estimators.regressor import TNKMRegressor
from tensorlace.predictive.distributions import Distribution, Samples
from tensorlace_lab.measuring.data import Split
from tensorlace_lab.measuring.records import Record
from tensorlace_lab.paper import corrected, published

__all__ = [
    "LEVELS",
    "OURS",
    "PROTOCOLS",
    "baselines",
    "result",
    "score",
    "system_named",
    "system_names",
]

System = Callable[[Split, int], tuple[Distribution, dict[str, Any]]]

OURS = "tnkm"
PROTOCOLS = ("published", "corrected", "default")
LEVELS = tuple(k / 20 for k in range(1, 20))
DRAWS = 300
"""Draws that the authors take intervals from."""


def baselines() -> Mapping[str, type]:
    """The other systems by name; none if they are not installed."""
    if find_spec("tensorlace.baselines") is None:
        return {}
    module = import_module("tensorlace.baselines")
    found: Mapping[str, type] = getattr(module, "SYSTEMS", {})
    return found


def system_names() -> tuple[str, ...]:
    """Every system there is, ours first."""
    return (OURS, *baselines())


def system_named(name: str, protocol: str) -> System:
    """Look up a system. The protocol says which of ours, and is "default" for all others."""
    if name == OURS:
        if protocol not in PROTOCOLS:
            raise InputError(f"protocol {protocol!r} is not known: choose from {PROTOCOLS}")
        return {"published": _published, "corrected": _corrected, "default": _default}[protocol]
    others = baselines()
    if name not in others:
        raise InputError(f"system {name!r} is not known: choose from {', '.join(system_names())}")
    return partial(_baseline, others[name])


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


def result(split: Split, name: str, protocol: str, number: int) -> Record:
    """Fit a system to a split and score it: metrics, scale of the target, what was chosen."""
    system = system_named(name, protocol)
    # fit and predict: not the imports before, nor the scores after
    start, processor = perf_counter(), process_time()
    dist, about = system(split, number)
    spent = {"seconds": perf_counter() - start, "processor_seconds": process_time() - processor}
    found = score(split.y_test, dist, draws=DRAWS if protocol == "published" else None)
    about = {"scale": split.scale, "n_train": len(split.y), "about": about}
    return {"metrics": found, **spent, **about}


def _published(split: Split, _: int) -> tuple[Distribution, dict[str, Any]]:
    return published.reproduce(split.X, split.y, split.X_test)


def _corrected(split: Split, _: int) -> tuple[Distribution, dict[str, Any]]:
    return corrected.select(split.X, split.y, split.X_test, n_jobs=1)


def _default(split: Split, number: int) -> tuple[Distribution, dict[str, Any]]:
    with parallel_config(backend="threading"):  # the time and memory of this process are counted
        model = TNKMRegressor(rank="auto", random_state=number).fit(split.X, split.y)
    about = {"members": len(model.machines_), "log_evidence": model.log_evidence_}
    return model.predict_dist(split.X_test), about


def _baseline(cls: type, split: Split, number: int) -> tuple[Distribution, dict[str, Any]]:
    seed = {"random_state": number} if "random_state" in signature(cls).parameters else {}
    model = cls(**seed).fit(split.X, split.y)
    return model.predict_dist(split.X_test), {}
