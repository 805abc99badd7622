"""The CPD network: cores, environments, design matrices, predictions (paper, section 2).

A network is a tuple of cores ``V^(d)`` of shape (R, I_d), to which an additive part may be appended
as one more core ``a`` (1, Σ_d I_d) on the features of all columns: ``f = CPD + Σ_d a_dᵀ phi_d``. A
sum of one-column functions would cost the CPD a rank of D. Features are laid out functions first,
rows last: ``phi[d]`` is (I_d, n). All products of factors run left to right (prefix) or right to
left (suffix), never by division, so a factor that is exactly zero harms nobody.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from tensorlace._types import Array

__all__ = [
    "Cores",
    "additive_response",
    "balance",
    "design",
    "environments",
    "factors",
    "from_vector",
    "initialise",
    "jacobian",
    "predict",
    "to_vector",
]

Cores = tuple[Array, ...]
Phi = Sequence[Array]


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


def factors(cores: Cores, phi: Phi) -> list[Array]:
    """Values of all one-column functions, ``F^(d) = V^(d) phi^(d)``: D arrays of (R, n)."""
    return [V @ p for V, p in zip(cores, phi, strict=False)]


def additive_response(a: Array, phi: Phi) -> Array:
    """Sum over the columns of ``a_dᵀ phi_d`` (n,), from ``a`` (1, Σ_d I_d)."""
    f = np.zeros(phi[0].shape[1])
    start = 0
    for p in phi:
        f += a[0, start : start + len(p)] @ p
        start += len(p)
    return f


def predict(cores: Cores, phi: Phi) -> Array:
    """Model response ``f`` (n,), lemma (lemma_1): sum over rank terms of products over columns.

    In O(n·D·I·R), theorem (CPD_km).

    >>> import numpy as np
    >>> V = (np.array([[1.0, 2.0]]), np.array([[3.0, 0.5]]))   # R = 1, D = 2, I = 2
    >>> phi = [np.array([[1.0], [10.0]]), np.array([[1.0], [4.0]])]
    >>> predict(V, phi)                                     # (1 + 2*10) * (3 + 0.5*4)
    array([105.])
    """
    product = cores[0] @ phi[0]
    for V, p in zip(cores[1:], phi[1:], strict=False):
        product *= V @ p
    f: Array = product.sum(axis=0)
    if len(cores) > len(phi):
        f += additive_response(cores[-1], phi)
    return f


def suffixes(F: Iterable[Array]) -> list[Array | None]:
    """Products to the right of each core, from the factors of all cores but the first.

    Entry d is ``F^(d+1) * ... * F^(D)``, None for the last core.
    """
    out: list[Array | None] = [None]
    for factor in reversed(list(F)):
        right = out[-1]
        out.append(factor if right is None else factor * right)
    return out[::-1]


def combine(prefix: Array | None, suffix: Array | None, shape: tuple[int, int]) -> Array:
    """Environment from the products to the left and to the right (None: empty product)."""
    if prefix is None:
        return np.ones(shape) if suffix is None else suffix
    return prefix if suffix is None else prefix * suffix


def environments(F: Sequence[Array]) -> list[Array]:
    """All ``Z^(d)`` (R, n): the product of every factor but the d-th, eq. (wk_update_specs)."""
    right = suffixes(F[1:])
    out, prefix = [], None
    for d, factor in enumerate(F):
        out.append(combine(prefix, right[d], factor.shape))
        prefix = factor if prefix is None else prefix * factor
    return out


def design(Z: Array, phi: Array) -> Array:
    """Transposed design matrix of one core, ``A^(d)T`` (R·I, n) from ``Z`` (R, n), ``phi`` (I, n).

    Row ``r·I + i`` is ``z_r phi_i``: the row-wise Khatri-Rao product of eq. (wk_update_specs).
    The response is ``A^(d) vec(V^(d))`` for each d.
    """
    return (Z[:, None, :] * phi[None, :, :]).reshape(-1, Z.shape[1])


def jacobian(cores: Cores, phi: Phi, which: Sequence[int] | None = None) -> Array:
    """Transposed Jacobian ``A^T`` of the response (P, n), or of the cores ``which`` only.

    Its columns are the gradients of eq. (linear_f), its transpose the ``A`` of eq. (ggn_hess).
    """
    Z = environments(factors(cores, phi))
    parts: list[Array] = []
    for d in which or range(len(cores)):
        parts += [design(Z[d], phi[d])] if d < len(phi) else phi
    return np.concatenate(parts)


def balance(cores: Cores, gamma: Cores, n_columns: int | None = None) -> Cores:
    """Rescale each rank-one term so that its D penalties ``v_r^(d)T Γ v_r^(d)`` are equal.

    The response is unchanged (the scales of a term multiply to one) and the penalty never rises
    (arithmetic against geometric mean). ``gamma`` holds the prior precisions in the shape of the
    cores; where they are zero the plain norm is balanced instead. Terms with a zero factor stay and
    so does an additive part, which follows the ``n_columns`` cores.
    """
    cores, rest = cores[:n_columns], cores[len(cores) if n_columns is None else n_columns :]
    v, g = to_vector(cores), to_vector(gamma[: len(cores)])
    if not g.all():
        g = to_vector([G if G.any() else np.ones_like(G) for G in gamma[: len(cores)]])
    # all factors in one array: a call per column would cost more than the arithmetic
    lengths = np.repeat([V.shape[1] for V in cores], [len(V) for V in cores])
    penalty = np.add.reduceat(g * v * v, np.cumsum(lengths) - lengths).reshape(len(cores), -1)
    alive = np.all(penalty > 0, axis=0) & np.all(np.isfinite(penalty), axis=0)
    log = np.log(np.where(alive, penalty, 1.0))  # (D, R)
    scale = np.exp(0.5 * (log.mean(axis=0) - log))
    return (*from_vector(v * np.repeat(scale.ravel(), lengths), cores), *rest)


def initialise(
    constants: Sequence[Array],
    rank: int,
    rng: np.random.Generator,
    noise: float = 0.3,
    *,
    additive: bool = False,
) -> Cores:
    """Random cores near the constant function.

    Each factor is ± the constant function (``constants[d]``, (I_d,)) plus a little noise, scaled so
    that the R terms together have the size of the standardised target. Products of D plain random
    factors would vanish or explode. An additive part begins at zero. Nothing here depends on the
    number of rows.
    """
    D = len(constants)
    scale = max(rank, 1) ** (-1.0 / D)
    cores = []
    for c in constants:
        sign: npt.NDArray[np.float64] = rng.choice([-1.0, 1.0], size=(rank, 1))
        wiggle = rng.standard_normal((rank, len(c))) * (noise / np.sqrt(max(len(c), 1)))
        cores.append(scale * (sign * c + wiggle))
    if additive:
        cores.append(np.zeros((1, sum(map(len, constants)))))
    return tuple(cores)
