"""tensorlace: regression on tables that knows how sure it is."""

from typing import TYPE_CHECKING, Any

from tensorlace import kinds, metrics, sources
from tensorlace.effects import Effects
from tensorlace.effects_display import EffectsDisplay
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
from tensorlace.kinds import Categorical, Datetime, Numeric, Ordinal, Periodic
from tensorlace.model_file import load, save
from tensorlace.predictive import Mixture, Normal, Samples

if TYPE_CHECKING:
    from tensorlace.cross_validation import TNKMRegressorCV

__version__ = "0.1.0"

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
    "kinds",
    "load",
    "metrics",
    "save",
    "sources",
]


def __getattr__(name: str) -> Any:
    """Import what takes long to import when it is asked for."""
    if name == "TNKMRegressorCV":
        from tensorlace.cross_validation import TNKMRegressorCV

        return TNKMRegressorCV
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
