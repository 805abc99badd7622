"""What columns do to predictions (averaged response, relevance, effects), and a summary.

Imports from: predictive, kinds, sources, columns, machines.
"""

__all__: list[str] = []
