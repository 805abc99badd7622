"""The systems that tensorlace is compared with, looked up in the laboratory when asked for.

They are a distribution of their own, ``pip install 'tensorlace[lab]'``.

>>> from tensorlace import baselines
>>> list(baselines.SYSTEMS)[4:6]
['Exact GP', 'LA-BNN']
"""

from importlib import import_module
from types import ModuleType
from typing import Any

__all__ = ["laboratory"]


def laboratory(module: str) -> ModuleType:
    """Import a module of the laboratory.

    Raises
    ------
    ModuleNotFoundError
        It is not installed; the message says how to get it.
    """
    try:
        return import_module(f"tensorlace_lab.{module}")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "tensorlace_lab":
            raise
        hint = "the compared systems and experiments are a package of their own: "
        hint += "pip install 'tensorlace[lab]'"
        raise ModuleNotFoundError(hint, name=error.name) from error


def __getattr__(name: str) -> Any:
    """A name of `tensorlace_lab.systems`."""
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(laboratory("systems"), name)
