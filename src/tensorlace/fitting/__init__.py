"""One fit, from a configuration to machines.

Imports from: scales, linalg, predictive, kinds, sources, likelihoods, columns, networks, rows,
solvers, laplace, machines.
"""

from tensorlace.fitting.config import Config
from tensorlace.fitting.fit_machines import fit_machines

__all__ = ["Config", "fit_machines"]
