"""Fitted machines as graphs: mean and variance of the function, in standard units."""

from collections.abc import Sequence

from tensorlace.machines.machine import KernelMachine
from tensorlace.portable import Builder, Value

__all__ = ["portable_moments", "portable_response"]


def portable_response(g: Builder, machine: KernelMachine, x: Sequence[Value]) -> Value:
    """Response (n,) from the columns (n,) of a table."""
    phi = [features for features, _ in machine.columns.portable(g, x)]
    return machine.fit.network.portable(g, phi, ()).response


def portable_moments(g: Builder, machine: KernelMachine, x: Sequence[Value]) -> tuple[Value, Value]:
    """Mean and variance (n,) of the linearised function; see `KernelMachine.linearized`."""
    columns, fit = machine.columns.portable(g, x), machine.fit
    network = fit.network.portable(g, [phi for phi, _ in columns], fit.bayesian_cores)
    assert network.jacobian is not None
    variance = fit.posterior.portable(g, network.jacobian)
    parts = zip(columns, network.column_environments, machine.unseen_variances, strict=True)
    for (_, novel), Z, v in parts:
        if novel is not None:  # see `unseen_values.extra_variance`
            variance = variance + g.where(novel, v @ (Z * Z), 0.0)
    return network.response, variance
