"""Fitted machines as graphs: mean and variance of the function, in standard units."""

from collections.abc import Sequence

from tensorlace.machines.machine import KernelMachine
from tensorlace.networks.portable import portable_network
from tensorlace.portable import Builder, Value

__all__ = ["portable_moments", "portable_response"]


def portable_response(g: Builder, machine: KernelMachine, x: Sequence[Value]) -> Value:
    """Response (n,) from the columns (n,) of a table."""
    phi = [features for features, _ in machine.columns.portable(g, x)]
    return portable_network(g, machine.fit.cores, phi, machine.fit.bayesian_cores).response


def portable_moments(g: Builder, machine: KernelMachine, x: Sequence[Value]) -> tuple[Value, Value]:
    """Mean and variance (n,) of the linearised function; see `KernelMachine.linearized`."""
    columns, fit = machine.columns.portable(g, x), machine.fit
    phi = [features for features, _ in columns]
    network = portable_network(g, fit.cores, phi, fit.bayesian_cores)
    variance = fit.posterior.portable(g, network.jacobian)
    R = len(fit.cores[0])
    for d, ((_, novel), v) in enumerate(zip(columns, machine.unseen_variances, strict=True)):
        if novel is None:
            continue
        # the additive part is one more term, whose environment is 1
        extra: Value | float = float(v[R:].sum())
        if R:
            Z = network.environments[d]
            extra = v[:R] @ (Z * Z) + extra
        variance = variance + g.where(novel, extra, 0.0)
    return network.response, variance
