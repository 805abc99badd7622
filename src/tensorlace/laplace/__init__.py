"""From a curvature to a posterior; noise and prior precisions; evidence."""

__all__: list[str] = []
