"""From a raw column to features: encoding, summaries, warps, rotation, bases.

Imports from: portable, kinds, sources.
"""

__all__: list[str] = []
