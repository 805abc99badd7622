"""Families of noise that a search chooses from, by name.

Imports from: machines
"""

__all__: list[str] = []
