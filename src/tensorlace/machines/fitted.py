"""What a fit of one network found: weights, precisions, posterior."""

from dataclasses import dataclass
from typing import final

from tensorlace.laplace.curvature import Curvature
from tensorlace.laplace.posterior import Posterior
from tensorlace.networks.cpd import Cores

__all__ = ["Fitted"]


@final
@dataclass(frozen=True)
class Fitted:
    """A fitted network: MAP cores, precisions, posterior, eq. (laplace), and how the fit went."""

    cores: Cores
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

    @property
    def bayesian_cores(self) -> tuple[int, ...]:
        """Cores that have a distribution."""
        return self.curvature.bayesian_cores(len(self.cores))
