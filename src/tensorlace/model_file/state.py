"""A fitted model as the named values of a model file, and back.

The names are those of attributes that estimators had when the format was made.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tensorlace.machines.ensemble import Ensemble
from tensorlace.machines.fitted_model import FitRecord, FittedModel
from tensorlace.scales import IDENTITY

__all__ = ["model_of", "state_of"]

_RECORD = {
    "noise_results_": "noise_results",
    "check_": "check",
    "search_results_": "search_results",
    "log_evidence_": "log_evidence",
    "noise_precision_": "noise_precision",
    "n_rows_": "n_rows",
    "n_iter_": "n_iter",
    "n_dropped_": "n_dropped",
    "n_pruned_": "n_pruned",
    "_draw_seed": "draw_seed",
    "_relevance": "relevance",
}
"""Names in files of the fields of `FitRecord`."""


def state_of(model: FittedModel) -> dict[str, Any]:
    """Values by the names they have in files."""
    state = {name: getattr(model.record, field) for name, field in _RECORD.items()}
    if model.feature_names is not None:
        state["feature_names_in_"] = np.array(model.feature_names, dtype=object)
    if model.record.distrusted is not None:
        state["_distrusted"] = model.record.distrusted
    if model.record.held_back is not None:
        state["_held_back"] = model.record.held_back
    if not model.scale.trivial:
        state["_scale"] = model.scale
    return state | {
        "n_features_in_": model.n_columns,
        "kinds_": model.kinds,
        "machines_": model.machines,
        "weights_": model.weights,
        "noise_": model.noise,
        "calibration_": model.calibration,
        "_encoding": model.encoding,
        "_sharp": model.ensemble.sharp,
        "_background": model.rows,
    }


def model_of(estimator: str, arguments: Mapping[str, Any], state: Mapping[str, Any]) -> FittedModel:
    """Fitted model from the name and arguments of its estimator and the values of a file."""
    names = state.get("feature_names_in_")
    return FittedModel(
        state["_encoding"],
        Ensemble(state["machines_"], state["weights_"], state["_sharp"], state["noise_"]),
        state["_background"],
        FitRecord(
            estimator=estimator,
            arguments=dict(arguments),
            **{field: state[name] for name, field in _RECORD.items()},
            distrusted=state.get("_distrusted"),
            held_back=state.get("_held_back"),
        ),
        None if names is None else tuple(names),
        state["calibration_"],
        scale=state.get("_scale", IDENTITY),
    )
