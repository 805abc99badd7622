"""Every constant of the search: what it means, its value, and where it was decided.

The text of a constant ends with the section of ``docs/decisions.md`` that tells how its value was
found, or that it was set by hand.
"""

from dataclasses import dataclass, field
from typing import final

import numpy as np

from tensorlace.fitting.tails import WILD
from tensorlace.machines.noises.family import NoiseGrid
from tensorlace.search.candidate import Candidate, Style
from tensorlace.search.speed import ProbeSettings

__all__ = [
    "BudgetSettings",
    "CandidateSettings",
    "CostSettings",
    "FewRowsSettings",
    "FitSettings",
    "ManyRowsSettings",
    "NoiseSettings",
    "RowSettings",
    "SearchSettings",
    "TailSettings",
    "WeightSettings",
    "WidthSettings",
    "WorkerSettings",
]


@final
@dataclass(frozen=True)
class CostSettings:
    """Time and memory of a fit by its size, on one thread of a reference machine."""

    rate: float = 2.2e10
    """Multiplications per second of one thread in a Gauss-Newton step. decisions.md#cost-model"""

    step_overhead: float = 0.003
    """Seconds of a solver step that are not arithmetic. decisions.md#cost-model"""

    gram_work: float = 0.9
    """Multiplications of the Gram matrix, per min(P, N)² max(P, N). decisions.md#cost-model"""

    factorisation_work: float = 3.0
    """Multiplications of the factorisations, per min(P, N)³. decisions.md#cost-model"""

    row_work: float = 300.0
    """Multiplications of features and Jacobian, per N P. decisions.md#cost-model"""

    steps: int = 45
    """Solver steps of a fit that begins at random cores. decisions.md#cost-model"""

    final_steps: int = 25
    """Solver steps of a fit that begins where another one ended. decisions.md#cost-model"""

    most_weights: int = 13_000
    """Weights of the largest candidate: three matrices of P² take 4 GB. decisions.md#cost-model"""

    column_work: float = 0.0
    """Multiplications of a step for its columns, per N D. decisions.md#cost-model"""

    fit_overhead: float = 0.0
    """Seconds of a fit that are neither arithmetic nor steps. decisions.md#cost-model"""

    read_work: float = 0.0
    """Multiplications of reading rows and warping columns, per N D. decisions.md#cost-model"""

    posterior_work: float = 0.0
    """Multiplications of the posterior, per P² N, if P ≤ N. decisions.md#cost-model"""

    low_rank_work: float = 0.0
    """Multiplications of the posterior, per N² P, if there are more weights P than rows N.
    decisions.md#cost-model"""

    search_overhead: float = 0.0
    """Seconds of a search that are not fits, on each of its threads. decisions.md#cost-model"""

    contention: float = 1.0
    """Factor on the overhead of a step where threads wait for each other at short calls.
    decisions.md#cost-model"""

    process_overhead: float = 0.0
    """Processor seconds until another process is ready to fit. decisions.md#cost-model"""

    speed: float = 1.0
    """Speed of this machine, in units of that of the reference machine. decisions.md#cost-model"""


