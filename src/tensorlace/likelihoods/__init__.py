"""How targets scatter about the response of a network.

Imports from: predictive.
"""

__all__: list[str] = []
