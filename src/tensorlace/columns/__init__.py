"""From a raw column to features: encoding, summaries, warps, rotation, bases.

Imports from: kinds, sources.
"""

__all__: list[str] = []
