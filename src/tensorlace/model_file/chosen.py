"""A model that cross-validation chose, as a node of a model file, and back.

The node holds the arguments of `TNKMRegressorCV`, those of its estimator as ``estimator__rank``,
..., what the choice was made by, and the node of the best estimator. Files that were made when
`TNKMRegressorCV` had the arguments of the model among its own are read too.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from tensorlace.errors import ModelFileError
from tensorlace.estimators.registry import default_arguments, estimator_named
from tensorlace.machines.fitted_model import HoldsModel
from tensorlace.model_file.codec import Decoder, Encoder
from tensorlace.model_file.schema import (
    ATTRIBUTES,
    CHOSEN,
    INNER,
    LATER_PARAMS,
    OPTIONAL,
    check_state,
)
from tensorlace.model_file.state import model_of

__all__ = ["CHOOSER", "chosen_model", "chosen_node"]

CHOOSER = "TNKMRegressorCV"
"""Class of the estimator that chooses."""

_ESTIMATOR = "estimator"
_OF_ESTIMATOR = f"{_ESTIMATOR}__"

_FIRST_OWN = frozenset({"ranks", "n_bases", "thresholds", "max_weights", "n_splits", "n_repeats"})
"""Arguments of the choice in the first files; ``curvature`` was one of both, or several."""

_FIRST_SHARED = frozenset({"random_state", "n_jobs", "verbose"})
"""Arguments in the first files that the choice and the model had in common."""


def chosen_node(model: Any, encoder: Encoder, inner: Mapping[str, Any]) -> dict[str, Any]:
    """A fitted `TNKMRegressorCV` as JSON, around the node of its best estimator."""
    params = {
        name: value
        for name, value in model.get_params(deep=True).items()
        if not isinstance(value, HoldsModel) and not _as_before(name, value)
    }
    state = {name: getattr(model, name) for name in CHOSEN}
    return {
        "class": CHOOSER,
        "params": {k: encoder.encode(v, k) for k, v in sorted(params.items())},
        "state": {**{k: encoder.encode(v, k) for k, v in sorted(state.items())}, INNER: inner},
    }


def chosen_model(content: Mapping[str, Any], decoder: Decoder, best: Any) -> Any:
    """The `TNKMRegressorCV` of a node, around its best estimator.

    Raises
    ------
    ModelFileError
        If the node is not one of a fitted `TNKMRegressorCV`.
    """
    params = {name: decoder.decode(node, name) for name, node in content["params"].items()}
    state = {
        name: decoder.decode(node, name) for name, node in content["state"].items() if name != INNER
    }
    if "curvature" in params:
        model_state = {name: value for name, value in state.items() if name not in CHOSEN}
        state = {name: value for name, value in state.items() if name in CHOSEN}
        params, best = _first_version(params, model_state, best)
    _check_names(params, state)
    check_state(CHOOSER, state)
    estimator = None
    if _ESTIMATOR not in params:
        estimator = estimator_named("TNKMRegressor")()
    try:
        model = estimator_named(CHOOSER)(estimator).set_params(**params)
        for name, value in {**state, INNER: best}.items():
            setattr(model, name, value)
        return model.with_model(best.fitted_model())
    except (ValueError, TypeError) as error:
        raise ModelFileError(str(error)) from error


def _check_names(params: Mapping[str, Any], state: Mapping[str, Any]) -> None:
    own = default_arguments(CHOOSER).keys()
    of_estimator = {_OF_ESTIMATOR + name for name in default_arguments("TNKMRegressor")}
    expected = set(own) if _ESTIMATOR in params else (own - {_ESTIMATOR}) | of_estimator
    optional = {_OF_ESTIMATOR + name for name in LATER_PARAMS}
    wrong = (params.keys() ^ expected) - (optional - params.keys())
    wrong |= state.keys() ^ CHOSEN.keys()
    if params.get(_ESTIMATOR) is not None:
        wrong.add(_ESTIMATOR)
    _refuse(wrong)


def _refuse(names: Iterable[str]) -> None:
    if names:
        raise ModelFileError(f"{', '.join(sorted(names))[:200]}: unknown or missing")


def _as_before(name: str, value: Any) -> bool:
    """Whether an argument of the estimator has the value of files that do not know it."""
    plain = name.removeprefix(_OF_ESTIMATOR)
    return plain != name and plain in LATER_PARAMS and bool(value == LATER_PARAMS[plain])


def _first_version(
    params: Mapping[str, Any], state: Mapping[str, Any], best: Any
) -> tuple[dict[str, Any], Any]:
    """Arguments of today from those of the first files, and the estimator that they predict by.

    In them the model itself stood twice, and a calibration in the outer one only.
    """
    of_model = {k: v for k, v in params.items() if k not in _FIRST_OWN | _FIRST_SHARED}
    defaults = default_arguments("TNKMRegressor")
    _refuse((of_model.keys() - defaults.keys()) | ((state.keys() ^ ATTRIBUTES.keys()) - OPTIONAL))
    check_state("TNKMRegressor", state)
    curvature = of_model.pop("curvature")
    curvatures = [curvature] if isinstance(curvature, str) else list(curvature)
    shared = {name: params[name] for name in _FIRST_SHARED & params.keys()}
    own = {name: params[name] for name in _FIRST_OWN & params.keys()}
    estimator = {**defaults, **of_model, **shared, "curvature": (curvatures or ["last"])[0]}
    outer = model_of("TNKMRegressor", best.get_params(deep=False), state)
    now = {**own, **shared, "curvatures": curvatures}
    return now | {_OF_ESTIMATOR + k: v for k, v in estimator.items()}, best.with_model(outer)
