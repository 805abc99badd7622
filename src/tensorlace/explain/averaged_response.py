"""The response averaged over reference rows, with some columns moved."""

from collections.abc import Sequence

import numpy as np

from tensorlace._types import Array
from tensorlace.machines.machine import KernelMachine
from tensorlace.networks.cpd import Cores, environments, factors, jacobian, predict
from tensorlace.sources.reference_rows import ReferenceRows

__all__ = ["ROTATED_ROWS", "averaged_response", "features", "position"]

ROTATED_ROWS = 512
"""Rows of an average that does not factorise: each value of the column is a pass over them."""


def position(machine: KernelMachine, d: int) -> int | None:
    """Which column of the network the raw column ``d`` is; None if it is part of several."""
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
    p = position(machine, d)
    if p is not None:
        return _factorised(machine, rows, p, values)
    few = rows.part(ROTATED_ROWS)
    means, variances = np.empty(len(values)), np.empty(len(values))
    for k, value in enumerate(values):
        X = few.X.copy()
        X[:, d] = value
        phi = features(machine, X)
        gradient = jacobian(machine.fit.cores, phi, machine.fit.bayesian_cores) @ few.weight
        means[k] = predict(machine.fit.cores, phi) @ few.weight
        variances[k] = machine.fit.posterior.quad(gradient[:, None])[0]
    return means, variances


def _factorised(
    machine: KernelMachine, rows: ReferenceRows, p: int, values: Array
) -> tuple[Array, Array]:
    fit, column = machine.fit, machine.columns.columns[p]
    D = len(machine.columns.columns)
    phi = features(machine, rows.X)
    V, R = fit.cores[p], len(fit.cores[p])
    # the network without the column: its factor is 1
    rest: Cores = (*fit.cores[:p], np.ones((R, 1)), *fit.cores[p + 1 : D])
    phi[p] = np.ones((1, len(rows.X)))
    Z = environments(factors(rest, phi))
    average = [(z * rows.weight) @ f.T for z, f in zip(Z, phi, strict=True)]  # (R, I_e)
    simple = [f @ rows.weight for f in phi]  # (I_e,)
    u = column.variable(values)
    own = column.phi(u)  # (I_p, k)
    F = V @ own  # (R, k)
    mean: Array = average[p][:, 0] @ F
    parts = []
    for e in fit.bayesian_cores:
        if e == p:
            block = average[p][:, :, None] * own
        elif e < D:
            block = average[e][:, :, None] * F[:, None]
        else:
            block = _additive_phi(simple, own, p)
        parts.append(block.reshape(-1, len(values)))
    if len(fit.cores) > D:
        mean = mean + (fit.cores[-1] @ _additive_phi(simple, own, p))[0]
    variance = fit.posterior.quad(np.concatenate(parts))
    novel = column.basis.novel(u)
    if novel.any():  # one new weight per term, the same for all rows
        unseen = machine.unseen_variances[p]
        z = np.append(average[p][:, 0], np.ones(len(unseen) - R))
        variance = variance + novel * (unseen @ z**2)
    return mean, variance


def _additive_phi(simple: Sequence[Array], own: Array, p: int) -> Array:
    k = own.shape[1]
    parts = [own if e == p else np.repeat(f[:, None], k, axis=1) for e, f in enumerate(simple)]
    return np.concatenate(parts)


def features(machine: KernelMachine, X: Array) -> list[Array]:
    """Basis functions (I_d, n) of each column of the network, of raw rows (n, D)."""
    u = machine.columns.variables(X)
    return [c.phi(x) for c, x in zip(machine.columns.columns, u, strict=True)]
