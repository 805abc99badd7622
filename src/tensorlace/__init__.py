"""tensorlace: regression on tables that knows how sure it is."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tensorlace._version import __version__

if TYPE_CHECKING:
    from tensorlace import kinds, metrics, sources
    from tensorlace.displays.effects import EffectsDisplay
    from tensorlace.errors import (
        ClusterError,
        CurvatureWarning,
        IllConditionedWarning,
        InputError,
        MisspecificationWarning,
        ModelFileError,
        SizeError,
        SourceError,
        TensorlaceError,
        TimeBudgetWarning,
    )
    from tensorlace.estimators import TNKMRegressor
    from tensorlace.estimators.regressor_cv import TNKMRegressorCV
    from tensorlace.explain.effects import Effects
    from tensorlace.kinds import Categorical, Datetime, Numeric, Ordinal, Periodic
    from tensorlace.model_file.files import load, save
    from tensorlace.predictive.distributions import Mixture, Normal, Samples
    from tensorlace.predictive.transformed import Transformed

__all__ = [
    "Categorical",
    "ClusterError",
    "CurvatureWarning",
    "Datetime",
    "Effects",
    "EffectsDisplay",
    "IllConditionedWarning",
    "InputError",
    "MisspecificationWarning",
    "Mixture",
    "ModelFileError",
    "Normal",
    "Numeric",
    "Ordinal",
    "Periodic",
    "Samples",
    "SizeError",
    "SourceError",
    "TNKMRegressor",
    "TNKMRegressorCV",
    "TensorlaceError",
    "TimeBudgetWarning",
    "Transformed",
    "__version__",
    "kinds",
    "load",
    "metrics",
    "save",
    "sources",
]


_ERRORS = {name for name in __all__ if name.endswith(("Error", "Warning"))}
_WHERE = {
    **dict.fromkeys(_ERRORS, "errors"),
    **dict.fromkeys(("Categorical", "Datetime", "Numeric", "Ordinal", "Periodic"), "kinds"),
    **dict.fromkeys(("Mixture", "Normal", "Samples", "Transformed"), "predictive"),
    **dict.fromkeys(("load", "save"), "model_file"),
    "TNKMRegressor": "estimators",
    "TNKMRegressorCV": "estimators.regressor_cv",
    "Effects": "explain.effects",
    "EffectsDisplay": "displays.effects",
}
"""Module of each name. They are imported when asked for: the core then starts without scikit-learn,
which takes longer to import than many a fit takes."""


def __getattr__(name: str) -> Any:
    """Import what is asked for."""
    if name in _WHERE:
        value = getattr(import_module(f"tensorlace.{_WHERE[name]}"), name)
    elif name in __all__:
        value = import_module(f"tensorlace.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """What there is, imported or not."""
    return sorted({*globals(), *__all__})
