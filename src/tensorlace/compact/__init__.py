"""Smaller models: fewer members, directions and knots."""

from tensorlace.compact.compaction import Deviation, compact, deviation, n_bytes

__all__ = ["Deviation", "compact", "deviation", "n_bytes"]
