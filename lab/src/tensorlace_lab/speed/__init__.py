"""Seconds and memory: ratios within one run."""

__all__: list[str] = []
