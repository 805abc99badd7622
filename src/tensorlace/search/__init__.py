"""``rank="auto"``: which models are tried, in which order, and how the best are mixed.

Imports from: scales, linalg, predictive, kinds, sources, likelihoods, columns, rows, solvers,
laplace, machines, fitting.
"""

__all__: list[str] = []
