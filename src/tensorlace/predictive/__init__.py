"""Predictive distributions, and what observed targets say about them.

Imports from: scales.
"""

from tensorlace.predictive.distributions import Distribution, Mixture, Normal, Samples
from tensorlace.predictive.transformed import Transformed

__all__ = ["Distribution", "Mixture", "Normal", "Samples", "Transformed"]
