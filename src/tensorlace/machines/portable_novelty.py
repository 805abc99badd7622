"""How far rows are from what training rows support, as a graph: see `novelty`."""

from collections.abc import Sequence

from tensorlace.columns.columns import Columns
from tensorlace.columns.warps import FARTHEST
from tensorlace.portable import Builder, Value

__all__ = ["portable_novelty"]


def portable_novelty(
    g: Builder, columns: Columns, x: Sequence[Value], ratio: Value
) -> dict[str, Value]:
    """What `novelty_of` tells of rows, from the columns (n,) of a table and the ratio (n,).

    Returns
    -------
    dict
        ``joint`` (n,), ``amounts`` and ``beyond`` (D, n): the measure is the largest of the joint
        one and the amounts, and values beyond their range are so many halves of it away.
    """
    nothing = g.expand(0.0, ratio)
    amounts, distances = [], []
    masks, beyond = columns.portable_outside(g, x), columns.portable_beyond(g, x)
    for mask, far in zip(masks, beyond, strict=True):
        distances.append(nothing if far is None else far)
        unlike = g.expand(2.0, ratio) if far is None else g.where(far > 0.0, far + 1.0, 2.0)
        amounts.append(nothing if mask is None else g.where(mask, unlike, 0.0))
    return {
        "joint": g.where(g.isnan(ratio), FARTHEST, g.minimum(ratio, FARTHEST)),
        "amounts": g.stack(amounts),
        "beyond": g.stack(distances),
    }
