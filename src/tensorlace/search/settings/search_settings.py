"""All constants of a search in one object.

The text of a constant ends with the section of ``docs/decisions.md`` that tells how its value was
found, or that it was set by hand.
"""

from dataclasses import dataclass, field
from typing import final

from tensorlace.search.settings.budget import BudgetSettings
from tensorlace.search.settings.candidates import CandidateSettings
from tensorlace.search.settings.cost import MEASURED, CostSettings
from tensorlace.search.settings.fits import FitSettings, RowSettings, WorkerSettings
from tensorlace.search.settings.mixture import NoiseSettings, WeightSettings, WidthSettings
from tensorlace.search.settings.strategies import FewRowsSettings, ManyRowsSettings, TailSettings
from tensorlace.search.speed import ProbeSettings

__all__ = ["SearchSettings"]


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

    cost: CostSettings = field(default_factory=CostSettings)
    measured: CostSettings = MEASURED
    probe: ProbeSettings = field(default_factory=ProbeSettings)
    budget: BudgetSettings = field(default_factory=BudgetSettings)
    rows: RowSettings = field(default_factory=RowSettings)
    fits: FitSettings = field(default_factory=FitSettings)
    candidates: CandidateSettings = field(default_factory=CandidateSettings)
    few: FewRowsSettings = field(default_factory=FewRowsSettings)
    many: ManyRowsSettings = field(default_factory=ManyRowsSettings)
    weights: WeightSettings = field(default_factory=WeightSettings)
    noise: NoiseSettings = field(default_factory=NoiseSettings)
    widths: WidthSettings = field(default_factory=WidthSettings)
    tails: TailSettings = field(default_factory=TailSettings)
    workers: WorkerSettings = field(default_factory=WorkerSettings)
