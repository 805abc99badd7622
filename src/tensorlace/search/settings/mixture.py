"""How the best are mixed: weights, noise, and widths."""

from dataclasses import dataclass
from typing import final

import numpy as np

from tensorlace.machines.noises.family import NoiseGrid
from tensorlace.search.candidate import Candidate

__all__ = ["NoiseSettings", "WeightSettings", "WidthSettings"]


@final
@dataclass(frozen=True)
class WeightSettings:
    """Weights of the mixture."""

    n_picks: int = 20
    """Picks of the greedy choice; a member can be picked again.
    decisions.md#mixing-many-different-models"""

    score_rate: float = 2.0
    """Members not picked weigh exp(rate × mean log score), up to a factor.
    decisions.md#mixing-many-different-models"""

    trusts: tuple[float, ...] = (0.2, 0.5, 0.8)
    """Shares of the weights given to picks, one of which is chosen by cross-validation.
    decisions.md#heavier-tails-and-how-far-picks-are-trusted"""

    default_trust: float = 0.5
    """Share of the weights given to picks where none is chosen.
    decisions.md#heavier-tails-and-how-far-picks-are-trusted"""

    trust_rows: float = 50.0
    """Rows held out at which picks are trusted half as much as with many rows.
    decisions.md#mixture-weights"""

    least_share: float = 0.004
    """Average share over rows below which a member is left out. decisions.md#mixture-weights"""

    row_weights_from: float = 20.0
    """Rows held out from which weights differ from row to row with the members' own widths.
    decisions.md#where-there-is-little-to-find"""


@final
@dataclass(frozen=True)
class NoiseSettings:
    """Choice of the noise by rows that were not seen."""

    grid: NoiseGrid = NoiseGrid(
        factors=(0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5),
        degrees=(2.5, 3.0, 4.0, 6.0, 10.0),
        strengths=(0.4, 0.7, 1.0, 1.4, 2.0),
    )
    """Factors, degrees of freedom and strengths of variation that are tried.
    decisions.md#choice-of-the-noise"""

    coarse_factors: tuple[float, ...] = (0.2, 0.4, 0.6, 0.8, 1.0, 1.25)
    """Factors that are tried inside the cross-validation of weights.
    decisions.md#choice-of-the-noise"""

    coarse_degrees: tuple[float, ...] = (2.5, 4.0, 10.0, np.inf)
    """Degrees of freedom that are tried inside the cross-validation of weights.
    decisions.md#choice-of-the-noise"""

    softening: float = 0.1
    """Added to squared standardised residuals before their logarithm is fitted: a residual of
    zero says little. decisions.md#choice-of-the-noise"""

    standard_errors: float = 2.0
    """Standard errors by which a noise that varies must be better, or any noise than that of a
    plain model. decisions.md#heavier-tails-and-how-far-picks-are-trusted"""

    replacing_errors: float = 1.0
    """Standard errors by which rows left out must favour another noise over the one that rows
    held out have chosen. decisions.md#widths-on-many-rows"""

    gain: float = 0.003
    """Nats per row by which such a noise must be better, too. decisions.md#widths-on-many-rows"""

    varying_from: int = 100
    """Rows held out from which a variation of the noise is fitted.
    decisions.md#choice-of-the-noise"""

    most_rows: int = 3000
    """Rows on which noises are compared. decisions.md#choice-of-the-noise"""

    least_degrees: float = 2.5
    """Degrees of freedom of the noise of the smallest tables.
    decisions.md#mixing-many-different-models"""

    network: Candidate = Candidate(2, 5, "mixed", "column_order", 0.3, True, False)
    """Model of the logarithm of the squared residuals. decisions.md#choice-of-the-noise"""

    network_steps: int = 40
    """Solver steps of a fit of that model. decisions.md#choice-of-the-noise"""


@final
@dataclass(frozen=True)
class WidthSettings:
    """Scale of the predictive standard deviations."""

    tails: tuple[float, ...] = (2.5, 3.0, 4.0, 6.0, 10.0, 20.0, np.inf)
    """Degrees of freedom that are tried for the whole error. decisions.md#widths-of-intervals"""

    near: float = 2.5
    """Ratio of a residual to the end of the wide interval beyond which no scale that is tried moves
    the row over it. Set by hand. decisions.md#widths-of-intervals"""

    scale_steps: int = 4
    """Secant steps by which the scale is found. Set by hand. decisions.md#widths-of-intervals"""

    scale_tolerance: float = 2e-3
    """Relative error of the end of the wide interval that is let be: less than one row in 1,000.
    Set by hand. decisions.md#widths-of-intervals"""

    middle_rows: int = 1_000
    """Rows from which it is seen whether 50 % intervals hold half. Set by hand.
    decisions.md#widths-of-intervals"""

    least_slope: float = 0.2
    """Least that residuals shrink as widths grow, in logarithms, so that steps stay short. Set by
    hand. decisions.md#widths-of-intervals"""

    standard_errors: float = 2.0
    """Standard errors that a fall of errors with more rows must exceed.
    decisions.md#errors-still-fall"""

    least_extrapolated: float = 0.8
    """Smallest share of the rows from which errors are extrapolated to all rows.
    decisions.md#errors-still-fall"""

    smallest_error: float = 1e-6
    """Error, in standard deviations of the target, below which errors are equal.
    decisions.md#errors-still-fall"""

    least_left: float = 0.01
    """Smallest 1 - h by which a residual is divided to leave out a row of leverage h.
    decisions.md#widths-on-many-rows"""
