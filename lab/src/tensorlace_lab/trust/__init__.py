"""What can be relied on: many real tables, and what happens where there are no data.

Imports from: datasets, systems, measuring, writing.
"""

__all__: list[str] = []
