"""What the estimator's arguments may be."""

from numbers import Integral, Real
from typing import Any, final

from sklearn.utils._param_validation import Interval, StrOptions

from tensorlace._registry import Registry
from tensorlace.fitting.registry import (
    BASES,
    CURVATURES,
    ENGINES,
    GROUPS,
    LIKELIHOODS,
    NETWORKS,
    POLICIES,
    SOLVERS,
    WARPS,
)
from tensorlace.machines.noises.registry import NOISES
from tensorlace.scales.registry import SCALES
from tensorlace.sources.weighting import MEANINGS

__all__ = ["CONSTRAINTS", "PAPER"]

_AUTO = StrOptions({"auto"})


@final
class _Names(StrOptions):
    """Names in a registry at the time of the check, and perhaps "auto"."""

    def __init__(self, registry: Registry[Any], *, auto: bool = False) -> None:
        self._registry, self._also = registry, ["auto"] if auto else []
        super().__init__(set(self._also) | set(registry))

    @property
    def options(self) -> set[str]:
        """What is allowed now."""
        return {*self._also, *self._registry}

    @options.setter
    def options(self, value: set[str]) -> None:
        """Leave the registry to say it."""


CONSTRAINTS: dict[str, Any] = {
    "likelihood": [_Names(LIKELIHOODS)],
    "network": [_Names(NETWORKS)],
    "rank": [Interval(Integral, 0, None, closed="left"), _AUTO],
    "n_basis": [Interval(Integral, 1, None, closed="left"), "array-like", _AUTO],
    "basis": [_Names(BASES), "array-like"],
    "warp": [_Names(WARPS, auto=True), "array-like"],
    "columns": [dict, None],
    "solver": [_Names(SOLVERS, auto=True)],
    "curvature": [_Names(CURVATURES)],
    "core": [Integral, None],
    "predictive": [StrOptions({"linearized", "sampled"})],
    "n_draws": [Interval(Integral, 2, None, closed="left")],
    "threshold": [Interval(Real, 0, None, closed="left"), None],
    "relative_threshold": ["boolean"],
    "extrapolation": [StrOptions({"cautious", "plain"})],
    "target_scale": [_Names(SCALES, auto=True)],
    "target_range": ["array-like", None],
    "noise": [_Names(NOISES, auto=True)],
    "noise_precision": [
        _Names(POLICIES),
        Interval(Real, 0, None, closed="neither"),
    ],
    "prior_precision": [
        _Names(POLICIES),
        Interval(Real, 0, None, closed="left"),
    ],
    "prior_groups": [_Names(GROUPS, auto=True)],
    "n_members": [Interval(Integral, 1, None, closed="left"), _AUTO],
    "max_sweeps": [Interval(Integral, 1, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="left")],
    "random_state": ["random_state"],
    "weights": [StrOptions(set(MEANINGS))],
    "n_jobs": [Integral, None],
    "additive": ["boolean", _AUTO],
    "rotate": ["boolean", _AUTO],
    "time_budget": [Interval(Real, 0, None, closed="neither"), None],
    "time_limit": [Interval(Real, 0, None, closed="neither"), None],
    "row_dtype": [StrOptions({"float64", "float32"})],
    "engine": [_Names(ENGINES)],
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
    "extrapolation": "plain",
    "target_scale": "identity",
    "noise": "gaussian",
    "max_sweeps": 50,
}
"""The configuration of Saiapin & Batselier (2026)."""
