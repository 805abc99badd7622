"""The most probable weights: alternating least squares, Gauss-Newton, matrix-free.

Imports from: linalg, networks, rows.
"""

__all__: list[str] = []
