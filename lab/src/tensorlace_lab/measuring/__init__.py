"""One cell format, one resumable runner, timing in fresh processes, splits, scores and tests."""

__all__: list[str] = []