@final
@dataclass(frozen=True)
class BudgetSettings:
    """Seconds that a search may take."""

    few_rows_start: float = 38.0
    """Seconds of the default budget for no rows at all, where rows are few. decisions.md#budget"""

    few_rows_per_second: float = 150.0
    """Rows that add a second to the default budget, where rows are few. decisions.md#budget"""

    many_rows_per_second: float = 20.0
    """Rows per second of the default budget, where rows are many. decisions.md#budget"""

    largest: float = 370.0
    """Seconds of the largest default budget. decisions.md#budget"""

    overshoot: float = 4.0
    """Multiple of the budget after which, and `grace`, a clock ends the search.
    decisions.md#budget"""

    grace: float = 60.0
    """Seconds beyond `overshoot` budgets after which a clock ends the search.
    decisions.md#budget"""

    dear_share: float = 0.3
    """Share of a budget that was given which one candidate may take, even one of the first.
    decisions.md#budget"""

    noise_share: float = 0.25
    """Share of a budget that was given which a noise that varies may take. decisions.md#budget"""

    dear_final_share: float = 0.6
    """Share of a budget that was given which the final fit of one member may take.
    decisions.md#budget"""

    tolerance: float = 1.5
    """Multiple of a budget that was given which the least plan may take without a warning.
    decisions.md#budget"""

    unnoticed: float = 1.0
    """Seconds that the least plan may always take without a warning. decisions.md#budget"""

    fewest_final_steps: int = 4
    """Steps of the only final fit where a budget that was given pays for no more.
    decisions.md#budget"""

    planned_share: float = 0.65
    """Share of a time limit that plans are made for. decisions.md#budget"""

    trials_until: float = 0.65
    """Share of a time limit after which no candidate is tried any more. decisions.md#budget"""

    noise_until: float = 0.75
    """Share of a time limit after which no noise that varies is fitted. decisions.md#budget"""

    finals_until: float = 0.9
    """Share of a time limit after which no final fit goes on. decisions.md#budget"""

    wrap_up: float = 5.0
    """Seconds after an interrupt in which members are fitted if there are none yet.
    decisions.md#budget"""

    settled_share: float = 0.5
    """Share of its steps that a final fit from nothing must have made to count, if the clock ended
    it. decisions.md#budget"""


@final
@dataclass(frozen=True)
class RowSettings:
    """Rows that candidates are fitted to and judged on."""

    sample_size: int = 6500
    """Most rows that candidates see; final members see all rows. decisions.md#rows-of-a-search"""

    few: int = 2500
    """Most rows of the strategy with many small members. decisions.md#rows-of-a-search"""

    n_folds: int = 5
    """Folds into which rows are cut, for candidates and for the noise. decisions.md#folds"""

    held_out: int = 350
    """Rows that are held out at least, fold by fold, if there are so many.
    decisions.md#rows-of-a-search"""

    least_trained: int = 3
    """Rows that must remain for training when a fold is held out. decisions.md#rows-of-a-search"""

    least_to_choose: int = 40
    """Rows held out from which trust, noise and plain models are chosen by cross-validation.
    decisions.md#rows-of-a-search"""


@final
@dataclass(frozen=True)
class FitSettings:
    """How a candidate is fitted."""

    tol: float = 1e-3
    """Relative gradient at which any fit has converged. decisions.md#fits-of-a-search"""

    rough_from: int = 200
    """Rows from which precision updates may lose half their digits to be quick.
    decisions.md#precisions"""

    dense_work: float = 4e12
    """Multiplications of min(P, N)² max(P, N) up to which the solver is dense Gauss-Newton.
    decisions.md#fits-of-a-search"""

    second_order_columns: int = 40
    """Columns up to which dense Gauss-Newton uses second derivatives near the optimum, at a cost
    quadratic in columns. decisions.md#fits-of-a-search"""


