"""What a model file may hold: known classes, known attributes, and what must fit together.

A new frozen dataclass inside a fitted model is one more entry of `CLASSES`; a new field of
`FittedModel` or `FitRecord` is one more entry of `ATTRIBUTES` and of `state`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tensorlace import kinds
from tensorlace._types import Array
from tensorlace.columns import bases, warps
from tensorlace.columns.columns import Column, Columns
from tensorlace.columns.encoding import DayCodes, Encoding, LevelCodes, NumberCodes
from tensorlace.columns.rotation import Rotation
from tensorlace.columns.summaries import Frame
from tensorlace.errors import ModelFileError
from tensorlace.fitting.registry import BASES, CURVATURES, LIKELIHOODS, NETWORKS, WARPS
from tensorlace.kinds import Kind
from tensorlace.laplace import posterior
from tensorlace.laplace.curvature import GGN, BlockDiagonal, Diag, Full, Last
from tensorlace.likelihoods.gaussian import Gaussian
from tensorlace.machines.beyond.support import Support
from tensorlace.machines.distrusted import DistrustedRows
from tensorlace.machines.fitted import Convergence, Fitted
from tensorlace.machines.machine import KernelMachine
from tensorlace.machines.noise_model import NoiseModel
from tensorlace.machines.noises.registry import NOISES
from tensorlace.model_file.records import FittedProducts, MachineRecord
from tensorlace.model_file.type_check import conforms
from tensorlace.networks.additive import Additive
from tensorlace.networks.cpd import CPD
from tensorlace.networks.sum import Sum
from tensorlace.networks.tensor_train import TensorTrain
from tensorlace.predictive.checks import Check
from tensorlace.predictive.conformal import Calibration
from tensorlace.predictive.held_back import HeldBackTest
from tensorlace.scales import Scale
from tensorlace.scales.clip import Clip
from tensorlace.scales.log import Log
from tensorlace.scales.logit import Logit
from tensorlace.sources.reference_rows import ReferenceRows

__all__ = [
    "CHOSEN",
    "CLASSES",
    "INNER",
    "LATER_PARAMS",
    "OPTIONAL",
    "attributes",
    "check_state",
    "known_classes",
]

CLASSES: dict[str, type] = {
    cls.__name__: cls
    for cls in (
        *(kinds.Numeric, kinds.Categorical, kinds.Periodic, kinds.Datetime, kinds.Ordinal),
        *(Encoding, NumberCodes, LevelCodes, DayCodes),
        *(warps.Standardise, warps.MinMax, warps.Quantile, warps.Mixed),
        *(warps.Codes, warps.Cyclic, warps.Identity, Frame),
        *(bases.UnitPolynomial, bases.Polynomial, bases.Chebyshev, bases.Legendre),
        *(bases.Cosine, bases.Sine, bases.Fourier, bases.BSpline),
        *(bases.Indicator, bases.Levels, bases.Missing, bases.Subset),
        *(Column, Columns, Rotation),
        *(GGN, Full, BlockDiagonal, Diag, Last),
        *(posterior.Root, posterior.LowRank, posterior.Blocks, posterior.Diagonal),
        *(CPD, Additive, Sum, TensorTrain, Gaussian),
        *(family.noise for family in NOISES.values()),
        *(Check, Calibration, Convergence, DistrustedRows, HeldBackTest, Support),
        *(Clip, Log, Logit),
    )
} | {
    "Background": ReferenceRows,
    "Fitted": FittedProducts,
    "FittedNetwork": Fitted,
    "KernelMachine": MachineRecord,
}
"""Dataclasses by the name they have in files; see `known_classes` for those registered later."""

LATER_PARAMS: dict[str, Any] = {
    "likelihood": "gaussian",
    "network": "cpd",
    "weights": "auto",
    "extrapolation": "cautious",
    "time_limit": None,
    "target_scale": "auto",
    "target_range": None,
}
"""Arguments that the first version of files did not have, and what they were then. At that value
they are left out, so that earlier versions of tensorlace read the file."""

ATTRIBUTES: dict[str, Any] = {
    "n_features_in_": int,
    "feature_names_in_": np.ndarray,
    "kinds_": dict[str, Kind],
    "machines_": tuple[KernelMachine, ...],
    "weights_": Array,
    "noise_": NoiseModel,
    "noise_results_": Any,
    "check_": Check | None,
    "calibration_": Calibration | None,
    "search_results_": Any,
    "log_evidence_": float,
    "noise_precision_": float,
    "n_rows_": int,
    "n_iter_": int,
    "n_dropped_": int,
    "n_pruned_": int,
    "_encoding": Encoding,
    "_draw_seed": int,
    "_sharp": bool,
    "_background": ReferenceRows | None,
    "_relevance": Array | None,
    "_distrusted": DistrustedRows | None,
    "_held_back": HeldBackTest | None,
    "_scale": Scale,
}
"""Values of a fitted model and their types."""

CHOSEN: dict[str, Any] = {
    "cv_results_": dict[str, Any],
    "best_index_": int,
    "best_params_": dict[str, Any],
    "best_score_": float,
}
"""Values of a choice by cross-validation and their types."""

INNER = "best_estimator_"
"""The estimator inside of a cross-validated one."""

OPTIONAL = frozenset({"feature_names_in_", "_distrusted", "_held_back", "_scale"})
"""Values that some fitted models do not have."""


def known_classes() -> dict[str, type]:
    """`CLASSES` and those that have been registered since: bases, warps, networks and so on.

    A name that is taken stays with the class that had it first, so that no file changes its
    meaning; a model with a second class of the name cannot be saved.
    """
    known = dict(CLASSES)
    for registry in (BASES, WARPS, CURVATURES, NETWORKS, LIKELIHOODS):
        for cls in registry.classes():
            known.setdefault(cls.__name__, cls)
    for family in NOISES.values():
        known.setdefault(family.noise.__name__, family.noise)
    return known


def attributes(estimator: str) -> dict[str, Any]:
    """Values that a file has of a fitted estimator of a class, and their types."""
    return ATTRIBUTES if estimator == "TNKMRegressor" else CHOSEN


def check_state(estimator: str, state: Mapping[str, Any]) -> None:
    """Refuse the values of a fitted estimator if they do not fit together.

    Raises
    ------
    ModelFileError
        Naming the first value whose type or size is wrong.
    """
    for name, hint in attributes(estimator).items():
        if name in state and not conforms(state[name], hint):
            raise ModelFileError(f"{name} is of the wrong type: {type(state[name])}")
    for what, fits in (_facts if estimator == "TNKMRegressor" else _choice_facts)(state):
        if not fits:
            raise ModelFileError(f"{what} does not fit the rest of the model: the file is wrong")


def _facts(state: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Conditions on the values of a model; each may assume those before it."""
    D, machines, encoding = state["n_features_in_"], state["machines_"], state["_encoding"]
    names = state.get("feature_names_in_")
    if names is not None:
        yield "feature_names_in_", names.shape == (D,) and all(type(n) is str for n in names)
    columns = tuple(f"column {d}" for d in range(D)) if names is None else tuple(names)
    yield "kinds_", tuple(state["kinds_"]) == columns
    yield "_encoding", len(encoding.kinds) == len(encoding.codes) == D
    yield "kinds_", tuple(state["kinds_"].values()) == encoding.kinds
    for d, code in enumerate(encoding.codes):
        if isinstance(code, LevelCodes):
            places = sorted(code.numbers.values())
            yield f"_encoding.codes.{d}", places == list(range(len(places)))
    weights = state["weights_"]
    yield "weights_", len(machines) > 0 and weights.shape == (len(machines),)
    yield "weights_", np.all(weights >= 0.0) and abs(weights.sum() - 1.0) < 1e-9
    noise, rows, relevance = state["noise_"], state["_background"], state["_relevance"]
    yield "noise_", noise.valid
    for what, of in (("machines_", machines), ("noise_.machines", noise.machines)):
        for k, machine in enumerate(of):
            for part, fits in _machine_facts(machine, D):
                yield f"{what}.{k}.{part}", fits
    if rows is not None:
        n = len(rows.weight)
        yield "_background", rows.X.shape == (n, D) and rows.weight.shape == (n,)
    yield "_relevance", relevance is None or relevance.shape == (D,)
    distrusted = state.get("_distrusted")
    if distrusted is not None:
        n = len(distrusted.row)
        sizes = {a.shape for a in distrusted.table().values()}
        yield "_distrusted", sizes == {(n,)} and n <= distrusted.n_rows
    test = state.get("_held_back")
    yield "_held_back", test is None or test.valid
    yield "_scale", "_scale" not in state or state["_scale"].valid
    found = state["calibration_"]
    if found is not None:
        k = found.z.size
        yield "calibration_", found.z.shape == found.below.shape == found.upto.shape == (k,)
        yield "calibration_", k > 0 and found.n_rows > 0.0


