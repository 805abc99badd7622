"""What pages are made of: Markdown tables, numbers with errors, figures.

Imports from: no other room.
"""

__all__: list[str] = []
