"""Estimators by the names they have in model files."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from tensorlace.machines.fitted_model import FittedModel

__all__ = ["MODULES", "default_arguments", "estimator_named", "holding"]

MODULES: Mapping[str, str] = {
    "TNKMRegressor": "tensorlace.estimators.regressor",
    "TNKMRegressorCV": "tensorlace.estimators.regressor_cv",
}
"""Module of each estimator, imported when it is asked for."""


def estimator_named(name: str) -> type[Any]:
    """Class of an estimator of `MODULES`."""
    found: type[Any] = getattr(import_module(MODULES[name]), name)
    return found


def default_arguments(name: str) -> dict[str, Any]:
    """Arguments of an estimator of `MODULES` that is given none."""
    defaults: dict[str, Any] = estimator_named(name)().get_params(deep=False)
    return defaults


def holding(model: FittedModel) -> Any:
    """Estimator of the class and with the arguments of its record that holds a fitted model.

    Raises
    ------
    ValueError or TypeError
        If the estimator cannot have these arguments.
    """
    return estimator_named(model.record.estimator)(**model.record.arguments).with_model(model)
