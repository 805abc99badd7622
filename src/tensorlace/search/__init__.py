"""``rank="auto"``: candidates, their cost, trials, mixture weights, noise and widths.

imports from: fitting, machines, predictive, rows, solvers, laplace, columns, sources, metrics
"""

__all__: list[str] = []
