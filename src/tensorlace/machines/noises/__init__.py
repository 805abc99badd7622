"""Families of noise that a search chooses from, by name.

imports from: machines
"""

__all__: list[str] = []
