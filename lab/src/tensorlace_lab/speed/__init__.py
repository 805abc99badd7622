"""Seconds and memory: ratios within one run.

Imports from: systems, measuring, writing.
"""

__all__: list[str] = []
