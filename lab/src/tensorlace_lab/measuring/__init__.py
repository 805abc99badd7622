"""One cell format, one resumable runner, timing in fresh processes, splits, scores and tests.

Imports from: datasets, systems.
"""

__all__: list[str] = []
