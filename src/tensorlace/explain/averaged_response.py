"""The response averaged over reference rows, with one column set to given values.

For a column that is not rotated the average factorises: with the column's factor taken out of the
network, one pass over the rows gives the average Jacobian, and each value costs one small product.
"""

import numpy as np

from tensorlace._types import Array
from tensorlace.machines.linear_response import LinearResponse
from tensorlace.machines.machine import KernelMachine
from tensorlace.sources.reference_rows import ReferenceRows

__all__ = ["ROTATED_ROWS", "averaged_response", "position"]

ROTATED_ROWS = 512
"""Rows of an average that does not factorise: each value of the column is a pass over them.
docs/decisions.md#explanations"""

_HELD_WORK = 1 << 34
"""Multiplications that variances of single rows may take, which say where the support of a machine
widens them. docs/decisions.md#explanations"""

_FEWEST_HELD = 64
"""Fewest rows of them, whatever they cost. docs/decisions.md#explanations"""


def position(machine: KernelMachine, d: int) -> int | None:
    """Position in the network of the raw column ``d`` is; None if it is part of several."""
    rotation = machine.columns.rotation
    if rotation is None:
        return d
    found = np.flatnonzero(rotation.others == d)
    return rotation.n_components + int(found[0]) if found.size else None


def averaged_response(
    machine: KernelMachine, rows: ReferenceRows, d: int, values: Array
) -> tuple[Array, Array]:
    """Mean and variance (k,) of ``1/n Σ_n f(x_n with x_d = value)`` for ``values`` (k,).

    ``f`` is what the machine predicts. The variance is that of the average, all rows jointly, under
    the linearised posterior, in units of the standardised target. What the machine's support
    changes, row by row, is averaged over the first rows.
    """
    bare = machine.without_support()
    found = _factorised(bare, rows, d, values)
    if found is None:
        found = _row_by_row(bare, rows.part(ROTATED_ROWS), d, values)
    if machine.support is not None:
        work = len(values) * max(machine.fit.posterior.n_weights, 1) ** 2
        few = rows.part(int(np.clip(_HELD_WORK // work, _FEWEST_HELD, ROTATED_ROWS)))
        changes = _row_by_row(machine, few, d, values) - _row_by_row(bare, few, d, values)
        found = found + changes
    return found.mean, machine.variance(found)


def _factorised(
    machine: KernelMachine, rows: ReferenceRows, d: int, values: Array
) -> LinearResponse | None:
    """Averages of the bare response at ``values`` (k,), if they take one pass over the rows."""
    p = position(machine, d)
    if p is None:
        return None
    column = machine.columns.columns[p]
    u = column.variable(values)
    phi = column.phi(u)
    others = list(machine.columns.features(machine.columns.variables(rows.X)))
    found = machine.fit.network.averaged(others, rows.weight, p, phi)
    if found is None:
        return None
    gradient = np.concatenate([found.gradient[e] for e in machine.fit.bayesian_cores])
    zero = tuple(np.zeros((v.size, len(values))) for v in machine.unseen_variances)
    # one new weight per term, the same for all rows
    own = np.outer(found.environment, column.basis.novel(u))
    return LinearResponse(found.mean, gradient, (*zero[:p], own, *zero[p + 1 :]), zero)


def _row_by_row(
    machine: KernelMachine, rows: ReferenceRows, d: int, values: Array
) -> LinearResponse:
    """Averages at ``values`` (k,), each by a pass over the rows."""
    averages = []
    for value in values:
        X = rows.X.copy()
        X[:, d] = value
        averages.append(machine.linear_response(X).combined(rows.weight[:, None]))
    return LinearResponse.joined(averages)
