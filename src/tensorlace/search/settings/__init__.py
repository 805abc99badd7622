"""Every constant of the search: what it means, its value, and where it was decided.

Imports from: machines, fitting.
"""

from tensorlace.search.settings.budget import BudgetSettings
from tensorlace.search.settings.candidates import CandidateSettings
from tensorlace.search.settings.cost import CostSettings
from tensorlace.search.settings.fits import FitSettings, RowSettings, WorkerSettings
from tensorlace.search.settings.mixture import NoiseSettings, WeightSettings, WidthSettings
from tensorlace.search.settings.search_settings import SearchSettings
from tensorlace.search.settings.strategies import FewRowsSettings, ManyRowsSettings, TailSettings

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
