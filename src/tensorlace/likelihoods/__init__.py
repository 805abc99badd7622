"""How targets scatter about the response of a network.

Imports from: predictive, portable.
"""

__all__: list[str] = []
