"""Which of ours is meant: the authors' procedure, the corrected one or the default."""

from typing import Any

from joblib import parallel_config

from tensorlace.errors import InputError
from tensorlace.predictive.distributions import Distribution
from tensorlace_lab.measuring import scores
from tensorlace_lab.measuring.cells import Record
from tensorlace_lab.measuring.data import Split
from tensorlace_lab.measuring.scores import OURS, System
from tensorlace_lab.paper import corrected, published
from tensorlace_lab.systems import PAPER, SYSTEMS

__all__ = ["DRAWS", "PROTOCOLS", "result", "system_named", "system_names"]

PROTOCOLS = ("published", "corrected", "default")
DRAWS = 300
"""Draws that the authors take intervals from."""


def system_names() -> tuple[str, ...]:
    """The systems of the paper's comparison, ours first."""
    return (OURS, *PAPER)


def system_named(name: str, protocol: str) -> System:
    """Look up a system. The protocol says which of ours, and is "default" for all others."""
    if name == OURS:
        if protocol not in PROTOCOLS:
            raise InputError(f"protocol {protocol!r} is not known: choose from {PROTOCOLS}")
        return {"published": _published, "corrected": _corrected, "default": _default}[protocol]
    if name not in SYSTEMS:
        raise InputError(f"system {name!r} is not known: choose from {OURS}, {', '.join(SYSTEMS)}")
    return scores.compared(name)


def result(split: Split, name: str, protocol: str, number: int) -> Record:
    """Fit a system to a split and score it, with the authors' intervals for their procedure."""
    draws = DRAWS if protocol == "published" else None
    return scores.scored(system_named(name, protocol), split, number, draws=draws)


def _published(split: Split, _: int) -> tuple[Distribution, dict[str, Any]]:
    return published.reproduce(split.X, split.y, split.X_test)


def _corrected(split: Split, _: int) -> tuple[Distribution, dict[str, Any]]:
    return corrected.select(split.X, split.y, split.X_test, n_jobs=1)


def _default(split: Split, number: int) -> tuple[Distribution, dict[str, Any]]:
    with parallel_config(backend="threading"):  # the time and memory of this process are counted
        return scores.default()(split, number)
