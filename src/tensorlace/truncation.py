"""From a Hessian to a posterior: the only factorisation of one, and the only truncation."""

from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from tensorlace.bases.basis import Array
from tensorlace.linalg import NOISE, eigen, inverse_root, solve
from tensorlace.posterior import Root

__all__ = ["Truncation", "dense", "indefinite"]

Mask = npt.NDArray[np.bool_]


@final
@dataclass(frozen=True)
class Truncation:
    """The paper's ``t̂``: eigendirections of the Hessian below it are declared certain.

    Attributes
    ----------
    threshold : float or None
        None keeps every direction with a positive eigenvalue.
    relative : bool
        Measure the threshold in units of the largest eigenvalue.
    """

    threshold: float | None = None
    relative: bool = False

    def kept(self, eigenvalues: Array, largest: float, noise: float = 0.0) -> Mask:
        """Mask of the directions kept; never those below zero or rounding ``noise``."""
        if self.threshold is None:
            return eigenvalues > noise
        cut = self.threshold * (largest if self.relative else 1.0)
        return (eigenvalues >= cut) & (eigenvalues > noise)


def dense(
    G: Array, beta: float, gamma: Array, truncation: Truncation, largest: float | None = None
) -> Root:
    """Posterior with precision ``β G + diag(gamma)`` for positive semidefinite ``G`` (P, P).

    Untruncated, the matrix is whitened by the prior first: ``I + β Γ^(-1/2) G Γ^(-1/2)`` has no
    eigenvalue below one however small the prior precision is. Truncated (or with a flat prior), the
    eigendecomposition of the precision itself is cut at ``t̂``, relative to ``largest`` if given.
    """
    if truncation.threshold is None and np.all(gamma > 0):
        s = 1.0 / np.sqrt(gamma)
        K = beta * (G * s) * s[:, None]
        K[np.diag_indices_from(K)] += 1.0
        root = inverse_root(K)
        if root is not None:
            W, logdet = root
            return Root(s[:, None] * W, logdet + float(np.sum(np.log(gamma))))
    if gamma[0] > 0 and np.all(gamma == gamma[0]):
        # one common prior precision moves every eigenvalue alike: adding it last loses no digit
        lam, U = eigen(beta * G)
        lam, noise = np.maximum(lam, 0.0) + gamma[0], 0.0
    else:
        lam, U = eigen(beta * G + np.diag(gamma))
        noise = len(lam) * NOISE * float(lam[-1])
    return _from_eigen(lam, U, truncation, noise, largest)


def indefinite(H: Array, truncation: Truncation) -> Root:
    """Posterior with precision ``H`` (P, P) on the directions where that is positive (or ≥ t̂).

    Untruncated and clearly positive definite, ``H`` needs no eigenvalues: they are good to rounding
    of the largest only, which weights that ARD switched off (γ = 1e10) make very large.
    """
    root = inverse_root(H) if truncation.threshold is None else None
    if root is not None and solve(H, np.zeros(len(H))).rcond > len(H) * NOISE:
        return Root(*root)
    lam, U = eigen(H)
    return _from_eigen(lam, U, truncation, len(lam) * NOISE * float(np.abs(lam).max()), None)


def _from_eigen(
    lam: Array, U: Array, truncation: Truncation, noise: float, largest: float | None
) -> Root:
    kept = truncation.kept(lam, float(lam[-1]) if largest is None else largest, noise)
    W = U[:, kept] / np.sqrt(lam[kept])
    return Root(W, float(np.sum(np.log(lam[kept]))), int(np.sum(~kept)))
