"""Predictive distributions, and what observed targets say about them.

Imports from: no other room.
"""

from tensorlace.predictive.distributions import Distribution, Mixture, Normal, Samples

__all__ = ["Distribution", "Mixture", "Normal", "Samples"]
