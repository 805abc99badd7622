"""The structured Gram matrix of one core: O(N·I·R²) instead of O(N·I²·R²).

With ``phi_i phi_j = Σ_s C_ijs psi_s`` (every basis knows its ψ and C) the Gram matrix is

    G[(r,i),(p,j)] = Σ_n w_n z_nr z_np phi_ni phi_nj = Σ_s C_ijs M[(r,p), s],
    M[(r,p), s] = Σ_n w_n z_nr z_np psi_ns,   r ≤ p:

one matrix product per row block and a small expansion that never sees the rows. The N × IR design
matrix is never formed.
"""

from functools import lru_cache

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from tensorlace._types import Array

__all__ = ["block_rows", "expand", "moments", "padded", "pair_products"]

_CACHE_BYTES = 1 << 21
"""The pair products of one row block should stay close to a core; measured best at 1 to 2 MB."""


def block_rows(rank: int) -> int:
    """Rows per block: a power of two so that R(R+1)/2 pair products fill one to two megabytes."""
    pairs = max(rank * (rank + 1) // 2, 1)
    return int(2 ** np.clip(np.floor(np.log2(_CACHE_BYTES / (8 * pairs))), 6, 10))


def pair_products(Z: Array) -> Array:
    """All products of two rows of an environment ``Z`` (R, n), (R(R+1)/2, n), by distance.

    First the squares, then row r times row r + 1 for all r, the first row following the last, and
    so on up to rows R/2 apart. So two calls do, during which other threads can work.
    """
    R, n = Z.shape
    full = (R + 1) // 2  # distances that each row has; if R is even, R/2 is met from both ends
    W = np.empty((R * (R + 1) // 2, n), dtype=Z.dtype)
    twice = np.concatenate([Z, Z[: full - 1]])
    shifted = as_strided(twice, (full, R, n), (twice.strides[0], *twice.strides), writeable=False)
    np.multiply(Z, shifted, out=W[: full * R].reshape(full, R, n))
    if R % 2 == 0:
        np.multiply(Z[:full], Z[full:], out=W[full * R :])
    return W


@lru_cache(maxsize=64)
def _by_distance(rank: int) -> npt.NDArray[np.intp]:
    """Where `pair_products` has the pairs r ≤ p, row by row of the upper triangle."""
    r, p = np.triu_indices(rank)
    near = p - r < (rank + 1) // 2
    far = (r + rank - p) % rank  # the way round the end
    same = 2 * (p - r) == rank
    index = np.where(near, (p - r) * rank + r, far * rank + p)
    index[same] = (rank + 1) // 2 * rank + r[same]
    index.setflags(write=False)
    return index


def padded(psi: Array, dtype: npt.DTypeLike = np.float64) -> Array:
    """``psi`` (S, n) as (n, S'), S' a multiple of 64 bytes: what matrix kernels like best."""
    S, n = psi.shape
    lanes = 64 // np.dtype(dtype).itemsize
    out = np.zeros((n, -(-S // lanes) * lanes), dtype=dtype)
    out[:, :S] = psi.T
    return out


def moments(psi: Array, Z: Array) -> Array:
    """``M`` (R(R+1)/2, S') of a block, pairs r ≤ p: padded ``psi`` (n, S') and ``Z`` (R, n)."""
    M: Array = (pair_products(Z) @ psi).take(_by_distance(len(Z)), axis=0)
    return M


@lru_cache(maxsize=64)
def _pair_index(rank: int) -> npt.NDArray[np.intp]:
    index = np.empty((rank, rank), dtype=np.intp)
    rows, cols = np.triu_indices(rank)
    index[rows, cols] = index[cols, rows] = np.arange(rows.size)
    index.setflags(write=False)
    return index


def expand(M: Array, closure: Array, rank: int) -> Array:
    """Gram matrix (R·I, R·I) from summed moments ``M`` and the product closure ``C`` (I, I, S)."""
    I, _, S = closure.shape
    T = (M[:, :S] @ closure.reshape(I * I, S).T).reshape(-1, I, I)
    G: Array = T[_pair_index(rank)].swapaxes(1, 2).reshape(rank * I, rank * I)
    return G
