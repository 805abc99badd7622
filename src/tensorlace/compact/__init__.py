"""Smaller models: fewer members, directions and knots.

Imports from: predictive, columns, networks, laplace, machines, explain.
"""

from tensorlace.compact.compaction import Deviation, compact, deviation, n_bytes

__all__ = ["Deviation", "compact", "deviation", "n_bytes"]
