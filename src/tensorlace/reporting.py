"""What a fit says while it runs and when it ends."""

import sys
import warnings
from collections.abc import Sequence

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from tensorlace.errors import CurvatureWarning, IllConditionedWarning
from tensorlace.inference import Fitted, Progress
from tensorlace.solver import Info

__all__ = ["progress_printer", "warn_about"]

_TO_CALLER_OF_FIT = 6


def progress_printer(member: int, *, verbose: int, n_members: int) -> Progress | None:
    """Print a line per ten steps (``verbose=1``) or per step to standard error."""
    if not verbose:
        return None
    every = 10 if int(verbose) == 1 else 1

    def report(step: int, info: Info, beta: float) -> None:
        if step % every == 0:
            print(
                f"[tensorlace] member {member + 1}/{n_members} step {step} "
                f"objective {info.objective:.8g} gradient {info.gradient:.1e} "
                f"noise std {beta**-0.5:.4g}",
                file=sys.stderr,
            )

    return report


def warn_about(fits: Sequence[Fitted], *, tol: float, full: bool) -> None:
    """Give one warning for each thing that did not go well."""
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


def _warn(kind: type[Warning], text: str) -> None:
    warnings.warn(text, kind, stacklevel=_TO_CALLER_OF_FIT)
