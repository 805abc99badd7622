"""What columns do to predictions: averaged response, relevance, effects.

Imports from: predictive, kinds, sources, columns, networks, machines.
"""

__all__: list[str] = []
