"""From a curvature to a posterior; noise and prior precisions; evidence.

Imports from: portable, linalg, networks, rows, solvers.
"""

__all__: list[str] = []
