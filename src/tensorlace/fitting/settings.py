"""Everything that decides a fit, as objects."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from tensorlace.laplace.curvature import Curvature
from tensorlace.laplace.factorisation import Truncation
from tensorlace.laplace.precision import Policy
from tensorlace.laplace.prior_groups import Groups
from tensorlace.networks.network import Network
from tensorlace.solvers.solver import Solver

__all__ = ["Settings"]


@final
@dataclass(frozen=True)
class Settings:
    """What inference is to do with a table.

    Attributes
    ----------
    rank : int
    solver, curvature, truncation
        See the modules of these names.
    noise, prior : Policy
        How β and γ are found, for a target of unit variance.
    groups : function (network) -> Groups
    max_steps : int
        Sweeps of ALS or steps of Gauss-Newton, precision rounds included.
    tol : float
        Relative gradient at which the MAP counts as found.
    precision_tol : float
        Largest relative change of a precision at which they count as found.
    rough : bool
        Precision updates may lose half the digits where that is quicker. Needs evidence, not VI.
    """

    rank: int
    solver: Solver
    curvature: Curvature
    truncation: Truncation
    noise: Policy
    prior: Policy
    groups: Callable[[Network], Groups]
    max_steps: int = 200
    tol: float = 1e-8
    precision_tol: float = 1e-4
    rough: bool = False

    def what_is_fitted(self) -> tuple[object, ...]:
        """Everything but the stopping rules."""
        return (
            *(self.rank, self.solver, self.curvature, self.truncation),
            *(self.noise, self.prior, self.groups.__name__),
        )
