"""Progress lines and warnings of a fit."""

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from tensorlace._types import Array
from tensorlace.errors import (
    CurvatureWarning,
    IllConditionedWarning,
    MisspecificationWarning,
    TimeBudgetWarning,
)
from tensorlace.fitting.fit_network import Progress
from tensorlace.machines.fitted import Fitted
from tensorlace.predictive.checks import Check, check
from tensorlace.predictive.distributions import Distribution
from tensorlace.predictive.transformed import seen_through
from tensorlace.scales import Scale
from tensorlace.solvers.solver import Info

__all__ = [
    "FAR",
    "as_frame",
    "as_table",
    "checked",
    "progress_printer",
    "warn_about",
    "warn_cut_short",
    "warn_unfinished",
]

_TO_CALLER_OF_FIT = 6
_QUIET_SECONDS = 2.0

FAR = 1.0
"""Newton decrement above which a member counts as stopped early. decisions.md#convergence"""

FAR_SHARE = 0.5
"""Share of such members in a mixture above which a fit warns. decisions.md#convergence"""

_CHECK_FROM = 50
"""Fewest held-out rows that predictions are compared with."""


def progress_printer(
    member: int,
    *,
    verbose: int,
    n_members: int,
    n_rows: int,
    max_steps: int,
    clock: Callable[[], float] = perf_counter,
) -> Progress | None:
    """Print a line per step (``verbose=2``), or one every two seconds, to standard error."""
    if not verbose:
        return None
    started = last = clock()
    seen = 0  # steps that were not made here but found in a checkpoint
    first = True

    def report(step: int, info: Info, beta: float) -> None:
        nonlocal last, seen, first
        now = clock()
        if first:
            seen, first = step - 1, False
        if int(verbose) == 1 and now - last < _QUIET_SECONDS:
            return
        last = now
        pace = (now - started) / (step - seen)
        who = f"member {member + 1}/{n_members} " if n_members > 1 else ""
        print(
            f"[tensorlace] {who}step {step}/{max_steps}  objective {info.objective:.8g}  "
            f"gradient {info.gradient:.1e}  noise std {beta**-0.5:.4g}  "
            f"{_count(n_rows / max(pace, 1e-9))} rows/s  "
            f"at most {_duration(pace * (max_steps - step))} left",
            file=sys.stderr,
            flush=True,
        )

    return report


def _count(x: float) -> str:
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if x >= size:
            return f"{x / size:.3g} {unit}"
    return f"{x:.3g}"


def _duration(seconds: float) -> str:
    """Duration in seconds, minutes or hours."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, hours = whole // 60, whole // 3600
    return f"{minutes}:{whole % 60:02d} min" if not hours else f"{hours}:{minutes % 60:02d} h"


def as_frame(results: list[dict[str, Any]]) -> Any:
    """Rows of results as a data frame where pandas is installed; else as they are."""
    if not results:
        return None
    try:
        import pandas as pd
    except ImportError:
        return results
    return pd.DataFrame(results)


def as_table(columns: Mapping[str, Any]) -> Any:
    """Columns as a data frame where pandas is installed; else as a dict of arrays."""
    try:
        import pandas as pd
    except ImportError:
        return dict(columns)
    return pd.DataFrame(columns)


def checked(unseen: tuple[Distribution, Array, Array | None] | None, scale: Scale) -> Check | None:
    """Compare targets of unseen rows with their predictions; warn if these are contradicted.

    They were held out of the fits or, where rows are many, left out of each in closed form.
    """
    if unseen is None or len(unseen[1]) < _CHECK_FROM:
        return None
    dist, u, weight = unseen
    found = check(scale.forward(u), seen_through(dist, scale), sample_weight=weight)
    if found.contradicted:
        _warn(MisspecificationWarning, f"on rows held out or left out, {found.message}")
    return found


def warn_about(fits: Sequence[Fitted], *, tol: float, full: bool) -> None:
    """Warn of a MAP that was not reached, singular normal equations and dropped directions."""
    worst = max(fits, key=lambda f: f.gradient)
    if worst.gradient > tol:
        _warn(
            ConvergenceWarning,
            f"the MAP was not reached in {worst.n_steps} steps: relative gradient "
            f"{worst.gradient:.1e} > tol={tol:g}. Raise max_sweeps or tol, or give the weights a "
            f"stronger prior",
        )
    rcond = min(f.rcond for f in fits)
    if rcond < np.finfo(float).eps:
        _warn(
            IllConditionedWarning,
            f"normal equations are singular to working precision (reciprocal condition "
            f"{rcond:.1e}): use an orthogonal basis such as 'chebyshev', fewer basis functions, or "
            f"prior_precision > 0",
        )
    dropped = sum(f.posterior.n_dropped for f in fits)
    if full and dropped:
        _warn(
            CurvatureWarning,
            f"the full Hessian has {dropped} directions without positive curvature; they count as "
            f"certain. curvature='ggn' has none",
        )


def warn_unfinished(fits: Sequence[Fitted], shares: Array) -> None:
    """Warn where most of a mixture, by ``shares`` (M,), may still move by as much as it is sure."""
    known = [(f.convergence, share) for f, share in zip(fits, shares, strict=True)]
    far = [(c.decrement, share) for c, share in known if c is not None and c.decrement > FAR]
    counted = sum(share for _, share in far) / float(np.sum(shares))
    if counted > FAR_SHARE:
        most = max(decrement for decrement, _ in far)
        _warn(
            ConvergenceWarning,
            f"members that count {counted:.0%} were stopped early: their next step may move "
            f"predictions by up to {most:.2g} standard deviations of the model's own uncertainty. "
            f"Give a larger time_budget, or a number for rank",
        )


def warn_cut_short(what: str) -> None:
    """Warn of what the clock or an interrupt has ended."""
    _warn(TimeBudgetWarning, what)


def _warn(kind: type[Warning], text: str) -> None:
    warnings.warn(text, kind, stacklevel=_TO_CALLER_OF_FIT)
