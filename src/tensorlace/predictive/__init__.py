"""Predictive distributions and what targets say about them."""

from tensorlace.predictive.distributions import Distribution, Mixture, Normal, Samples

__all__ = ["Distribution", "Mixture", "Normal", "Samples"]
