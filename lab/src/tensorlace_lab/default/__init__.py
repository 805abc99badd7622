"""How the default does on tables, and on data with little to find.

Imports from: datasets, systems, measuring.
"""

__all__: list[str] = []
