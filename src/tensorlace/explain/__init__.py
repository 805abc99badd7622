"""What columns do to predictions (relevance, effects along the data), and a summary.

Imports from: predictive, kinds, sources, columns, machines.
"""

__all__: list[str] = []
