"""The tensor-train network: cores, environments, design matrices, predictions, Hessians.

A train is a tuple of cores ``V^(d)`` (r_d, I_d, r_(d+1)) with r_0 = r_D = 1 and
``f(x) = V^(1)[phi_1(x_1)] ... V^(D)[phi_D(x_D)]``, a product of small matrices. Like the CPD of
`networks` it is linear in every core, so ``design`` gives ALS, the Jacobian, all five curvatures
and the linearised predictive. Features are laid out functions first, rows last: (I_d, n).
"""

from collections.abc import Sequence

import numpy as np

from tensorlace._types import Array

__all__ = [
    "Train",
    "als",
    "design",
    "environments",
    "hessian",
    "initialise",
    "jacobian",
    "orthogonalise",
    "predict",
]

Train = tuple[Array, ...]
Phi = Sequence[Array]


def initialise(
    constants: Sequence[Array], rank: int, rng: np.random.Generator, noise: float = 0.3
) -> Train:
    """A train near the constant function 1.

    ``constants[d]`` (I_d,) are the coefficients of 1 in the basis of column d; a rank is at most
    what the sizes to its left or right can use.
    """
    sizes = [len(c) for c in constants]
    D = len(sizes)
    ranks = [
        min(rank, int(np.prod(sizes[:d], dtype=float)), int(np.prod(sizes[d:], dtype=float)))
        for d in range(D + 1)
    ]
    ranks[0] = ranks[D] = 1
    cores = []
    for d, c in enumerate(constants):
        shape = (ranks[d], len(c), ranks[d + 1])
        core = rng.standard_normal(shape) * (noise / np.sqrt(np.prod(shape)))
        core[0, :, 0] += c
        cores.append(core)
    return tuple(cores)


def _matrices(cores: Train, phi: Phi) -> list[Array]:
    """Values of all cores, ``V^(d)[phi_d]``: D arrays (n, r_d, r_(d+1))."""
    return [np.einsum("ris,in->nrs", V, p) for V, p in zip(cores, phi, strict=True)]


def environments(cores: Train, phi: Phi) -> tuple[list[Array], list[Array]]:
    """Products left (n, r_d) and right (n, r_(d+1)) of every core."""
    M, n = _matrices(cores, phi), phi[0].shape[1]
    left, right = [np.ones((n, 1))], [np.ones((n, 1))]
    for m in M[:-1]:
        left.append(np.einsum("nr,nrs->ns", left[-1], m))
    for m in M[:0:-1]:
        right.append(np.einsum("nrs,ns->nr", m, right[-1]))
    return left, right[::-1]


def predict(cores: Train, phi: Phi) -> Array:
    """Model response ``f`` (n,).

    >>> import numpy as np
    >>> V = (np.array([[[1.0], [2.0]]]), np.array([[[3.0], [0.5]]]))   # rank 1, D = 2, I = 2
    >>> phi = [np.array([[1.0], [10.0]]), np.array([[1.0], [4.0]])]
    >>> predict(V, phi)                                     # (1 + 2*10) * (3 + 0.5*4)
    array([105.])
    """
    out = np.ones((phi[0].shape[1], 1))
    for m in _matrices(cores, phi):
        out = np.einsum("nr,nrs->ns", out, m)
    f: Array = out[:, 0]
    return f


def design(left: Array, phi: Array, right: Array) -> Array:
    """Transposed design matrix of a core (r·I·s, n): ``f = A^(d) vec(V^(d))``."""
    return np.einsum("nr,in,ns->risn", left, phi, right).reshape(-1, phi.shape[1])


def jacobian(cores: Train, phi: Phi, which: Sequence[int] | None = None) -> Array:
    """Transposed Jacobian of the response (P, n), or of the cores ``which`` only."""
    left, right = environments(cores, phi)
    cores_of = range(len(cores)) if which is None else which
    return np.concatenate([design(left[d], phi[d], right[d]) for d in cores_of])


