"""What a fit of one network found: weights, precisions, posterior."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from tensorlace.laplace.curvature import Curvature
from tensorlace.laplace.posterior import Posterior
from tensorlace.likelihoods.gaussian import GAUSSIAN
from tensorlace.likelihoods.likelihood import Likelihood
from tensorlace.networks.network import Cores, Network

__all__ = ["Convergence", "Fitted", "worst"]


@final
@dataclass(frozen=True)
class Convergence:
    """How near the end of its way a fit stopped, beside its relative gradient.

    With the gradient g of the objective at the final weights, a Newton step moves the response of
    any row by at most ``decrement`` times the epistemic standard deviation there:
    ``|aᵀ Σ g| ≤ (aᵀ Σ a)^½ (gᵀ Σ g)^½``.

    Attributes
    ----------
    decrement : float
        ``λ = (gᵀ Σ g)^½``, of the Bayesian weights: where cores are points, nothing of these.
    precision_change : float
        Largest relative change of a precision in the last update that was made, of those that are
        neither at a bound nor switched off. 0 if none is learned, infinite if it is not known.
    n_unsettled : int
        Precisions among them that changed by more than the fit's tolerance.
    n_precisions : int
        How many they are.
    arrived : bool
        The fit ended because its gradient was small or no step lowered the objective any more,
        rather than because its steps were spent.
    """

    decrement: float
    precision_change: float
    n_unsettled: int
    n_precisions: int
    arrived: bool

    @property
    def settled(self) -> bool:
        """Whether no precision was still on its way."""
        return self.n_unsettled == 0 and self.precision_change < math.inf


def worst(convergences: Sequence[Convergence]) -> Convergence | None:
    """The worst of several fits in each respect; None of none."""
    if not convergences:
        return None
    return Convergence(
        decrement=max(c.decrement for c in convergences),
        precision_change=max(c.precision_change for c in convergences),
        n_unsettled=max(c.n_unsettled for c in convergences),
        n_precisions=max(c.n_precisions for c in convergences),
        arrived=all(c.arrived for c in convergences),
    )


@final
@dataclass(frozen=True)
class Fitted:
    """A fitted network: MAP weights, precisions, posterior, eq. (laplace), and how the fit went.

    ``degrees`` are those of Student's t whose core has the precision ``beta``; infinite, if rows
    were not reweighted.
    """

    network: Network
    beta: float
    gamma: Cores
    curvature: Curvature
    posterior: Posterior
    log_evidence: float
    determined: float
    rss: float
    n_steps: int
    gradient: float
    rcond: float
    history: tuple[float, ...]
    likelihood: Likelihood = GAUSSIAN
    convergence: Convergence | None = None
    degrees: float = math.inf

    @property
    def cores(self) -> Cores:
        """MAP weights, core by core."""
        return self.network.cores

    @property
    def bayesian_cores(self) -> tuple[int, ...]:
        """Cores that have a distribution."""
        return self.curvature.bayesian_cores(len(self.network.cores))
