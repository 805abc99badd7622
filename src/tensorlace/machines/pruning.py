"""Pruning: what the evidence has switched off is taken out of a fitted machine.

Prior precisions of single terms, orders or columns run to infinity where the rows want none of
their weights. Those weights still cost time in every prediction. Here rank-one terms and basis
functions go whose largest effect on the response, and on its standard deviation, is nothing beside
the noise. The posterior of the rest is the marginal one: rows of the covariance are left out, not
of the precision.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tensorlace._types import Array, Mask
from tensorlace.columns.bases import Subset
from tensorlace.columns.columns import Column, Columns
from tensorlace.laplace.prior_groups import LARGEST_PRIOR
from tensorlace.machines.machine import KernelMachine
from tensorlace.networks.cpd import environments
from tensorlace.networks.network import Cores

__all__ = ["NEGLIGIBLE", "effects_of_functions", "effects_of_terms", "prune"]

NEGLIGIBLE = 1e-4
"""Change of the response, and of its standard deviation, that all removals together may make
anywhere in the range of the training rows, in units of the noise standard deviation."""

SWITCHED_OFF = 1e-3
"""Weight of the standard deviation of weights whose prior precision is the largest there is: it is
an effect of that bound, the evidence wants none of it."""

_GRID = 129
"""Values of a column, all over its range, at which bounds of functions are taken."""


def prune(machine: KernelMachine, negligible: float = NEGLIGIBLE) -> KernelMachine:
    """A smaller machine that predicts the same.

    Parameters
    ----------
    machine : KernelMachine
    negligible : float
        See `NEGLIGIBLE`.

    Returns
    -------
    KernelMachine
        At least one term, if there was any, and one function per column remain.
    """
    if machine.fit.network.products() is None:  # no bounds are known for other networks
        return machine
    budget = negligible * machine.noise_std
    terms = effects_of_terms(machine)
    alive = _kept(terms, 0.5 * budget)
    functions = effects_of_functions(machine, alive)
    flat = _kept(np.concatenate(functions), 0.5 * budget)
    kept = np.split(flat, np.cumsum([len(e) for e in functions])[:-1])
    for d, (mask, effect) in enumerate(zip(kept, functions, strict=True)):
        if not mask.any():
            kept[d] = effect == effect.max()
    if alive.all() and all(mask.all() for mask in kept):
        return machine
    return _reduced(machine, alive, kept)


def effects_of_terms(machine: KernelMachine) -> Array:
    """Bound (R,) of the effect of each rank-one term, in units of the standardised target.

    By the triangle inequality ``|f_r| + (g_rᵀ Σ_rr g_r)^½ ≤ Π_d M_rd + Σ_d Π_{e≠d} M_re s_rd``,
    with the largest value ``M_rd`` of a factor and ``s_rd`` of its standard deviation.
    """
    largest, spread = _largest(machine)
    Z = environments(largest)
    total = largest[0] * Z[0]
    for z, s in zip(Z, spread, strict=True):
        total = total + z * s.sum(axis=1)[:, None]
    out: Array = total[:, 0]
    return out


def effects_of_functions(machine: KernelMachine, alive: Mask) -> list[Array]:
    """Bounds (I_d,) of the effect of each function of each column, through the terms ``alive``."""
    largest, spread = _largest(machine)
    Z = environments(largest)
    tops = _tops(machine.columns)
    products, functions = _products(machine)
    out = []
    for d, (V, top) in enumerate(zip(products, tops, strict=True)):
        out.append(((np.abs(V) * top + spread[d]) * Z[d])[alive].sum(axis=0))
    if functions is not None:
        ends = np.cumsum([len(top) for top in tops])[:-1]
        std = _stds(machine)[-1]
        own = np.split((np.abs(functions) + std)[0], ends)
        out = [effect + a * top for effect, a, top in zip(out, own, tops, strict=True)]
    return out


def _kept(effects: Array, budget: float) -> Mask:
    """All but the smallest, which together stay within the budget."""
    order = np.argsort(effects, kind="stable")
    mask = np.ones(len(effects), dtype=np.bool_)
    mask[order[np.cumsum(effects[order]) <= budget]] = False
    if not mask.any():
        mask[order[-1:]] = True
    return mask


def _largest(machine: KernelMachine) -> tuple[list[Array], list[Array]]:
    """Largest value (R, 1) of each factor, and std times largest function (R, I) of its weights."""
    columns, (cores, _) = machine.columns.columns, _products(machine)
    values = [_functions(column) for column in columns]
    largest = [np.abs(V @ p).max(axis=1)[:, None] for V, p in zip(cores, values, strict=True)]
    stds = _stds(machine)
    return largest, [s * np.abs(p).max(axis=1) for s, p in zip(stds, values, strict=False)]


def _products(machine: KernelMachine) -> tuple[Cores, Array | None]:
    """Cores of the products, and weights of the sum of functions if there is one."""
    found = machine.fit.network.products()
    assert found is not None
    return found


def _tops(columns: Columns) -> list[Array]:
    return [np.abs(_functions(column)).max(axis=1) for column in columns.columns]


def _stds(machine: KernelMachine) -> list[Array]:
    """Posterior standard deviations in the shape of the cores; a point core has none."""
    fit = machine.fit
    out = [np.zeros_like(V) for V in fit.cores]
    std, start = np.sqrt(fit.posterior.variances()), 0
    for d in fit.bayesian_cores:
        stop = start + out[d].size
        capped = np.where(fit.gamma[d] >= 0.5 * LARGEST_PRIOR, SWITCHED_OFF, 1.0)
        out[d] = capped * std[start:stop].reshape(out[d].shape)
        start = stop
    return out


def _functions(column: Column) -> Array:
    """Functions of a column (I, n) at values all over the range of its training rows."""
    return column.phi(column.values_over(_GRID))


def _reduced(machine: KernelMachine, alive: Mask, kept: Sequence[Mask]) -> KernelMachine:
    """Take out terms and functions."""
    fit, network = machine.fit, machine.fit.network
    masks = network.cuts(alive, kept)
    which = np.concatenate([np.outer(*masks[d]).ravel() for d in fit.bayesian_cores])
    columns = tuple(
        replace(c, basis=Subset.of(c.basis, tuple(np.flatnonzero(mask).tolist())))
        for c, mask in zip(machine.columns.columns, kept, strict=True)
    )
    fewer = network.restricted(alive, kept)
    gamma = tuple(
        np.ascontiguousarray(g[np.ix_(*mask)]) for g, mask in zip(fit.gamma, masks, strict=True)
    )
    terms = np.append(alive, True) if network.additive else alive
    sizes = [fit.cores[d].size for d in fit.bayesian_cores]
    return replace(
        machine,
        columns=replace(machine.columns, columns=columns),
        fit=replace(
            fit, network=fewer, gamma=gamma, posterior=fit.posterior.marginal(which, sizes)
        ),
        # what a value never seen may do was learned from all functions, those gone included
        unseen=tuple(v[terms] for v in machine.unseen_variances),
        n_pruned=machine.n_pruned + network.n_weights - fewer.n_weights,
    )
