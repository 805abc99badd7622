"""Scales of the target: what a model adds up on, and the values that y can have.

Imports from: portable.
"""

from tensorlace.scales.identity import IDENTITY
from tensorlace.scales.scale import Scale

__all__ = ["IDENTITY", "Scale"]
