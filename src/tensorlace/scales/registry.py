"""The scales of the target by name.

A new one is a module beside this one, and one line here.
"""

from collections.abc import Callable

from tensorlace._registry import Registry
from tensorlace.scales.clip import Clip
from tensorlace.scales.identity import IDENTITY
from tensorlace.scales.log import Log
from tensorlace.scales.logit import Logit
from tensorlace.scales.scale import Scale

__all__ = ["FEWEST", "SCALES", "clipped", "natural_bounds", "open_scales"]

FEWEST = 50
"""Fewest rows that a bound is seen from: a new row is below n others with a chance of 1 / (n + 1),
which then is less than a 95 % interval leaves out there. decisions.md#scale-of-the-target"""

SCALES: Registry[Callable[[float, float], Scale]] = Registry(
    "target_scale",
    {"identity": lambda low, high: IDENTITY, "clip": Clip, "log": Log.of, "logit": Logit.of},
)
"""From bounds of the target to a scale."""


def natural_bounds(low: float, high: float, n: float) -> tuple[float, float]:
    """Bounds that n targets from ``low`` to ``high`` seem to have: 0 below, and 1 above of shares.

    Few targets say nothing of bounds, nor do targets that are all the same.

    >>> natural_bounds(0.5, 7.0, 60), natural_bounds(0.0, 0.8, 60), natural_bounds(-0.1, 0.8, 60)
    ((0.0, inf), (0.0, 1.0), (-inf, inf))
    >>> natural_bounds(0.5, 7.0, 12)
    (-inf, inf)
    """
    if low < 0.0 or low == high or n < FEWEST:
        return -float("inf"), float("inf")
    return 0.0, 1.0 if high <= 1.0 else float("inf")


def clipped(low: float, high: float) -> Scale:
    """Scale that keeps targets within bounds, if there is one."""
    return IDENTITY if low == -float("inf") and high == float("inf") else Clip(low, high)


def open_scales(low: float, high: float) -> list[Scale]:
    """Scales of targets that come close to bounds, but are on none of them.

    >>> [scale.name for scale in open_scales(0.0, float("inf"))]
    ['log']
    >>> [scale.name for scale in open_scales(0.0, 1.0)]
    ['log', 'logit']
    """
    found = [make(low, high) for make in SCALES.values()] if low > -float("inf") else []
    of_these = [scale for scale in found if (scale.low, scale.high) == (low, high)]
    return [scale for scale in of_these if scale.valid and not scale.plain]
