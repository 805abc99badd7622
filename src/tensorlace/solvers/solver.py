"""What a MAP solver is: a step from state to state that returns what it saw."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

from tensorlace.networks.network import Cores, Network
from tensorlace.rows.memory import Rows
from tensorlace.solvers.linearisation import Linearisation

__all__ = ["Info", "Solver", "State"]


@final
@dataclass(frozen=True)
class State:
    """Where a solver stands: the network and what Gauss-Newton carries along.

    Attributes
    ----------
    network : Network
    damping : float
        Levenberg-Marquardt damping.
    linear : Linearisation or None
        The model linearised there, if somebody needed it already.
    anchor : Network or None
        Where the curvature was summed that steps are preconditioned with.
    memo : object
        Sums that a solver keeps for itself. Without it they are summed again, to the same bits.
    """

    network: Network
    damping: float = 0.0
    linear: Linearisation | None = None
    anchor: Network | None = None
    memo: object = None


@final
@dataclass(frozen=True)
class Info:
    """What a step saw.

    Attributes
    ----------
    objective : float
        ``β/2 ‖y - f‖² + ½ vᵀΓv`` after the step, eq. (loss).
    gradient : float
        Norm of the gradient met by the step, relative to ``(‖β Aᵀy‖² + ‖Γv‖²)^½``.
    rss : float
        Weighted residual sum of squares after the step.
    rcond : float
        Smallest reciprocal condition number of the linear systems solved.
    stalled : bool
        No step lowers the objective any more.
    """

    objective: float
    gradient: float
    rss: float
    rcond: float = 1.0
    stalled: bool = False


class Solver(ABC):
    """Finds the MAP weights for given precisions, one step at a time.

    Attributes
    ----------
    steps_per_round : int
        Between two updates of precisions.
    least_squares : bool
        Its steps need squared loss.
    """

    steps_per_round: int
    least_squares: ClassVar[bool] = False

    @abstractmethod
    def numbers(self, weights: Sequence[int], n_rows: int, block_rows: int) -> int:
        """Numbers that its systems take for cores of ``weights``."""

    @abstractmethod
    def start(self, rows: Rows, network: Network) -> State:
        """State at the given weights."""

    @abstractmethod
    def prepare(self, rows: Rows, state: State, gamma: Cores) -> State:
        """Do what both the next step and a precision update need, once."""

    @abstractmethod
    def step(self, rows: Rows, state: State, beta: float, gamma: Cores) -> tuple[State, Info]:
        """One step with noise precision ``beta`` and prior precisions ``gamma``."""
