"""Which scale the target gets, from the arguments of an estimator and the values it has."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from tensorlace.errors import InputError
from tensorlace.machines.ensemble import Ensemble
from tensorlace.scales import Scale
from tensorlace.scales.registry import SCALES, clipped, natural_bounds
from tensorlace.sources import Table
from tensorlace.sources.table import Chunk

__all__ = ["Targets", "scale_of"]


@final
@dataclass(frozen=True)
class Targets:
    """What is to be known of targets.

    Attributes
    ----------
    least, largest : float
    n : float
        Rows, or their total weight.
    """

    least: float
    largest: float
    n: float

    @classmethod
    def of(cls, table: Table, ensemble: Ensemble) -> "Targets":
        """Those of a table; if it is not in memory, as the members know them."""
        if table.in_memory:
            return table.reduce(_of_chunk, cls.__add__)
        frames = [machine.target.frame for machine in ensemble.machines]
        return cls(min(f.low for f in frames), max(f.high for f in frames), float(table.n_rows))

    def __add__(self, other: "Targets") -> "Targets":
        """Of both tables together."""
        least, largest = min(self.least, other.least), max(self.largest, other.largest)
        return Targets(least, largest, self.n + other.n)


def _of_chunk(chunk: Chunk) -> Targets:
    n = chunk.n_rows if chunk.weight is None else float(chunk.weight.sum())
    return Targets(float(chunk.y.min()), float(chunk.y.max()), float(n))


def scale_of(name: str, bounds: Sequence[float] | None, targets: Targets) -> Scale:
    """Scale of a target.

    Parameters
    ----------
    name : str
        In `SCALES`; "auto" keeps a target within its bounds if it has any.
    bounds : (float, float) or None
        None takes `natural_bounds`.
    targets : Targets

    Raises
    ------
    InputError
        If the bounds are none, or a target is outside.
    """
    least, largest = targets.least, targets.largest
    natural = natural_bounds(least, largest, targets.n)
    low, high = natural if bounds is None else _checked(bounds)
    scale = clipped(low, high) if name == "auto" else SCALES[name](low, high)
    if not scale.valid:
        raise InputError(
            f"target_scale={name!r} has nothing to keep to: targets go from {least:g} to "
            f"{largest:g}, give target_range=(low, high)"
        )
    scale.refuse_outside(np.array([least, largest]))
    return scale


def _checked(bounds: Sequence[float]) -> tuple[float, float]:
    """The two bounds of an argument."""
    try:
        found = np.asarray(bounds, dtype=float)
    except (TypeError, ValueError):
        found = np.empty(0)
    if found.shape != (2,) or not found[0] < found[1]:
        raise InputError(
            f"target_range is {bounds!r}: give the least and the largest value of a target"
        )
    return float(found[0]), float(found[1])
