"""Gaussian posteriors over the weights, held as roots so that every variance is a sum of squares.

All are centred at the MAP weights; ``Σ = H⁻¹`` is the covariance. Arguments and results that stand
for several vectors have them in columns: ``quad`` takes a transposed Jacobian (P, n).
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, final

import numpy as np

from tensorlace._types import Array
from tensorlace.portable import Builder, Value

__all__ = ["Blocks", "Diagonal", "LowRank", "Posterior", "Root"]


class Posterior(ABC):
    """Zero-mean Gaussian over P weights, to be added to the MAP."""

    n_dropped: int
    """Directions that truncation or a non-positive eigenvalue took out."""

    @property
    @abstractmethod
    def n_weights(self) -> int:
        """P, the number of weights."""

    @property
    @abstractmethod
    def logdet(self) -> float:
        """``log|H|`` over the directions kept."""

    @abstractmethod
    def variances(self) -> Array:
        """Marginal variance of each weight (P,): the diagonal of ``Σ``."""

    @abstractmethod
    def solve(self, b: Array) -> Array:
        """``Σ b`` for ``b`` (P,) or (P, n)."""

    @abstractmethod
    def quad(self, G: Array) -> Array:
        """``g_nᵀ Σ g_n`` (n,) for the columns of ``G`` (P, n)."""

    @abstractmethod
    def portable(self, g: Builder, G: Value) -> Value:
        """`quad` as a graph: ``G`` (P, n) gives variances (n,)."""

    @abstractmethod
    def sample(self, rng: np.random.Generator, n_samples: int) -> Array:
        """Draws of the deviation from the MAP, (P, n_samples)."""

    @property
    def trace(self) -> float:
        """Trace of ``Σ``."""
        return float(self.variances().sum())


@final
@dataclass(frozen=True)
class Root(Posterior):
    """``Σ = W Wᵀ`` with ``W`` (P, k).

    ``eigenvalues`` (k,) of ``H`` exist where the columns of ``W`` are its scaled eigenvectors.
    """

    W: Array
    log_determinant: float
    n_dropped: int = 0
    eigenvalues: Array | None = None

    @property
    def n_weights(self) -> int:
        """P."""
        return self.W.shape[0]

    @property
    def logdet(self) -> float:
        """``log|H|`` over the directions kept."""
        return self.log_determinant

    def variances(self) -> Array:
        """Marginal variances (P,)."""
        return np.einsum("pk,pk->p", self.W, self.W)

    def solve(self, b: Array) -> Array:
        """``Σ b``."""
        out: Array = self.W @ (self.W.T @ b)
        return out

    def quad(self, G: Array) -> Array:
        """``‖Wᵀ g‖²`` per column of ``G`` (P, n)."""
        T = self.W.T @ G
        return np.einsum("kn,kn->n", T, T)

    def portable(self, g: Builder, G: Value) -> Value:
        """``‖Wᵀ g‖²``."""
        T = g.constant(self.W).T @ G
        return g.sum(T * T)

    def sample(self, rng: np.random.Generator, n_samples: int) -> Array:
        """``W ξ``."""
        out: Array = self.W @ rng.standard_normal((self.W.shape[1], n_samples))
        return out


@final
@dataclass(frozen=True)
class LowRank(Posterior):
    """More weights than rows: ``Σ = S (U diag(c) Uᵀ + I - U Uᵀ) S``, S = Γ^(-1/2), U (P, k).

    Off the span of ``U`` the rows say nothing and the prior stays.
    """

    scale: Array
    U: Array
    c: Array
    n_dropped: int = 0

    @classmethod
    def of(cls, scale: Array, U: Array, c: Array, n_dropped: int = 0) -> Self:
        """Without directions of which the rows say nothing: ``c = 1`` is as if they were not."""
        told = c < 1.0
        return cls(scale, U if told.all() else U[:, told], c[told], n_dropped)

    @property
    def n_weights(self) -> int:
        """P."""
        return self.scale.size

    @property
    def logdet(self) -> float:
        """``log|H|``."""
        return float(-2.0 * np.sum(np.log(self.scale)) - np.sum(np.log(self.c)))

    def variances(self) -> Array:
        """Marginal variances (P,)."""
        inside = self.U**2
        return self.scale**2 * (np.maximum(1.0 - inside.sum(axis=1), 0.0) + inside @ self.c)

    def _split(self, B: Array) -> tuple[Array, Array]:
        inside = self.U.T @ B
        return inside, B - self.U @ inside

    def _column(self, b: Array) -> Array:
        return self.scale if b.ndim == 1 else self.scale[:, None]

    def solve(self, b: Array) -> Array:
        """``Σ b``."""
        s = self._column(b)
        inside, outside = self._split(s * b)
        c = self.c if b.ndim == 1 else self.c[:, None]
        out: Array = s * (self.U @ (c * inside) + outside)
        return out

    def quad(self, G: Array) -> Array:
        """Squared parts inside and outside the span, both sums of squares."""
        inside, outside = self._split(self._column(G) * G)
        return self.c @ inside**2 + np.einsum("pn,pn->n", outside, outside)

    def portable(self, g: Builder, G: Value) -> Value:
        """Squared parts inside and outside the span."""
        scaled = G * self.scale[:, None]
        if not self.c.size:
            return g.sum(scaled * scaled)
        U = g.constant(self.U)
        inside = U.T @ scaled
        outside = scaled - U @ inside
        return self.c @ (inside * inside) + g.sum(outside * outside)

    def sample(self, rng: np.random.Generator, n_samples: int) -> Array:
        """Shrink a prior draw inside the span."""
        inside, outside = self._split(rng.standard_normal((len(self.scale), n_samples)))
        out: Array = self.scale[:, None] * (self.U @ (np.sqrt(self.c)[:, None] * inside) + outside)
        return out


@final
@dataclass(frozen=True)
class Blocks(Posterior):
    """Independent posteriors, one per core, in the order of the weights."""

    parts: tuple[Posterior, ...]

    @property
    def n_weights(self) -> int:
        """P."""
        return sum(p.n_weights for p in self.parts)

    @property
    def n_dropped(self) -> int:  # type: ignore[override]
        """Directions dropped in all parts."""
        return sum(p.n_dropped for p in self.parts)

    @property
    def logdet(self) -> float:
        """Sum over the parts."""
        return sum(p.logdet for p in self.parts)

    def _cut(self, B: Array) -> Sequence[Array]:
        return np.split(B, np.cumsum([p.n_weights for p in self.parts])[:-1])

    def variances(self) -> Array:
        """Marginal variances (P,)."""
        return np.concatenate([p.variances() for p in self.parts])

    def solve(self, b: Array) -> Array:
        """``Σ b``, block by block."""
        return np.concatenate([p.solve(x) for p, x in zip(self.parts, self._cut(b), strict=True)])

    def quad(self, G: Array) -> Array:
        """Sum of the parts' variances."""
        parts = [p.quad(x) for p, x in zip(self.parts, self._cut(G), strict=True)]
        return np.sum(parts, axis=0)

    def portable(self, g: Builder, G: Value) -> Value:
        """Sum of the parts' variances."""
        variance, start = None, 0
        for part in self.parts:
            if not part.n_weights:
                continue
            own = part.portable(g, g.slice(G, start, start + part.n_weights))
            variance = own if variance is None else variance + own
            start += part.n_weights
        assert variance is not None
        return variance

    def sample(self, rng: np.random.Generator, n_samples: int) -> Array:
        """Independent draws, stacked."""
        return np.concatenate([p.sample(rng, n_samples) for p in self.parts])


