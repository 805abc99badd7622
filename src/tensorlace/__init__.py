"""tensorlace: regression on tables that knows how sure it is."""

from tensorlace import kinds, metrics, sources
from tensorlace.effects import Effects
from tensorlace.effects_display import EffectsDisplay
from tensorlace.errors import (
    ClusterError,
    CurvatureWarning,
    IllConditionedWarning,
    InputError,
    SizeError,
    SourceError,
    TensorlaceError,
)
from tensorlace.estimators import TNKMRegressor
from tensorlace.kinds import Categorical, Datetime, Numeric, Ordinal, Periodic
from tensorlace.predictive import Mixture, Normal, Samples

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
    "Mixture",
    "Normal",
    "Numeric",
    "Ordinal",
    "Periodic",
    "Samples",
    "SizeError",
    "SourceError",
    "TNKMRegressor",
    "TensorlaceError",
    "kinds",
    "metrics",
    "sources",
]
