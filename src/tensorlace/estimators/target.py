"""Which scale the target gets, from the arguments of an estimator and the values it has."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from tensorlace.errors import InputError
from tensorlace.machines.ensemble import Ensemble
from tensorlace.scales import IDENTITY, Scale
from tensorlace.scales.registry import SCALES, clipped, natural_bounds
from tensorlace.sources import Table
from tensorlace.sources.table import Chunk

__all__ = ["Targets", "scale_of_fit", "scale_of_model"]


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
    def of(cls, table: Table) -> "Targets":
        """Those of a table, in one pass over it."""
        return table.reduce(_of_chunk, cls.__add__)

    @classmethod
    def known_to(cls, ensemble: Ensemble, n_rows: int) -> "Targets":
        """Those that the members of an ensemble were fitted to."""
        frames = [machine.target.frame for machine in ensemble.machines]
        return cls(min(f.low for f in frames), max(f.high for f in frames), float(n_rows))

    def __add__(self, other: "Targets") -> "Targets":
        """Of both tables together."""
        least, largest = min(self.least, other.least), max(self.largest, other.largest)
        return Targets(least, largest, self.n + other.n)


def _of_chunk(chunk: Chunk) -> Targets:
    n = chunk.n_rows if chunk.weight is None else float(chunk.weight.sum())
    return Targets(float(chunk.y.min()), float(chunk.y.max()), float(n))


def scale_of_fit(params: Mapping[str, Any], table: Table) -> Scale:
    """Scale that targets are brought to before a fit, by the arguments of an estimator.

    It is one that the user has named and on which y is not u; see `scale_of_model` for bounds.
    """
    name, bounds = params["target_scale"], _checked(params["target_range"])
    if name == "auto":
        return IDENTITY
    if bounds is None and table.in_memory:
        targets = Targets.of(table)
        bounds = natural_bounds(targets.least, targets.largest, targets.n)
    scale = SCALES[name](*(bounds or (-np.inf, np.inf)))
    if scale.plain:
        return IDENTITY
    if not scale.valid:
        raise InputError(f"target_scale={name!r} has no use for the bounds {bounds}")
    return scale


def scale_of_model(
    params: Mapping[str, Any], found: Scale, table: Table, ensemble: Ensemble
) -> Scale:
    """Scale of a fitted model, on whose scale of the fit, ``found``, the ensemble is.

    Raises
    ------
    InputError
        If there are no bounds where some were asked for, or a target is outside.
    """
    known = Targets.known_to(ensemble, table.n_rows)
    if not found.trivial:
        return found.held_within(known.least, known.largest)
    name, bounds = params["target_scale"], _checked(params["target_range"])
    targets = Targets.of(table) if table.in_memory else known
    least, largest = targets.least, targets.largest
    low, high = bounds or natural_bounds(least, largest, targets.n)
    scale = clipped(low, high) if name == "auto" else SCALES[name](low, high)
    if not scale.valid:
        raise InputError(
            f"target_scale={name!r} has nothing to keep to: targets go from {least:g} to "
            f"{largest:g}, give target_range=(low, high)"
        )
    scale.refuse_outside(np.array([least, largest]))
    return scale


def _checked(bounds: Sequence[float] | None) -> tuple[float, float] | None:
    """The two bounds of an argument."""
    if bounds is None:
        return None
    try:
        found = np.asarray(bounds, dtype=float)
    except (TypeError, ValueError):
        found = np.empty(0)
    if found.shape != (2,) or not found[0] < found[1]:
        raise InputError(
            f"target_range is {bounds!r}: give the least and the largest value of a target"
        )
    return float(found[0]), float(found[1])