def orthogonalise(cores: Train, d: int) -> Train:
    """The same function with all weight in core d: its neighbours are orthogonal matrices.

    Then the norm of core d is that of the whole weight tensor, so a ridge on it is one on the
    function.
    """
    out = list(cores)
    for k in range(d):
        r, I, s = out[k].shape
        Q, R = np.linalg.qr(out[k].reshape(r * I, s))
        out[k] = Q.reshape(r, I, -1)
        out[k + 1] = np.tensordot(R, out[k + 1], 1)
    for k in range(len(out) - 1, d, -1):
        r, I, s = out[k].shape
        Q, R = np.linalg.qr(out[k].reshape(r, I * s).T)
        out[k] = Q.T.reshape(-1, I, s)
        out[k - 1] = np.tensordot(out[k - 1], R.T, 1)
    return tuple(out)


def als(
    cores: Train, phi: Phi, y: Array, ridge: float, n_sweeps: int, end: int = 0
) -> tuple[Train, list[float]]:
    """Alternating least squares, forth and back; the last update is that of core ``end``.

    Each core in turn minimises ``‖y - f‖² + ridge ‖w‖²`` of the whole weight tensor w, which is
    the norm of the core because the others are orthogonal. The objective never rises.

    Returns
    -------
    cores, objectives
        The objective after every update.
    """
    D = len(cores)
    forth = list(range(D))
    order = (forth + forth[-2:0:-1]) * n_sweeps if D > 1 else [0] * n_sweeps
    order += list(range(end + 1))
    history = []
    for d in order:
        cores = orthogonalise(cores, d)
        left, right = environments(cores, phi)
        A = design(left[d], phi[d], right[d])
        G = A @ A.T
        G[np.diag_indices_from(G)] += ridge
        v = np.linalg.solve(G, A @ y).astype(np.float64, copy=False)
        cores = (*cores[:d], v.reshape(cores[d].shape), *cores[d + 1 :])
        history.append(float(np.sum((y - v @ A) ** 2) + ridge * (v @ v)))
    return cores, history


def hessian(
    cores: Train, phi: Phi, y: Array, beta: float, gamma: float, curvature: str, core: int = -1
) -> Array:
    """The precision matrix of one of the paper's five Hessians, dense: for small trains.

    ``curvature`` is "full", "ggn", "block", "diag" or "last" (core ``core`` alone); the prior
    precision ``gamma`` is that of every weight.
    """
    which = [range(len(cores))[core]] if curvature == "last" else None
    J = jacobian(cores, phi, which)
    H = beta * (J @ J.T)
    of_core = np.repeat(np.arange(len(cores)), [V.size for V in cores])
    if curvature == "full":
        H += beta * _residual_curvature(cores, phi, predict(cores, phi) - y)
    elif curvature == "block":
        H = np.where(of_core[:, None] == of_core, H, 0.0)
    elif curvature == "diag":
        H = np.diag(np.diagonal(H))
    elif curvature not in ("ggn", "last"):
        raise ValueError(f"no curvature {curvature!r}: full, ggn, block, diag or last")
    return H + gamma * np.eye(len(H))


def _residual_curvature(cores: Train, phi: Phi, misfit: Array) -> Array:
    """What the Hessian has and Gauss-Newton has not: second derivatives between cores."""
    starts = np.cumsum([0, *(V.size for V in cores)])
    left, right = environments(cores, phi)
    M = _matrices(cores, phi)
    E = np.zeros((starts[-1],) * 2)
    for k in range(len(cores) - 1):
        between = np.broadcast_to(np.eye(M[k].shape[2]), (len(misfit), *[M[k].shape[2]] * 2))
        for m in range(k + 1, len(cores)):
            # core k is (a, i, b), core m is (c, j, d)
            first = np.einsum("n,na,in->ain", misfit, left[k], phi[k])
            last = np.einsum("jn,nd->jdn", phi[m], right[m])
            tile = np.einsum("ain,nbc,jdn->aibcjd", first, between, last, optimize=True)
            tile = tile.reshape(cores[k].size, cores[m].size)
            E[starts[k] : starts[k + 1], starts[m] : starts[m + 1]] = tile
            E[starts[m] : starts[m + 1], starts[k] : starts[k + 1]] = tile.T
            between = between @ M[m]
    return E
