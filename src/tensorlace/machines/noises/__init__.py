"""Families of noise that a search chooses from, by name.

Imports from: no other room.
"""

__all__: list[str] = []