@final
@dataclass(frozen=True)
class CandidateSettings:
    """Building blocks of the candidates, in order of promise. One more line is one more to try."""

    constant: Candidate = Candidate(1, 1, "standardise", "all", None, False, False, "legendre")
    """The mean of the target. decisions.md#where-there-is-little-to-find"""

    line: Candidate = Candidate(0, 2, "standardise", "column", None, True, False, "legendre")
    """A straight line without products. decisions.md#where-there-is-little-to-find"""

    lines: Candidate = Candidate(1, 2, "standardise", "column", None, True, False, "legendre")
    """A straight line and one product of lines, which cosines approach slowly.
    decisions.md#order-of-candidates"""

    parabolas: Candidate = Candidate(
        2, 3, "standardise", "column_order", None, True, False, "legendre"
    )
    """Parabolas and two products of them, which cosines approach slowly.
    decisions.md#order-of-candidates"""

    sizes: tuple[tuple[int, int], ...] = (
        (4, 5),
        (8, 16),
        (8, 10),
        (2, 5),
        (4, 10),
        (2, 10),
        (8, 6),
        (4, 16),
        (8, 24),
        (2, 16),
    )
    """Rank and basis size of the small models, most useful first.
    decisions.md#order-of-candidates"""

    styles: tuple[Style, ...] = (
        Style("minmax", 0.3, additive=True, rotate=False),
        Style("mixed", None, additive=False, rotate=False),
        Style("quantile", None, additive=False, rotate=False),
        Style("mixed", 0.3, additive=True, rotate=True),
        Style("mixed", 0.3, additive=True, rotate=False),
        Style("quantile", 0.3, additive=False, rotate=False),
        Style("minmax", None, additive=False, rotate=False),
        Style("mixed", None, additive=True, rotate=False),
        Style("minmax", 0.3, additive=True, rotate=True),
        Style("quantile", None, additive=True, rotate=False),
        Style("minmax", 0.3, additive=False, rotate=False),
        Style("mixed", 0.3, additive=False, rotate=False),
    )
    """Styles of the small models, most useful first; each is tried in each size.
    decisions.md#order-of-candidates"""

    style_penalty: float = 0.7
    """Places in `sizes` that one place in `styles` is worth, in the order of all pairs.
    decisions.md#order-of-candidates"""

    parabolas_at: int = 5
    """Place of `parabolas` in the order of all candidates, and of `polynomials` before them.
    decisions.md#order-of-candidates"""

    polynomials: tuple[Candidate, ...] = (
        Candidate(8, 4, "minmax", "column_order", None, True, False, "legendre"),
        Candidate(8, 4, "minmax", "column_order", None, True, True, "legendre"),
        Candidate(8, 4, "minmax", "column_order", None, False, True, "legendre"),
        Candidate(8, 5, "quantile", "column_order", None, False, False, "legendre"),
    )
    """Polynomials for many rows: a smooth slope takes fewer of them than cosines.
    decisions.md#large-tables"""

    at_least: int = 3
    """Candidates that are tried whatever they cost. decisions.md#order-of-candidates"""

    largest_share: float = 0.12
    """Largest share of the work that one of the first candidates may take.
    decisions.md#order-of-candidates"""

    rows_per_candidate: float = 6.0
    """Rows that justify one more candidate. decisions.md#order-of-candidates"""

    fewest: int = 6
    """Most candidates of the smallest tables. decisions.md#order-of-candidates"""

    most: int = 40
    """Most candidates of any table. decisions.md#order-of-candidates"""

    leaps: tuple[tuple[float, float], ...] = (
        (2.0, 1.0),
        (1.0, 1.6),
        (1.5, 1.5),
        (3.0, 1.0),
        (2.0, 2.0),
    )
    """Factors on rank and basis size when few rows make models larger, in order.
    decisions.md#order-of-candidates"""

    steps: tuple[tuple[float, float], ...] = (
        (2.0, 0.6),
        (1.5, 1.0),
        (1.0, 1.4),
        (2.0, 1.0),
        (1.4, 1.4),
    )
    """Factors on rank and basis size when many rows make models larger: also from functions to
    terms. decisions.md#large-tables"""

    largest_rank: int = 40
    """Rank beyond which no model is made larger. decisions.md#order-of-candidates"""

    largest_basis: int = 24
    """Basis size beyond which no model is made larger. decisions.md#order-of-candidates"""

    smallest_basis: int = 3
    """Basis size below which no model trades functions for terms. decisions.md#large-tables"""


@final
@dataclass(frozen=True)
class FewRowsSettings:
    """Rounds of a search in which every row is held out once."""

    first_share: float = 0.5
    """Share of the work for the first round of candidates. decisions.md#budget"""

    larger_share: float = 0.5
    """Share of the work for larger models in the best styles. decisions.md#budget"""

    largest_share: float = 0.35
    """Largest share of the second round's work that one model may take. decisions.md#budget"""

    part_cost: float = 0.8
    """Cost of a fit to all folds but one, in fits to all rows. decisions.md#cost-model"""

    styles: int = 4
    """Best styles that are tried in larger sizes. decisions.md#order-of-candidates"""

    rows_per_larger: int = 40
    """Rows that justify one more of the larger models. decisions.md#order-of-candidates"""

    n_members: int = 30
    """Most members of the mixture. decisions.md#mixing-many-different-models"""

    processes_from: int = 200
    """Rows from which fits of small tables run in processes instead of threads.
    decisions.md#workers"""

    processes_budget: float = 10.0
    """Seconds of budget from which starting processes pays. decisions.md#workers"""


