"""What is fitted and predicts: one machine, its noise, an ensemble.

Imports from: portable, scales, linalg, predictive, kinds, sources, likelihoods, columns, networks,
laplace.
"""

__all__: list[str] = []
