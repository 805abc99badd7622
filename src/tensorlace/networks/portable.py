"""Networks as graphs: response, environments and Jacobian from the features of all columns.

The response is linear in each core, ``f = Σ_k Z_k (V φ)_k``, so all that tells one network from
another is how the factors ``F^(d) = V^(d) φ^(d)`` make up the response and the environments.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import final

from tensorlace.networks.cpd import Cores
from tensorlace.portable import ROWS, Builder, Value

__all__ = ["PortableNetwork", "portable_network", "portable_products"]


@final
@dataclass(frozen=True, eq=False)
class PortableNetwork:
    """What the graph of a machine takes from its network, at n rows.

    Attributes
    ----------
    response : (n,) value
    environments : D values (R, n)
        None without products.
    jacobian : (P, n) value
        Transposed, of the cores that have a distribution.
    """

    response: Value
    environments: tuple[Value, ...]
    jacobian: Value


def portable_products(g: Builder, F: Sequence[Value]) -> tuple[Value, tuple[Value, ...]]:
    """Response (n,) and environments of the CPD from its factors, D times (R, n).

    Environments are products of all factors but one, by prefixes and suffixes.
    """
    before = list(accumulate(F, Value.__mul__))
    after = list(accumulate(reversed(F), Value.__mul__))[::-1]
    response = g.sum(before[-1])
    if len(F) == 1:
        return response, (g.expand(1.0, F[0]),)
    inner = [before[d - 1] * after[d + 1] for d in range(1, len(F) - 1)]
    return response, (after[1], *inner, before[-2])


def portable_network(
    g: Builder, cores: Cores, phi: Sequence[Value], bayesian: Sequence[int]
) -> PortableNetwork:
    """The CPD, and the additive part if there is one core more than columns.

    Parameters
    ----------
    g : Builder
    cores : D or D + 1 arrays
    phi : D values (I_d, n)
    bayesian : sequence of int
        Cores of the Jacobian, in its order.

    Examples
    --------
    >>> import numpy as np
    >>> from tensorlace.portable import Input, evaluate
    >>> g = Builder()
    >>> u = g.column(g.input(Input("u", 1)), 0)
    >>> phi = [g.stack([g.expand(1.0, u), u]), g.stack([u, u * u])]
    >>> cores = (np.array([[1.0, 2.0]]), np.array([[3.0, 0.5]]))
    >>> network = portable_network(g, cores, phi, (1,))
    >>> graph = g.build({"f": network.response, "g": network.jacobian})
    >>> out = evaluate(graph, {"u": np.array([[2.0]])})
    >>> out["f"], out["g"].ravel()
    (array([40.]), array([10., 20.]))
    """
    R, D = len(cores[0]), len(phi)
    terms: list[Value] = []
    Z: tuple[Value, ...] = ()
    if R:
        f, Z = portable_products(g, [cores[d] @ p for d, p in enumerate(phi)])
        terms.append(f)
    parts: list[Value] = []
    for d in bayesian:
        if d == D:
            parts += phi
        elif R:
            parts.append(_design(g, Z[d], phi[d]))
    if len(cores) > D:
        terms.append(cores[D][0] @ g.concat(phi))
    return PortableNetwork(sum(terms[1:], terms[0]), Z, g.concat(parts))


def _design(g: Builder, Z: Value, phi: Value) -> Value:
    """Transposed design matrix of a core (R·I, n) from (R, n) and (I, n)."""
    R, I = Z.shape[0], phi.shape[0]
    product = g.reshape(Z, (R, 1, ROWS)) * g.reshape(phi, (1, I, ROWS))
    return g.reshape(product, (R * I, ROWS))
