"""Fitted machines as graphs: mean and variance of the function, in standard units."""

from collections.abc import Sequence

from tensorlace.machines.machine import KernelMachine
from tensorlace.portable import Builder, Value

__all__ = ["portable_moments", "portable_response"]


def portable_response(g: Builder, machine: KernelMachine, x: Sequence[Value]) -> Value:
    """Response (n,) from the columns (n,) of a table."""
    phi = [features for features, _ in machine.columns.portable(g, x)]
    f, support = machine.fit.network.portable(g, phi, ()).response, machine.support
    return f if support is None else g.clip(f, support.low, support.high)


def portable_moments(
    g: Builder, machine: KernelMachine, x: Sequence[Value]
) -> tuple[Value, Value, Value]:
    """Mean and variance (n,) of the linearised function, and how unsure the bare posterior is.

    See `KernelMachine.linearized_and_ratio`.
    """
    columns, fit = machine.columns.portable(g, x), machine.fit
    network = fit.network.portable(g, [phi for phi, _ in columns], fit.bayesian_cores)
    assert network.jacobian is not None
    mean, variance = network.response, fit.posterior.portable(g, network.jacobian)
    beyond: Sequence[Value | None] = [None] * len(columns)
    environments, unseen = network.column_environments, g.expand(0.0, mean)
    for (_, novel), Z, v in zip(columns, environments, machine.unseen_variances, strict=True):
        if novel is not None:  # see `unseen_values.extra_variance`
            unseen = unseen + g.where(novel, v @ (Z * Z), 0.0)
    ratio = g.expand(0.0, mean)
    if machine.support is not None:
        ratio = g.sqrt(variance + unseen) / machine.support.largest
        mean, variance = machine.support.portable(g, mean, variance)
        beyond = machine.columns.portable_beyond(g, x)
    variance = variance + unseen
    for far, Z, root in zip(beyond, environments, machine.range_roots, strict=True):
        if far is not None:  # see `support.beyond_variance`
            variance = variance + far * far * (far + 1.0) * g.sum(((root @ root.T) @ Z) * Z)
    return mean, variance, ratio
