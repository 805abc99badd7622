"""One safe model file: no pickle, checksummed, whole or refused.

Imports from: scales, predictive, kinds, sources, likelihoods, columns, networks, laplace, machines,
fitting, explain, estimators.
"""

from tensorlace.model_file.files import describe, load, save

__all__ = ["describe", "load", "save"]
