"""How far rows are from what training rows support, and why."""

from dataclasses import dataclass
from typing import final

import numpy as np

from tensorlace._types import Array
from tensorlace.machines.fitted_model import FittedModel
from tensorlace.machines.machine import KernelMachine

__all__ = ["Novelty", "novelty_of"]


@final
@dataclass(frozen=True, eq=False)
class Novelty:
    """How far rows are from what training rows support.

    Attributes
    ----------
    measure : (n,) array
        At most 1 where a row is like those of training. Above: by as many halves of a column's
        range as a value lies beyond it, or the members' epistemic standard deviation in units of
        the largest that a training row had, whichever is more. A category that was never seen, or
        a value missing where none was, counts 2.
    reasons : tuple of n str
        What is unlike, in words: a single value, or else the combination; empty where the measure
        is at most 1.
    """

    measure: Array
    reasons: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.reasons)


def novelty_of(model: FittedModel, X: Array) -> Novelty:
    """Novelty of rows (n, D) for a model: of single values, and of their combination.

    Parameters
    ----------
    model : FittedModel
    X : (n, D) array
        Numbers, as `FittedModel.encode` makes them.
    """
    known = [m for m in model.machines if m.columns.rotation is None]
    machine = known[0] if known else model.machines[0]
    columns, names = machine.columns, [c.name for c in machine.columns.columns]
    beyond, unlike = columns.beyond(X), columns.outside(X).T
    amounts = np.where(unlike, np.where(beyond > 0.0, 1.0 + beyond, 2.0), 0.0)
    worst = np.argmax(amounts, axis=0)
    single = amounts[worst, np.arange(len(X))]
    joint = _joint(model, X)
    reasons = []
    for n, (one, both) in enumerate(zip(single, joint, strict=True)):
        if max(one, both) <= 1.0:
            reasons.append("")
        elif one <= 1.0:
            reasons.append(
                f"combination of values: the model is {both:.3g} times as unsure as it was of any "
                f"training row"
            )
        elif beyond[worst[n], n] > 0.0:
            side = "beyond its training range"
            reasons.append(f"{names[worst[n]]} is {0.5 * beyond[worst[n], n]:.3g} ranges {side}")
        else:
            reasons.append(f"{names[worst[n]]} has a value that no training row had")
    return Novelty(np.maximum(single, joint), tuple(reasons))


def _joint(model: FittedModel, X: Array) -> Array:
    """Epistemic standard deviation (n,) in units of the largest of training rows.

    The average over members by how much they count.
    """
    shares = model.ensemble.shares(X, model.threads)
    total = np.zeros(len(X))
    for machine, share in zip(model.machines, shares, strict=True):
        total += share * _ratio(machine, X, model.threads)
    return total


def _ratio(machine: KernelMachine, X: Array, threads: int) -> Array:
    support = machine.support
    if support is None:
        return np.zeros(len(X))
    plain = machine.without_support().linearized(X, threads)
    return np.asarray(plain.epistemic_stds[0] / machine.target.scale / support.largest)
