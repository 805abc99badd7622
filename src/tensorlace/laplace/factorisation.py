"""From a Hessian to a posterior: the only factorisation of one, and the only truncation."""

from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from tensorlace._types import Array
from tensorlace.laplace.posterior import Blocks, Diagonal, Posterior, Root
from tensorlace.linalg.symmetric import NOISE, eigen, inverse_root, solve

__all__ = ["Truncation", "dense", "diagonal", "indefinite", "truncated"]

Mask = npt.NDArray[np.bool_]


@final
@dataclass(frozen=True)
class Truncation:
    """The ``t̂`` of section 3.2, Eigenvalues: directions of the Hessian below it are certain.

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
    if not gamma.size:  # a core without terms
        return _root(np.zeros((0, 0)), gamma, 0)
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
    return _root(U[:, kept] / np.sqrt(lam[kept]), lam[kept], int(np.sum(~kept)))


def _root(W: Array, lam: Array, n_dropped: int) -> Root:
    return Root(W, float(np.sum(np.log(lam))), n_dropped, lam)


def diagonal(h: Array, truncation: Truncation) -> Diagonal:
    """Posterior of independent weights with precisions ``h`` (P,): its eigenvalues are these."""
    return _diagonal(h, truncation.kept(h, float(h.max())))


def _diagonal(h: Array, kept: Mask) -> Diagonal:
    return Diagonal(np.where(kept, 1.0 / np.where(kept, h, 1.0), 0.0), int(np.sum(~kept)), h)


def truncated(posterior: Posterior, truncation: Truncation) -> Posterior:
    """A posterior cut at a lower ``t̂``, cut again: no further eigendecomposition.

    Parameters
    ----------
    posterior : Root, Diagonal or Blocks of these
        Made with a threshold, so that its eigenvalues are known.
    truncation : Truncation
        With a threshold not below the former one; in units of the largest eigenvalue of all blocks
        if relative.

    Examples
    --------
    >>> q = dense(np.diag([1.0, 2.0, 4.0]), 1.0, np.ones(3), Truncation(0.0))
    >>> truncated(q, Truncation(3.0)).variances()
    array([0.        , 0.33333333, 0.2       ])
    """
    parts = posterior.independent
    known = [p.eigenvalues for p in parts if isinstance(p, Root | Diagonal)]
    spectra = [lam for lam in known if lam is not None]
    if len(spectra) < len(parts):
        raise ValueError("the posterior knows no eigenvalues: make it with a threshold")
    largest = max(float(lam.max(initial=0.0)) for lam in spectra)
    cut: list[Posterior] = []
    for part, lam in zip(parts, spectra, strict=True):
        kept = truncation.kept(lam, largest)
        if isinstance(part, Root):
            n_dropped = part.n_dropped + int(np.sum(~kept))
            cut.append(_root(part.W[:, kept], lam[kept], n_dropped))
        else:
            cut.append(_diagonal(lam, kept))
    return cut[0] if len(cut) == 1 else Blocks(tuple(cut))
