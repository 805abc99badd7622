"""tensorlace: regression on tables that knows how sure it is."""

from tensorlace import metrics, sources
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
from tensorlace.predictive import Mixture, Normal, Samples

__version__ = "0.1.0"

__all__ = [
    "ClusterError",
    "CurvatureWarning",
    "IllConditionedWarning",
    "InputError",
    "Mixture",
    "Normal",
    "Samples",
    "SizeError",
    "SourceError",
    "TNKMRegressor",
    "TensorlaceError",
    "metrics",
    "sources",
]
