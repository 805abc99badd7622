"""Fitted machines as operators: mean and variance of the function, in standard units."""

from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np

from tensorlace.columns.columns import Column, Columns
from tensorlace.export.bases import features, novel
from tensorlace.export.graph import Graph
from tensorlace.export.warps import variable
from tensorlace.laplace.posterior import Blocks, Diagonal, LowRank, Posterior, Root
from tensorlace.machines.machine import KernelMachine

__all__ = ["moments", "response"]


def response(g: Graph, machine: KernelMachine, raw: Sequence[str]) -> str:
    """`networks.predict` (n, 1) at raw columns, D times (n, 1)."""
    phi = [features(g, c.basis, u) for c, u in _variables(g, machine.columns, raw)]
    return _response(g, machine, phi, _factors(g, machine, phi))


def moments(g: Graph, machine: KernelMachine, raw: Sequence[str]) -> tuple[str, str]:
    """Mean and variance (n, 1) of the linearised function."""
    pairs = _variables(g, machine.columns, raw)
    phi = [features(g, c.basis, u) for c, u in pairs]
    F = _factors(g, machine, phi)
    R = machine.fit.cores[0].shape[0]
    Z = _environments(g, F) if R else []
    parts: list[str] = []
    for d in machine.fit.bayesian_cores:
        if d == len(phi):
            parts += phi
        elif R:
            parts.append(_design(g, machine, Z[d], phi[d], d))
    variance = _quad(g, machine.fit.posterior, g.side_by_side(parts))
    for d, ((column, u), v) in enumerate(zip(pairs, machine.unseen_variances, strict=True)):
        new = novel(g, column.basis, u)
        if new is not None:
            # the additive part is one more term, whose environment is 1
            extra: str | float = float(v[R:].sum())
            if R:
                squares = g.op("MatMul", g.op("Mul", Z[d], Z[d]), v[:R, None])
                extra = g.op("Add", squares, extra) if v.size > R else squares
            variance = g.op("Add", variance, g.op("Where", new, extra, 0.0))
    return _response(g, machine, phi, F), variance


def _variables(g: Graph, columns: Columns, raw: Sequence[str]) -> list[tuple[Column, str]]:
    """Columns of the machine, and their variables (n, 1)."""
    if columns.rotation is not None:
        turn = columns.rotation
        centred = g.op("Sub", g.side_by_side([raw[k] for k in turn.which]), turn.mean[None])
        components = g.op("MatMul", centred, turn.matrix)
        parts = [g.columns(components, [k]) for k in range(turn.n_components)]
        raw = [*parts, *(raw[k] for k in turn.others)]
    return [(c, variable(g, c, x)) for c, x in zip(columns.columns, raw, strict=True)]


def _factors(g: Graph, machine: KernelMachine, phi: Sequence[str]) -> list[str]:
    """One-column functions, D times (n, R)."""
    if not len(machine.fit.cores[0]):  # operators on empty arrays are not everywhere
        return []
    return [g.op("MatMul", p, V.T) for p, V in zip(phi, machine.fit.cores, strict=False)]


def _environments(g: Graph, F: Sequence[str]) -> list[str]:
    """Products of all factors but one, D times (n, R), by prefixes and suffixes."""

    def times(a: str, b: str) -> str:
        return g.op("Mul", a, b)

    if len(F) == 1:
        return [g.op("Pow", F[0], 0.0)]
    before = list(accumulate(F, times))
    after = list(accumulate(reversed(F), times))[::-1]
    inner = [times(before[d - 1], after[d + 1]) for d in range(1, len(F) - 1)]
    return [after[1], *inner, before[-2]]


def _response(g: Graph, machine: KernelMachine, phi: Sequence[str], F: Sequence[str]) -> str:
    cores = machine.fit.cores
    parts = []
    if len(cores[0]):
        product = F[0]
        for factor in F[1:]:
            product = g.op("Mul", product, factor)
        parts.append(g.row_sum(product))
    if len(cores) > len(phi):
        parts.append(g.op("MatMul", g.side_by_side(phi), cores[-1].T))
    return parts[0] if len(parts) == 1 else g.op("Add", *parts)


def _design(g: Graph, machine: KernelMachine, z: str, phi: str, d: int) -> str:
    """Design matrix of a core (n, R·I) from (n, R) and (n, I)."""
    product = g.op(
        "Mul", g.op("Unsqueeze", z, np.array([2])), g.op("Unsqueeze", phi, np.array([1]))
    )
    return g.op("Reshape", product, np.array([-1, machine.fit.cores[d].size]))


def _quad(g: Graph, posterior: Posterior, G: str) -> str:
    """`Posterior.quad`: variances (n, 1) for the rows of ``G`` (n, P), sums of squares."""
    match posterior:
        case Root():
            return g.row_squares(g.op("MatMul", G, posterior.W))
        case Diagonal():
            return g.op("MatMul", g.op("Mul", G, G), posterior.variance[:, None])
        case LowRank():
            scaled = g.op("Mul", G, posterior.scale[None])
            inside = g.op("MatMul", scaled, posterior.U)
            outside = g.op("Sub", scaled, g.op("MatMul", inside, posterior.U.T))
            kept = g.op("MatMul", g.op("Mul", inside, inside), posterior.c[:, None])
            return g.op("Add", kept, g.row_squares(outside))
        case Blocks():
            ends = np.cumsum([0, *(part.n_weights for part in posterior.parts)])
            cuts = [
                g.op("Slice", G, *(np.array([k]) for k in (start, stop, 1)))
                for start, stop in pairwise(ends)
            ]
            total = [_quad(g, part, cut) for part, cut in zip(posterior.parts, cuts, strict=True)]
            return total[0] if len(total) == 1 else g.op("Sum", *total)
    raise TypeError(f"no operators for the posterior {type(posterior).__name__}")
