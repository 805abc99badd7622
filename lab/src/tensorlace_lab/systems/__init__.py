"""The systems that tensorlace is compared with, each a scikit-learn regressor.

They are done right, which is not always as published: every class says what it follows and where it
departs. The neural ones need ``pip install tensorlace[baselines]``; nothing here is imported, and
no JAX loaded, before a class is asked for.

>>> from tensorlace import baselines
>>> list(baselines.SYSTEMS)[4:6]
['Exact GP', 'LA-BNN']
>>> baselines.SYSTEMS["Exact GP"] is baselines.ExactGP
True
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, final

if TYPE_CHECKING:
    from tensorlace_lab.systems.regressor import Baseline

# name in the paper's table, class, module; after the table's columns the related work
_TABLE = (
    ("GWI-DNN", "GWI", "gwi"),
    ("FVI", "FVI", "fvi"),
    ("BBB", "BayesByBackprop", "bayes_by_backprop"),
    ("alpha=0.5", "AlphaDropout", "alpha_dropout"),
    ("Exact GP", "ExactGP", "exact_gp"),
    ("LA-BNN", "LaplaceBNN", "laplace_bnn"),
    ("MF-BTN", "MeanFieldBTN", "mean_field_btn"),
    ("SP-BTN", "StructuredBTN", "structured_btn"),
    ("T-KRR", "TKRR", "tkrr"),
    ("QTNM", "QTNM", "qtnm"),
    ("TN-GPR", "TNGPR", "tngpr"),
    ("BTN-KM", "BTNKM", "btnkm"),
    ("LA-TTKM", "TTRegressor", "tensor_train"),
)
_MODULES = {cls: module for _, cls, module in _TABLE}

__all__ = [
    "BTNKM",
    "FVI",
    "GWI",
    "QTNM",
    "SYSTEMS",
    "TKRR",
    "TNGPR",
    "AlphaDropout",
    "BayesByBackprop",
    "ExactGP",
    "LaplaceBNN",
    "MeanFieldBTN",
    "StructuredBTN",
    "TTRegressor",
]


@final
class _Systems(Mapping[str, "type[Baseline]"]):
    """Name in the table -> class, loaded when looked up."""

    def __init__(self) -> None:
        self._classes = {name: cls for name, cls, _ in _TABLE}

    def __getitem__(self, name: str) -> "type[Baseline]":
        return __getattr__(self._classes[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def __len__(self) -> int:
        return len(self._classes)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    except ModuleNotFoundError as error:
        hint = f"{name} needs {error.name}: pip install tensorlace[baselines]"
        raise ModuleNotFoundError(hint, name=error.name) from error


def __dir__() -> list[str]:
    return sorted(__all__)


SYSTEMS: Mapping[str, "type[Baseline]"] = _Systems()
"""The compared systems in the order of the paper's table, then those of its related work."""