@final
@dataclass(frozen=True)
class Diagonal(Posterior):
    """Independent weights; a dropped weight has variance zero.

    ``eigenvalues`` (P,) of ``H``, where known, include those of dropped weights.
    """

    variance: Array
    n_dropped: int = 0
    eigenvalues: Array | None = None

    @property
    def n_weights(self) -> int:
        """P."""
        return self.variance.size

    @property
    def logdet(self) -> float:
        """``log|H|`` over the weights kept."""
        return float(-np.sum(np.log(self.variance[self.variance > 0])))

    def variances(self) -> Array:
        """Marginal variances (P,)."""
        return self.variance

    def solve(self, b: Array) -> Array:
        """``Σ b``."""
        out: Array = (self.variance if b.ndim == 1 else self.variance[:, None]) * b
        return out

    def quad(self, G: Array) -> Array:
        """Weighted sum of squares."""
        out: Array = self.variance @ G**2
        return out

    def portable(self, g: Builder, G: Value) -> Value:
        """Weighted sum of squares."""
        return self.variance @ (G * G)

    def sample(self, rng: np.random.Generator, n_samples: int) -> Array:
        """Independent draws."""
        out: Array = np.sqrt(self.variance)[:, None] * rng.standard_normal(
            (len(self.variance), n_samples)
        )
        return out
