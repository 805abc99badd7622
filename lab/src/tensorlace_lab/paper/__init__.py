"""The tables and figures of the paper, and the procedures they compare.

Imports from: systems, measuring, writing.
"""

__all__: list[str] = []
