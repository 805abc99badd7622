"""Variance of the response where only one core is uncertain, without its Jacobian."""

from dataclasses import dataclass
from functools import cached_property
from typing import Self, final

import numpy as np

from tensorlace._types import Array
from tensorlace.columns.bases.basis import Basis
from tensorlace.laplace.posterior import Root
from tensorlace.networks.network import design

__all__ = ["CoreVariance"]

_LOST_DIGITS = 1e-10
"""Relative error of a variance beyond which it is computed as a sum of squares instead."""


@final
@dataclass(frozen=True)
class CoreVariance:
    """``gᵀΣg`` with ``g = z ⊗ φ`` for the weights of one core, in O(R²·S) operations per row.

    As in `gram`, products of basis functions expand in ψ: the variance is
    ``Σ_rp z_r z_p Σ_s B_rps ψ_s`` with ``B_rps = Σ_ij Σ_ri,pj C_ijs``. That is no sum of squares,
    so rows where it cancelled are computed again as one, from ``Σ = W Wᵀ``.

    Attributes
    ----------
    root : Root
    basis : Basis
    B : (R(R+1)/2, S) array or None
        Pairs r ≤ p, those with r < p doubled. None where ``W`` is the cheaper way for all rows.
    """

    root: Root
    basis: Basis
    B: Array | None

    @classmethod
    def of(cls, root: Root, basis: Basis) -> Self:
        """Contract the covariance with the closure of the basis."""
        P, k = root.W.shape
        I, S = basis.n, basis.closure().shape[2]
        R = P // I
        if P * k <= R * (R + 1) // 2 * (S + 30):
            return cls(root, basis, None)
        covariance = (root.W @ root.W.T).reshape(R, I, R, I).transpose(0, 2, 1, 3)
        r, p = np.triu_indices(R)
        B = covariance[r, p].reshape(-1, I * I) @ basis.closure().reshape(I * I, S)
        return cls(root, basis, B * np.where(r == p, 1.0, 2.0)[:, None])

    @cached_property
    def bound(self) -> float:
        """Relative to ``(Σ_r |z_r|)²``, where too many digits cancelled if no |ψ| is above 1."""
        largest = 0.0 if self.B is None else np.abs(self.B).sum(axis=1).max()
        return float(np.finfo(float).eps * largest / _LOST_DIGITS)

    def squares(self, Z: Array, phi: Array) -> Array:
        """Variances (n,) as sums of squares."""
        return self.root.quad(design(Z, phi))

    def __call__(self, Z: Array, phi: Array, u: Array) -> Array:
        """Variances (n,) from ``Z`` (R, n), ``phi`` (I, n) and the variable ``u`` (n,)."""
        if self.B is None:
            return self.squares(Z, phi)
        novel = self.basis.novel(u)
        psi = self.basis.psi(np.where(novel, 0.0, u))
        T = self.B @ psi
        variance, start = np.zeros(u.shape), 0
        for r, z in enumerate(Z):
            stop = start + len(Z) - r
            variance += z * np.einsum("pn,pn->n", Z[r:], T[start:stop])
            start = stop
        least = self.bound * np.abs(psi).max(axis=0) * np.abs(Z).sum(axis=0) ** 2
        lost = np.flatnonzero((variance < least) | novel)
        if lost.size:
            variance[lost] = self.squares(Z[:, lost], phi[:, lost])
        return variance
