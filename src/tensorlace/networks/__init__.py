"""The tensor network and its arithmetic on a block of rows.

Imports from: portable, columns.
"""

__all__: list[str] = []
