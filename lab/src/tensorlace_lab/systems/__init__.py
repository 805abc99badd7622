"""The compared systems by name, each a scikit-learn regressor that predicts distributions.

Those of the paper are done right, which is not always as published: every class says what it
follows and where it departs. No module is imported, and no JAX loaded, before its class is asked
for.

>>> from tensorlace_lab import systems
>>> list(systems.SYSTEMS)[4:6]
['Exact GP', 'LA-BNN']
>>> systems.SYSTEMS["Exact GP"] is systems.ExactGP
True
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, final

from tensorlace.errors import InputError

if TYPE_CHECKING:
    from tensorlace_lab.systems.regressor import System

_PAPER = {
    "GWI-DNN": "paper.gwi:GWI",
    "FVI": "paper.fvi:FVI",
    "BBB": "paper.bayes_by_backprop:BayesByBackprop",
    "alpha=0.5": "paper.alpha_dropout:AlphaDropout",
    "Exact GP": "paper.exact_gp:ExactGP",
    "LA-BNN": "paper.laplace_bnn:LaplaceBNN",
    "MF-BTN": "paper.mean_field_btn:MeanFieldBTN",
    "SP-BTN": "paper.structured_btn:StructuredBTN",
    "T-KRR": "paper.tkrr:TKRR",
    "QTNM": "paper.qtnm:QTNM",
    "TN-GPR": "paper.tngpr:TNGPR",
    "BTN-KM": "paper.btnkm:BTNKM",
    "LA-TTKM": "paper.tensor_train:TTRegressor",
}
_PEERS = {
    "scikit-learn GP": "peers.gaussian_process:SklearnGP",
    "polynomial GP": "peers.polynomial_gp:PolynomialGP",
    "BayesianRidge": "peers.bayesian_ridge:BayesianRidge",
    "NGBoost": "peers.ngboost_normal:NGBoost",
    "LightGBM quantiles": "peers.lightgbm_quantiles:LightGBMQuantiles",
}
_WHERE = {**_PAPER, **_PEERS}
_MODULES = {cls: module for module, _, cls in (where.partition(":") for where in _WHERE.values())}

__all__ = [
    "BTNKM",
    "FVI",
    "GWI",
    "PAPER",
    "PEERS",
    "QTNM",
    "SYSTEMS",
    "TKRR",
    "TNGPR",
    "AlphaDropout",
    "BayesByBackprop",
    "BayesianRidge",
    "ExactGP",
    "LaplaceBNN",
    "LightGBMQuantiles",
    "MeanFieldBTN",
    "NGBoost",
    "PolynomialGP",
    "SklearnGP",
    "StructuredBTN",
    "TTRegressor",
]

PAPER = tuple(_PAPER)
"""In the order of the paper's table, then those of its related work."""

PEERS = tuple(_PEERS)
"""Regressors of other libraries."""


@final
class _Systems(Mapping[str, "type[System]"]):
    """Name -> class, loaded when looked up."""

    def __init__(self) -> None:
        self._others: dict[str, type[System]] = {}

    def register(self, name: str, cls: "type[System]") -> None:
        """Add a system that is defined elsewhere."""
        if name in self:
            raise InputError(f"there is a system {name!r} already: register it by another name")
        self._others[name] = cls

    def __getitem__(self, name: str) -> "type[System]":
        found = self._others.get(name)
        return found or __getattr__(_WHERE[name].partition(":")[2])

    def __contains__(self, name: object) -> bool:
        return name in _WHERE or name in self._others

    def __iter__(self) -> Iterator[str]:
        yield from _WHERE
        yield from self._others

    def __len__(self) -> int:
        return len(_WHERE) + len(self._others)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = f"{__name__}.{_MODULES[name]}"
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        extra = "peers" if ".peers." in module else "neural"
        hint = f"{name} needs {error.name}: pip install 'tensorlace-lab[{extra}]'"
        raise ModuleNotFoundError(hint, name=error.name) from error


def __dir__() -> list[str]:
    return sorted(__all__)


SYSTEMS = _Systems()
"""All of them by name; a further one is a file, and a line in this module."""
