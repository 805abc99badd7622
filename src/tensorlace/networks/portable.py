"""What a network says of itself as a graph, see `tensorlace.portable`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from tensorlace.portable import ROWS, Builder, Value

__all__ = ["PortableNetwork", "portable_design"]


@final
@dataclass(frozen=True, eq=False)
class PortableNetwork:
    """What predictions take from a network, at n rows.

    Attributes
    ----------
    response : (n,) value
    column_environments : D values (K'_d, n)
        As `Network.column_environments`.
    jacobian : (P, n) value or None
        Transposed, of the cores asked for; None if these are none.
    """

    response: Value
    column_environments: Sequence[Value]
    jacobian: Value | None


def portable_design(g: Builder, Z: Value, phi: Value) -> Value:
    """`design` as a graph: (K·I, n) from an environment (K, n) and features (I, n)."""
    K, I = Z.shape[0], phi.shape[0]
    product = g.reshape(Z, (K, 1, ROWS)) * g.reshape(phi, (1, I, ROWS))
    return g.reshape(product, (K * I, ROWS))
