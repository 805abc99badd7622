"""The most probable weights: alternating least squares, Gauss-Newton, matrix-free."""

__all__: list[str] = []
