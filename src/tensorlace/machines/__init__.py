"""What is fitted and predicts: one machine, its noise, an ensemble.

Imports from: linalg, predictive, kinds, portable, sources, likelihoods, columns, networks, laplace.
"""

__all__: list[str] = []
