"""Feature blocks and the one sum over them: in memory, streamed, in growing stages.

Imports from: linalg, sources, likelihoods, columns, networks.
"""

__all__: list[str] = []
