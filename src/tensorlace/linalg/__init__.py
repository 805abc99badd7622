"""Dense linear algebra that knows no rows: LAPACK without the interpreter lock, symmetric systems.

Imports from: no other room.
"""

__all__: list[str] = []
