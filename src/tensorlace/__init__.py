"""tensorlace: regression on tables that knows how sure it is."""

from tensorlace import kinds, metrics, sources
from tensorlace.errors import (
    ClusterError,
    CurvatureWarning,
    IllConditionedWarning,
    InputError,
    ModelFileError,
    SizeError,
    SourceError,
    TensorlaceError,
)
from tensorlace.estimators import TNKMRegressor
from tensorlace.kinds import Categorical, Datetime, Numeric, Ordinal, Periodic
from tensorlace.model_file import load, save
from tensorlace.predictive import Mixture, Normal, Samples

__version__ = "0.1.0"

__all__ = [
    "Categorical",
    "ClusterError",
    "CurvatureWarning",
    "Datetime",
    "IllConditionedWarning",
    "InputError",
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
    "TensorlaceError",
    "kinds",
    "load",
    "metrics",
    "save",
    "sources",
]
