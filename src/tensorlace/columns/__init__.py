"""From a raw column to features: encoding, summaries, warps, rotation, bases.

Imports from: kinds, portable, sources.
"""

__all__: list[str] = []