def _choice_facts(state: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What must hold for every choice by cross-validation."""
    yield "best_index_", 0 <= state["best_index_"] < len(state["cv_results_"].get("params", ()))


def _machine_facts(machine: KernelMachine, n_columns: int) -> Iterator[tuple[str, Any]]:
    columns, fit = machine.columns, machine.fit
    rotation, D = columns.rotation, len(columns.columns)
    if rotation is not None:
        both = np.concatenate([rotation.which.ravel(), rotation.others.ravel()])
        K = len(rotation.which)
        yield "columns.rotation", sorted(both.tolist()) == list(range(n_columns))
        yield "columns.rotation", rotation.mean.shape == (K,) and rotation.matrix.ndim == 2
        yield "columns.rotation", rotation.matrix.shape[0] == K
        yield "columns", rotation.matrix.shape[1] + len(rotation.others) == D
    yield "columns", D > 0 and columns.n_columns == n_columns
    for d, column in enumerate(columns.columns):
        yield f"columns.columns.{d}", all(_warp_facts(column.warp))
    yield "target", machine.target.spread > 0.0
    yield "support", machine.support is None or machine.support.valid
    network = fit.network
    yield "fit.cores", network.is_consistent() and network.sizes == columns.sizes
    yield "fit.cores", network.n_weights > 0
    shapes = [V.shape for V in network.cores]
    yield "fit.gamma", [g.shape for g in fit.gamma] == shapes
    yield "fit.beta", fit.beta > 0.0
    yield "fit.degrees", fit.degrees > 2.0
    yield "fit.curvature", fit.curvature.fits(len(network.cores))
    n_weights = [fit.cores[d].size for d in fit.bayesian_cores]
    yield "fit.posterior", fit.posterior.is_consistent(n_weights)


def _warp_facts(warp: warps.Warp) -> Iterator[Any]:
    frame = getattr(warp, "frame", None)
    if frame is not None:
        yield frame.low <= frame.high and 0.0 <= frame.width < 1.0
        yield abs(frame.exponent) < 2200  # as far as two floats can be apart
    if isinstance(warp, warps.Mixed):
        warp = warp.quantile
    if isinstance(warp, warps.Quantile):
        K = warp.knots.size
        yield K > 0 and warp.knots.shape == warp.heights.shape == (K,)
        yield np.all(np.diff(warp.knots) > 0.0) and np.all(np.diff(warp.heights) >= 0.0)
        yield warp.knots[0] >= 0.0 and warp.knots[-1] < 1.0
        yield warp.heights[0] >= 0.0 and warp.heights[-1] <= 1.0
    if isinstance(warp, warps.Codes):
        yield warp.values.ndim == 1 and np.all(np.diff(warp.values) > 0.0)