@final
@dataclass(frozen=True)
class ManyRowsSettings:
    """Rounds of a search in which one part of the rows is held out."""

    first_rows: int = 2000
    """Rows that styles are ranked on. decisions.md#large-tables"""

    first_share: float = 0.15
    """Share of the work for ranking the styles. decisions.md#budget"""

    larger_share: float = 0.4
    """Share of the work for larger models in the best styles. decisions.md#budget"""

    round_share: float = 0.5
    """Share of what is left of that which one round may take. decisions.md#budget"""

    largest_share: float = 0.5
    """Largest share of a round's work that one model may take. decisions.md#budget"""

    longer_share: float = 0.2
    """Share of the work for going on with the best fits, beside what rounds have left.
    decisions.md#budget"""

    final_share: float = 0.4
    """Share of the work for fitting the final members to all rows. decisions.md#budget"""

    styles: int = 4
    """Best styles of the first round that are tried in larger sizes. decisions.md#large-tables"""

    later_styles: int = 2
    """Best styles of a later round that are tried in larger sizes. decisions.md#large-tables"""

    rounds: int = 5
    """Most rounds of ever larger models. decisions.md#large-tables"""

    prolonged: int = 8
    """Most trials that are fitted for longer at a time. decisions.md#large-tables"""

    prolonging_gain: float = 0.01
    """Nats per row held out for which a longer fit is worth it. decisions.md#large-tables"""

    final_prolongations: int = 3
    """Times that the steps of a final member are added again where longer fits were better.
    decisions.md#large-tables"""

    n_members: int = 8
    """Most members of the mixture. decisions.md#mixing-many-different-models"""

    line_share: float = 0.02
    """Weight of the straight line in a mixture of many rows: where the others are unsure, weights
    that follow widths row by row leave the row to it. decisions.md#beyond-the-rows"""


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


@final
@dataclass(frozen=True)
class TailSettings:
    """Whether members are fitted with tails."""

    probes: int = 3
    """First candidates after which unseen rows say whether tails may matter: constant, line and a
    small model. decisions.md#a-fit-with-tails"""

    wild: float = WILD
    """Standard deviations of the core that some unseen row must be away.
    decisions.md#a-fit-with-tails"""

    standard_errors: float = 2.0
    """Standard errors by which a candidate with tails must be better than without.
    decisions.md#a-fit-with-tails"""

    degrees: tuple[float, ...] = (2.5, 4.0)
    """Degrees of freedom that are tried inside the cross-validation of weights where members have
    tails: a wild row would rule it under lighter ones. decisions.md#a-fit-with-tails"""


@final
@dataclass(frozen=True)
class WorkerSettings:
    """Processes that fit candidates."""

    look_every: float = 1.0
    """Seconds between two looks of a process at whether its parent lives. decisions.md#workers"""


@final
@dataclass(frozen=True)
class SearchSettings:
    """All constants of a search, by duty.

    ``cost`` is the unit of the default budget, the same on any machine; ``measured`` are seconds,
    for a budget that was given. decisions.md#cost-model

    Examples
    --------
    >>> from dataclasses import replace
    >>> settings = SearchSettings()
    >>> settings.rows.n_folds
    5
    >>> replace(settings, rows=RowSettings(n_folds=3)).rows.n_folds
    3
    """

    cost: CostSettings = CostSettings()
    measured: CostSettings = CostSettings(
        rate=3e10,
        step_overhead=0.00033,
        gram_work=0.36,
        factorisation_work=1.7,
        row_work=135.0,
        column_work=150.0,
        fit_overhead=0.0015,
        read_work=4300.0,
        posterior_work=1.3,
        low_rank_work=10.0,
        search_overhead=0.25,
        contention=1.5,
        process_overhead=1.5,
    )
    probe: ProbeSettings = field(default_factory=ProbeSettings)
    budget: BudgetSettings = BudgetSettings()
    rows: RowSettings = RowSettings()
    fits: FitSettings = FitSettings()
    candidates: CandidateSettings = CandidateSettings()
    few: FewRowsSettings = FewRowsSettings()
    many: ManyRowsSettings = ManyRowsSettings()
    weights: WeightSettings = WeightSettings()
    noise: NoiseSettings = NoiseSettings()
    widths: WidthSettings = WidthSettings()
    tails: TailSettings = TailSettings()
    workers: WorkerSettings = WorkerSettings()
