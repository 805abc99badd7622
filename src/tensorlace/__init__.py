"""tensorlace: regression on tables that knows how sure it is."""

from tensorlace import kinds, metrics, sources
from tensorlace.errors import (
    ClusterError,
    CurvatureWarning,
    IllConditionedWarning,
    InputError,
    MisspecificationWarning,
    SizeError,
    SourceError,
    TensorlaceError,
    TimeBudgetWarning,
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
    "IllConditionedWarning",
    "InputError",
    "MisspecificationWarning",
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
    "TimeBudgetWarning",
    "kinds",
    "metrics",
    "sources",
]
