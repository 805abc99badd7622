"""The five Hessians of the paper (section 3.2): a sum over rows, and the posterior it gives.

Statistics hold no precision, so that β and Γ may change without a new pass over the rows.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from tensorlace._types import Array
from tensorlace.laplace.factorisation import Truncation, dense, diagonal, indefinite
from tensorlace.laplace.posterior import Blocks, LowRank, Posterior
from tensorlace.linalg.lapack import svd
from tensorlace.linalg.symmetric import eigen, inverse_root
from tensorlace.networks.network import Network, to_vector
from tensorlace.rows.memory import Rows
from tensorlace.solvers.als import core_system
from tensorlace.solvers.linearisation import (
    Linearisation,
    linearise,
    loss,
    residual_curvature,
)

__all__ = ["GGN", "BlockDiagonal", "Curvature", "Diag", "Evaluated", "Full", "Last"]


class Evaluated(ABC):
    """A curvature summed over the rows at given weights.

    Attributes
    ----------
    rss : float
        Weighted residual sum of squares at the cores.
    slope : (P,) array or None
        ``Aᵀ (y - f)`` of the Bayesian weights, where the sums have it.
    """

    rss: float
    slope: Array | None = None

    @abstractmethod
    def posterior(self, beta: float, gamma: Array, truncation: Truncation) -> Posterior:
        """Posterior of the Bayesian weights for β and prior precisions (P,), eq. (laplace)."""

    def determined(self, beta: float, gamma: Array) -> Array | None:
        """Shares ``1 - Γ_kk Σ_kk`` (P,) roughly, where that is quicker than a posterior."""
        return None

    @abstractmethod
    def expected_rss(self, posterior: Posterior) -> float:
        """``E‖y - f‖² = rss + tr(A Σ Aᵀ)`` of the linearised model, eq. (noise_precision)."""


class Curvature(ABC):
    """Which approximation of the Hessian is summed.

    Attributes
    ----------
    gauss_newton : bool
        ``β AᵀA + Γ`` over all weights: what the linearised model has, so that leverages of rows and
        the evidence without a term follow from its sums.
    convex : bool
        Positive definite at any weights, so that no direction has to be left out.
    one_core : bool
        One core has a distribution, and is exact given the others.
    """

    gauss_newton: ClassVar[bool] = False
    convex: ClassVar[bool] = True
    one_core: ClassVar[bool] = False

    @abstractmethod
    def bayesian_cores(self, D: int) -> tuple[int, ...]:
        """Numbers of the cores that have a distribution; the others are points."""

    def candidates(self, n_cores: int) -> tuple["Curvature", ...]:
        """What it may turn out to be: itself, unless evidence has to choose."""
        return (self,)

    def fits(self, n_cores: int) -> bool:
        """Whether a network of ``n_cores`` cores can have it, all choices made."""
        return True

    @abstractmethod
    def numbers(self, weights: Sequence[int]) -> int:
        """Numbers that its matrices take for cores of ``weights``."""

    @abstractmethod
    def evaluate(self, rows: Rows, network: Network, linear: Linearisation | None) -> Evaluated:
        """Sum over the rows at ``network``, where a linearisation ``linear`` may exist already."""


@final
@dataclass(frozen=True)
class _Joint(Evaluated):
    """``H = β (AᵀA + E) + Γ`` over all weights; ``E`` is the residual part of the full Hessian."""

    linear: Linearisation
    E: Array | None

    @property
    def rss(self) -> float:  # type: ignore[override]
        """Weighted residual sum of squares."""
        return self.linear.rss

    @property
    def slope(self) -> Array:  # type: ignore[override]
        """``Aᵀ (y - f)`` of all weights."""
        return self.linear.slope

    def posterior(self, beta: float, gamma: Array, truncation: Truncation) -> Posterior:
        """Low rank if there are fewer rows than weights, else dense."""
        if self.E is not None:
            H = beta * (self.linear.dense_gram() + self.E) + np.diag(gamma)
            return indefinite(H, truncation)
        J = self.linear.rows
        if J is None or truncation.threshold is not None or not np.all(gamma > 0):
            return dense(self.linear.dense_gram(), beta, gamma, truncation)
        s = 1.0 / np.sqrt(gamma)
        U, sigma, _ = svd(np.sqrt(beta) * s[:, None] * J)
        return LowRank.of(s, U, 1.0 / (1.0 + sigma**2))

    def determined(self, beta: float, gamma: Array) -> Array | None:
        """``diag(Bᵀ (I + B Bᵀ)⁻¹ B)`` of the whitened Jacobian, if rows are fewer than weights."""
        if self.linear.rows is None or self.E is not None or not np.all(gamma > 0):
            return None
        B = self.linear.rows * np.sqrt(beta / gamma)[:, None]  # (P, N)
        K = B.T @ B
        K[np.diag_indices_from(K)] += 1.0
        root = inverse_root(K)
        if root is None:
            return None
        T = B @ root[0]
        return np.einsum("pn,pn->p", T, T)

    def expected_rss(self, posterior: Posterior) -> float:
        """``rss + tr(A Σ Aᵀ)``."""
        if self.linear.rows is not None:
            return self.rss + float(posterior.quad(self.linear.rows).sum())
        G = self.linear.dense_gram()
        return self.rss + float(np.einsum("pq,qp->", G, posterior.solve(np.eye(len(G)))))


@final
@dataclass(frozen=True)
class _Grams(Evaluated):
    """One Gram matrix per Bayesian core, the cores independent of each other."""

    grams: tuple[Array, ...]
    rss: float
    slope: Array | None = None

    def posterior(self, beta: float, gamma: Array, truncation: Truncation) -> Posterior:
        """A dense posterior per core; a relative t̂ refers to the largest eigenvalue of all."""
        parts = np.split(gamma, np.cumsum([len(G) for G in self.grams])[:-1])
        largest = None
        if truncation.relative and len(parts) > 1:
            largest = max(
                float(eigen(beta * G + np.diag(g))[0].max(initial=0.0))
                for G, g in zip(self.grams, parts, strict=True)
            )
        posteriors = tuple(
            dense(G, beta, g, truncation, largest) for G, g in zip(self.grams, parts, strict=True)
        )
        return posteriors[0] if len(posteriors) == 1 else Blocks(posteriors)

    def expected_rss(self, posterior: Posterior) -> float:
        """``rss + Σ_d tr(G_d Σ_d)``."""
        parts = posterior.independent
        return self.rss + sum(
            float(np.einsum("pq,qp->", G, p.solve(np.eye(len(G)))))
            for G, p in zip(self.grams, parts, strict=True)
        )


@final
@dataclass(frozen=True)
class _Squares(Evaluated):
    """The diagonal of ``AᵀA``."""

    squares: Array
    rss: float

    def posterior(self, beta: float, gamma: Array, truncation: Truncation) -> Posterior:
        """Independent weights; the eigenvalues are the diagonal itself."""
        return diagonal(beta * self.squares + gamma, truncation)

    def expected_rss(self, posterior: Posterior) -> float:
        """``rss + Σ_k (AᵀA)_kk Σ_kk``."""
        return self.rss + float(self.squares @ posterior.variances())


@final
@dataclass(frozen=True)
class GGN(Curvature):
    """Generalised Gauss-Newton, ``H = β AᵀA + Γ``, eq. (ggn_hess)."""

    gauss_newton: ClassVar[bool] = True

    def numbers(self, weights: Sequence[int]) -> int:
        """A matrix of all weights, its factor and a copy."""
        return 3 * sum(weights) ** 2

    def bayesian_cores(self, D: int) -> tuple[int, ...]:
        """All."""
        return tuple(range(D))

    def evaluate(self, rows: Rows, network: Network, linear: Linearisation | None) -> Evaluated:
        """``AᵀA`` over the rows."""
        return _Joint(linear or linearise(rows, network), None)


@final
@dataclass(frozen=True)
class Full(Curvature):
    """The Hessian itself of theorem (full_hess): GGN plus a residual term between columns."""

    convex: ClassVar[bool] = False

    def numbers(self, weights: Sequence[int]) -> int:
        """A matrix of all weights, its factor and a copy."""
        return 3 * sum(weights) ** 2

    def bayesian_cores(self, D: int) -> tuple[int, ...]:
        """All."""
        return tuple(range(D))

    def evaluate(self, rows: Rows, network: Network, linear: Linearisation | None) -> Evaluated:
        """``AᵀA`` and the residual term."""
        return _Joint(linear or linearise(rows, network), residual_curvature(rows, network))


@final
@dataclass(frozen=True)
class BlockDiagonal(Curvature):
    """One block per core, ``H^(d) = β A^(d)ᵀA^(d) + Γ`` (section 3.2, Block)."""

    def numbers(self, weights: Sequence[int]) -> int:
        """A matrix per core and its factor."""
        return 2 * sum(n * n for n in weights)

    def bayesian_cores(self, D: int) -> tuple[int, ...]:
        """All."""
        return tuple(range(D))

    def evaluate(self, rows: Rows, network: Network, linear: Linearisation | None) -> Evaluated:
        """All D Gram matrices."""
        systems = [core_system(rows, network, d) for d in range(len(network.cores))]
        slope = to_vector([s.residual for s in systems])
        return _Grams(tuple(s.gram for s in systems), systems[0].rss, slope)


@final
@dataclass(frozen=True)
class Diag(Curvature):
    """Independent weights, ``H = diag(β (A ∘ A)ᵀ1 + γ)`` (section 3.2, Diagonal)."""

    def numbers(self, weights: Sequence[int]) -> int:
        """One each."""
        return sum(weights)

    def bayesian_cores(self, D: int) -> tuple[int, ...]:
        """All."""
        return tuple(range(D))

    def evaluate(self, rows: Rows, network: Network, linear: Linearisation | None) -> Evaluated:
        """Sums of squared Jacobian entries, O(N·D·I·R)."""
        squares = rows.at(network).reduce(network.squares)
        return _Squares(to_vector(squares), loss(rows, network))


@final
@dataclass(frozen=True)
class Last(Curvature):
    """One Bayesian core, the others points, eq. (eq_last_core).

    Attributes
    ----------
    core : int or None
        Number of the core (negative from the end; -1 is the paper's). None: not chosen yet.
    """

    core: int | None = None
    one_core: ClassVar[bool] = True

    def numbers(self, weights: Sequence[int]) -> int:
        """The matrix of the largest core, which a solver has as well."""
        return max(weights) ** 2

    def candidates(self, n_cores: int) -> tuple[Curvature, ...]:
        """Any core, if none is chosen."""
        return (self,) if self.core is not None else tuple(Last(d) for d in range(n_cores))

    def fits(self, n_cores: int) -> bool:
        """A core that there is."""
        return self.core is not None and 0 <= self.core < n_cores

    def bayesian_cores(self, D: int) -> tuple[int, ...]:
        """The chosen core."""
        return (self._chosen(D),)

    def evaluate(self, rows: Rows, network: Network, linear: Linearisation | None) -> Evaluated:
        """The Gram matrix of the chosen core."""
        system = core_system(rows, network, self._chosen(len(network.cores)))
        return _Grams((system.gram,), system.rss, system.residual.ravel())

    def _chosen(self, D: int) -> int:
        if self.core is None:
            raise ValueError("Last has no core yet: choose one by evidence first")
        return range(D)[self.core]
