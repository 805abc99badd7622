"""One MAP fit, many posteriors: other curvatures and thresholds at the same cores."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self, final

import numpy as np

from tensorlace._types import Array, Mask
from tensorlace.estimators.regressor import TNKMRegressor
from tensorlace.laplace.curvature import BlockDiagonal, Curvature, Diag, Full
from tensorlace.laplace.factorisation import Truncation
from tensorlace.laplace.posterior import Blocks, Root
from tensorlace.laplace.precision import GammaVI
from tensorlace.linalg.symmetric import eigen
from tensorlace.machines.machine import KernelMachine
from tensorlace.networks.cpd import jacobian, predict
from tensorlace.rows.memory import MemoryRows
from tensorlace.solvers.linearisation import residual_curvature

__all__ = ["Part", "Refit"]

_ROUNDS, _TOL = 500, 1e-8
_BATCH = 1 << 22


@final
@dataclass(frozen=True)
class Part:
    """Eigenvalues (p,) and eigenvectors (p, p) of a diagonal block of ``M``.

    ``load`` (p,) is ``u_kᵀ AᵀA u_k``: what a unit of variance in direction k adds to the expected
    residual.
    """

    values: Array
    vectors: Array
    load: Array

    @classmethod
    def of(cls, M: Array, G: Array) -> Self:
        """Take a block ``M`` apart, where the Jacobian's Gram matrix is ``G``."""
        values, vectors = eigen(M)
        return cls(values, vectors, np.einsum("pk,pk->k", vectors, G @ vectors))


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
    parts : tuple of Part
        The blocks of ``M``: one per core for Block, one in all for the others.
    """

    base: KernelMachine
    curvature: Curvature
    n_rows: int
    rss: float
    parts: tuple[Part, ...]

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
        groups = [(d,) for d in which] if isinstance(curvature, BlockDiagonal) else [tuple(which)]
        u, target = base.columns.variables(X), base.target(y)
        grams = [np.zeros((sum(cores[d].size for d in group),) * 2) for group in groups]
        rss, step = 0.0, max(64, _BATCH // sum(V.size for V in cores))
        for a in range(0, len(y), step):
            phi = [c.phi(v[a : a + step]) for c, v in zip(base.columns.columns, u, strict=True)]
            for G, group in zip(grams, groups, strict=True):
                J = jacobian(cores, phi, group)
                G += J @ J.T
            rss += float(np.sum((target[a : a + step] - predict(cores, phi)) ** 2))
        hessians = grams
        if isinstance(curvature, Diag):
            hessians = [np.diag(np.diagonal(G)) for G in grams]
        elif isinstance(curvature, Full):
            bases = [c.basis for c in base.columns.columns]
            with MemoryRows(u, target, None, bases, block_rows=512) as rows:
                hessians = [grams[0] + residual_curvature(rows, base.fit.network)]
        parts = tuple(map(Part.of, hessians, grams))
        return cls(base, curvature, len(y), rss, parts)

    @property
    def prior_precision(self) -> float:
        """The one prior precision γ."""
        return float(self.base.fit.gamma[0].flat[0])

    def eigenvalues(self, beta: float) -> list[Array]:
        """Eigenvalues (p,) of the Hessian, part by part."""
        lowest = -np.inf if isinstance(self.curvature, Full) else 0.0
        return [
            beta * np.maximum(part.values, lowest) + self.prior_precision for part in self.parts
        ]

    def largest(self, beta: float) -> float:
        """Largest eigenvalue of the Hessian."""
        return max(float(h.max()) for h in self.eigenvalues(beta))

    def _kept(self, threshold: float | None, beta: float) -> Iterator[tuple[Part, Array, Mask]]:
        """Parts, their eigenvalues at β and which of these a threshold leaves."""
        largest = self.largest(beta)
        for part, h in zip(self.parts, self.eigenvalues(beta), strict=True):
            yield part, h, Truncation(threshold).kept(h, largest)

    def noise_precision(self, threshold: float | None) -> float:
        """β of the Gamma-VI, appendix A.2, at these cores under a threshold.

        The fixed point of ``β = (a + N/2) / (b + E‖y - f‖²/2)``, where only the directions that
        the threshold leaves at this β add to the expectation.
        """
        policy, beta = GammaVI(), self.base.fit.beta
        for _ in range(_ROUNDS):
            found = self._kept(threshold, beta)
            expected = self.rss + sum(float(np.sum(p.load[kept] / h[kept])) for p, h, kept in found)
            new = (policy.a + 0.5 * self.n_rows) / (policy.b + 0.5 * expected)
            if abs(new - beta) <= _TOL * beta:
                break
            beta = new
        return beta

    def machine(self, threshold: float | None, beta: float | None = None) -> KernelMachine:
        """The machine with the posterior of this curvature, threshold and noise precision."""
        beta = self.base.fit.beta if beta is None else beta
        roots = [
            Root(
                part.vectors[:, kept] / np.sqrt(h[kept]),
                float(np.sum(np.log(h[kept]))),
                int(np.sum(~kept)),
            )
            for part, h, kept in self._kept(threshold, beta)
        ]
        posterior = roots[0] if len(roots) == 1 else Blocks(tuple(roots))
        fit = replace(self.base.fit, beta=beta, curvature=self.curvature, posterior=posterior)
        return replace(self.base, fit=fit)
