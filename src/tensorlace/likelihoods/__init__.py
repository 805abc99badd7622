"""How targets scatter about the response of a network.

Imports from: portable, predictive.
"""

__all__: list[str] = []
