"""Errors and warnings of tensorlace: which quantity, how large it is and what to do."""

__all__ = [
    "ClusterError",
    "CompilerError",
    "CurvatureWarning",
    "IllConditionedWarning",
    "InputError",
    "MisspecificationWarning",
    "ModelFileError",
    "RowWeightWarning",
    "SizeError",
    "SourceError",
    "TensorlaceError",
    "TimeBudgetWarning",
    "UnknownNameError",
]


class TensorlaceError(Exception):
    """Base of all errors raised on purpose by tensorlace."""


class InputError(TensorlaceError, ValueError):
    """A value handed in cannot be used as it is."""


class UnknownNameError(InputError, KeyError):
    """A name that no member of its registry has."""

    __str__ = Exception.__str__  # that of KeyError shows the message quoted


class SizeError(TensorlaceError, ValueError):
    """A model of the requested size would not fit in memory."""


class IllConditionedWarning(UserWarning):
    """Normal equations lost all digits: the weights are one of many that fit equally well."""


class TimeBudgetWarning(UserWarning):
    """A search took far longer than its budget and was cut short."""


class RowWeightWarning(UserWarning):
    """Weights of rows sum to something far from the number of rows, and were scaled."""


class CurvatureWarning(UserWarning):
    """The Hessian has directions without positive curvature; the posterior leaves them out."""


class MisspecificationWarning(UserWarning):
    """Held-out targets contradict the predictive distributions."""


class SourceError(TensorlaceError, OSError):
    """Rows cannot be read: a file is missing, damaged, changed, or holds what is no number."""


class ClusterError(TensorlaceError, RuntimeError):
    """A cluster cannot do the work."""


class CompilerError(TensorlaceError, RuntimeError):
    """The compiled engine cannot be built or loaded here."""


class ModelFileError(TensorlaceError, OSError):
    """A model cannot be saved, or a file is not a whole model that this version knows."""
