"""What a fit of one network found: weights, precisions, posterior."""

from dataclasses import dataclass
from typing import final

from tensorlace.laplace.curvature import Curvature
from tensorlace.laplace.posterior import Posterior
from tensorlace.likelihoods.gaussian import GAUSSIAN
from tensorlace.likelihoods.likelihood import Likelihood
from tensorlace.networks.network import Cores, Network

__all__ = ["Fitted"]


@final
@dataclass(frozen=True)
class Fitted:
    """A fitted network: MAP weights, precisions, posterior, eq. (laplace), and how the fit went."""

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

    @property
    def cores(self) -> Cores:
        """MAP weights, core by core."""
        return self.network.cores

    @property
    def bayesian_cores(self) -> tuple[int, ...]:
        """Cores that have a distribution."""
        return self.curvature.bayesian_cores(len(self.network.cores))
