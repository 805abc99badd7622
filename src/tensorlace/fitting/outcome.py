"""What a fit or a search hands to the estimator."""

from dataclasses import dataclass, field
from typing import Any, final

from tensorlace._types import Array
from tensorlace.machines.distrusted import Judge
from tensorlace.machines.ensemble import Ensemble
from tensorlace.predictive.distributions import Distribution
from tensorlace.scales import IDENTITY, Scale

__all__ = ["Found"]


@final
@dataclass(frozen=True, eq=False)
class Found:
    """What a fit or a search came to.

    Attributes
    ----------
    ensemble : Ensemble
    results : list of dict
        One entry per candidate: what it was, its score, its seconds and its weight.
    noise_results : list of dict
        One entry per kind of noise that was tried, on rows held out or left out.
    unseen : tuple or None
        Distribution, targets and weights of such rows, for a check.
    cut : str or None
        What the clock or an interrupt has ended, in words.
    judge : Judge or None
        Fits with tails that have distrusted rows.
    scale : Scale
        From what all of this says to y.
    """

    ensemble: Ensemble
    results: list[dict[str, Any]] = field(default_factory=list)
    noise_results: list[dict[str, Any]] = field(default_factory=list)
    unseen: tuple[Distribution, Array, Array | None] | None = None
    cut: str | None = None
    judge: Judge | None = None
    scale: Scale = IDENTITY
