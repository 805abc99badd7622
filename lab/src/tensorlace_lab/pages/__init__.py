"""Markdown and HTML of what is finished.

Imports from: datasets, measuring, paper, default, experiments.
"""

__all__: list[str] = []
