"""What the estimator's arguments may be."""

from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions

from tensorlace.fitting import registry
from tensorlace.machines.noises.registry import NOISES

__all__ = ["CONSTRAINTS", "PAPER"]

_AUTO = StrOptions({"auto"})

CONSTRAINTS: dict[str, Any] = {
    "likelihood": [StrOptions(set(registry.LIKELIHOODS))],
    "network": [StrOptions(set(registry.NETWORKS))],
    "rank": [Interval(Integral, 0, None, closed="left"), _AUTO],
    "n_basis": [Interval(Integral, 1, None, closed="left"), "array-like", _AUTO],
    "basis": [StrOptions(set(registry.BASES)), "array-like"],
    "warp": [StrOptions({"auto", *registry.WARPS}), "array-like"],
    "columns": [dict, None],
    "solver": [StrOptions({"auto", *registry.SOLVERS})],
    "curvature": [StrOptions(set(registry.CURVATURES))],
    "core": [Integral, None],
    "predictive": [StrOptions({"linearized", "sampled"})],
    "n_draws": [Interval(Integral, 2, None, closed="left")],
    "threshold": [Interval(Real, 0, None, closed="left"), None],
    "relative_threshold": ["boolean"],
    "noise": [StrOptions({"auto", *NOISES})],
    "noise_precision": [
        StrOptions(set(registry.POLICIES)),
        Interval(Real, 0, None, closed="neither"),
    ],
    "prior_precision": [
        StrOptions(set(registry.POLICIES)),
        Interval(Real, 0, None, closed="left"),
    ],
    "prior_groups": [StrOptions({"auto", *registry.GROUPS})],
    "n_members": [Interval(Integral, 1, None, closed="left"), _AUTO],
    "max_sweeps": [Interval(Integral, 1, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="left")],
    "random_state": ["random_state"],
    "n_jobs": [Integral, None],
    "additive": ["boolean", _AUTO],
    "rotate": ["boolean", _AUTO],
    "time_budget": [Interval(Real, 0, None, closed="neither"), None],
    "row_dtype": [StrOptions({"float64", "float32"})],
    "engine": [StrOptions(set(registry.ENGINES))],
    "grow_rows": [StrOptions({"auto"}), "boolean"],
    "memory_budget": [Interval(Integral, 0, None, closed="left")],
    "verbose": ["verbose"],
}

PAPER: dict[str, Any] = {
    "basis": "unit_polynomial",
    "warp": "standardise",
    "solver": "als",
    "curvature": "last",
    "core": -1,
    "noise_precision": "vi",
    "prior_precision": 1e-5,
    "prior_groups": "all",
    "max_sweeps": 50,
}
"""The configuration of Saiapin & Batselier (2026)."""
