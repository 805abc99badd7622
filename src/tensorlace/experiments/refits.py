"""One MAP fit, many posteriors: other curvatures and thresholds at the same cores."""

from dataclasses import dataclass, replace
from typing import Self, final

import numpy as np

from tensorlace.bases.basis import Array
from tensorlace.curvature import BlockDiagonal, Curvature, Diag, Full
from tensorlace.estimators import TNKMRegressor
from tensorlace.linalg import eigen
from tensorlace.linearisation import residual_curvature
from tensorlace.machines import KernelMachine
from tensorlace.networks import jacobian, predict
from tensorlace.posterior import Root
from tensorlace.precision import GammaVI
from tensorlace.rows import MemoryRows
from tensorlace.truncation import Truncation

__all__ = ["Refit"]

_ROUNDS, _TOL = 500, 1e-8
_BATCH = 1 << 22


@final
@dataclass(frozen=True)
class Refit:
    """A fitted machine whose Hessian is taken apart once, for all thresholds.

    With one prior precision the Hessian ``β M + γ I`` has the eigenvectors of ``M`` whatever β is.

    Attributes
    ----------
    base : KernelMachine
        Cores and columns; its posterior is not looked at.
    curvature : Curvature
        Which Hessian.
    n_rows, rss : float
        Rows, and residual sum of squares of the standardised target.
    values, vectors : (P,) and (P, P) arrays
        Eigenvalues and eigenvectors (columns) of ``M``.
    load : (P,) array
        ``u_kᵀ AᵀA u_k``: what a unit of variance in direction k adds to the expected residual.
    """

    base: KernelMachine
    curvature: Curvature
    n_rows: int
    rss: float
    values: Array
    vectors: Array
    load: Array

    @classmethod
    def of(
        cls, model: TNKMRegressor, X: Array, y: Array, curvature: Curvature | None = None
    ) -> Self:
        """Take apart the Hessian of a fitted model of one machine on its training rows.

        ``curvature`` is that of the model by default; the prior precision must be one for all
        weights.
        """
        (base,) = model.machines_
        curvature = curvature or base.fit.curvature
        cores = base.fit.cores
        which = curvature.bayesian_cores(len(cores))
        of_core = np.repeat(np.arange(len(which)), [cores[d].size for d in which])
        u, target = base.columns.variables(X), base.target(y)
        G, rss = np.zeros((len(of_core),) * 2), 0.0
        step = max(64, _BATCH // sum(V.size for V in cores))
        for a in range(0, len(y), step):
            phi = [c.phi(v[a : a + step]) for c, v in zip(base.columns.columns, u, strict=True)]
            J = jacobian(cores, phi, which)
            G += J @ J.T
            rss += float(np.sum((target[a : a + step] - predict(cores, phi)) ** 2))
        M = G
        if isinstance(curvature, BlockDiagonal):
            M = np.where(of_core[:, None] == of_core, G, 0.0)
        elif isinstance(curvature, Diag):
            M = np.diag(np.diagonal(G))
        elif isinstance(curvature, Full):
            bases = [c.basis for c in base.columns.columns]
            with MemoryRows(u, target, None, bases, block_rows=512) as rows:
                M = G + residual_curvature(rows, cores)
        values, vectors = eigen(M)
        load = np.einsum("pk,pk->k", vectors, G @ vectors)
        return cls(base, curvature, len(y), rss, values, vectors, load)

    @property
    def prior_precision(self) -> float:
        """The one prior precision γ."""
        return float(self.base.fit.gamma[0].flat[0])

    def eigenvalues(self, beta: float) -> Array:
        """Eigenvalues (P,) of the Hessian."""
        if isinstance(self.curvature, Full):
            return beta * self.values + self.prior_precision
        return beta * np.maximum(self.values, 0.0) + self.prior_precision

    def noise_precision(self, threshold: float | None) -> float:
        """β of the Gamma-VI, appendix A.2, at these cores under a threshold.

        The fixed point of ``β = (a + N/2) / (b + E‖y - f‖²/2)``, where only the directions that
        the threshold leaves at this β add to the expectation.
        """
        policy, beta = GammaVI(), self.base.fit.beta
        for _ in range(_ROUNDS):
            h = self.eigenvalues(beta)
            kept = Truncation(threshold).kept(h, float(h.max()))
            expected = self.rss + float(np.sum(self.load[kept] / h[kept]))
            new = (policy.a + 0.5 * self.n_rows) / (policy.b + 0.5 * expected)
            if abs(new - beta) <= _TOL * beta:
                break
            beta = new
        return beta

    def machine(self, threshold: float | None, beta: float | None = None) -> KernelMachine:
        """The machine with the posterior of this curvature, threshold and noise precision."""
        beta = self.base.fit.beta if beta is None else beta
        h = self.eigenvalues(beta)
        kept = Truncation(threshold).kept(h, float(h.max()))
        W = self.vectors[:, kept] / np.sqrt(h[kept])
        posterior = Root(W, float(np.sum(np.log(h[kept]))), int(np.sum(~kept)))
        fit = replace(self.base.fit, beta=beta, curvature=self.curvature, posterior=posterior)
        return replace(self.base, fit=fit)
