"""The response averaged over reference rows, with one column set to given values.

For a column that is not rotated the average factorises: with the column's factor taken out of the
network, one pass over the rows gives the average Jacobian, and each value costs one small product.
"""

import numpy as np

from tensorlace._types import Array
from tensorlace.machines.machine import KernelMachine
from tensorlace.sources.reference_rows import ReferenceRows

__all__ = ["ROTATED_ROWS", "averaged_response", "features", "position"]

ROTATED_ROWS = 512
"""Rows of an average that does not factorise: each value of the column is a pass over them."""


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

    The variance is that of the average, all rows jointly, under the linearised posterior, in units
    of the standardised target.
    """
    network, posterior = machine.fit.network, machine.fit.posterior
    p = position(machine, d)
    if p is not None:
        column = machine.columns.columns[p]
        u = column.variable(values)
        found = network.averaged(features(machine, rows.X), rows.weight, p, column.phi(u))
        if found is not None:
            gradient = np.concatenate([found.gradient[e] for e in machine.fit.bayesian_cores])
            variance = posterior.quad(gradient)
            novel = column.basis.novel(u)
            if novel.any():  # one new weight per term, the same for all rows
                variance = variance + novel * (machine.unseen_variances[p] @ found.environment**2)
            return found.mean, variance
    few = rows.part(ROTATED_ROWS)
    means, variances = np.empty(len(values)), np.empty(len(values))
    for k, value in enumerate(values):
        X = few.X.copy()
        X[:, d] = value
        phi = features(machine, X)
        gradient = network.jacobian(phi, machine.fit.bayesian_cores) @ few.weight
        means[k] = network.response(phi) @ few.weight
        variances[k] = posterior.quad(gradient[:, None])[0]
    return means, variances


def features(machine: KernelMachine, X: Array) -> list[Array]:
    """Basis functions (I_d, n) of each column of the network, of raw rows (n, D)."""
    u = machine.columns.variables(X)
    return [c.phi(x) for c, x in zip(machine.columns.columns, u, strict=True)]
