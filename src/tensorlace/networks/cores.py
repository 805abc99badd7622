"""Cores as one vector of weights, and products of an environment with features."""

from collections.abc import Iterable, Sequence

import numpy as np

from tensorlace._types import Array

__all__ = ["Cores", "Phi", "design", "from_vector", "pull", "to_vector"]

Cores = tuple[Array, ...]
"""Weights of a network: one matrix (K_d, I_d) for each core."""

Phi = Sequence[Array]
"""Features (I_d, n) of each column."""


def to_vector(cores: Iterable[Array]) -> Array:
    """Stack the cores into ``v`` (P,): core by core, term by term, definition (def_vec)."""
    return np.concatenate([V.ravel() for V in cores])


def from_vector(v: Array, like: Cores) -> Cores:
    """Cut ``v`` (P,) into cores of the shapes of ``like``."""
    parts, start = [], 0
    for V in like:
        parts.append(v[start : start + V.size].reshape(V.shape))
        start += V.size
    return tuple(parts)


def design(Z: Array, phi: Array) -> Array:
    """Transposed design matrix of one core, ``A^(d)T`` (K·I, n) from ``Z`` (K, n), ``phi`` (I, n).

    Row ``k·I + i`` is ``z_k phi_i``: the row-wise Khatri-Rao product of eq. (wk_update_specs).
    The response is ``A^(d) vec(V^(d))`` for each d.
    """
    return (Z[:, None, :] * phi[None, :, :]).reshape(-1, Z.shape[1])


def pull(Z: Array, phi: Array, q: Array) -> Array:
    """``Z (q φ)ᵀ`` (K, I): the scaling goes where it is cheaper."""
    return Z @ (phi * q).T if len(phi) < len(Z) else (Z * q) @ phi.T
