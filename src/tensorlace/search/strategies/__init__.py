"""Ways to search: every row held out once where rows are few, one part of many rows.

Imports from: scales, predictive, sources, likelihoods, rows, machines, fitting.
"""

__all__: list[str] = []
