"""Gaussian posteriors over the weights, held as roots so that every variance is a sum of squares.

All are centred at the MAP weights; ``Σ = H⁻¹`` is the covariance. Arguments and results that stand
for several vectors have them in columns: ``quad`` takes a transposed Jacobian (P, n).
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self, final

import numpy as np
from scipy.linalg import qr, svd, svdvals

from tensorlace._types import Array, Mask
from tensorlace.laplace.prior_groups import SMALLEST_PRIOR
from tensorlace.linalg.symmetric import eigen
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
    def independent(self) -> tuple["Posterior", ...]:
        """Parts that are independent of each other, in the order of the weights."""
        return (self,)

    @property
    def covariance_root(self) -> "Root | None":
        """The posterior as ``Σ = W Wᵀ``, if that is how it is held."""
        return None

    @abstractmethod
    def arrays(self) -> tuple[Array, ...]:
        """Arrays that it is made of."""

    @abstractmethod
    def is_consistent(self, n_weights: Sequence[int]) -> bool:
        """Whether shapes fit each other and cores of ``n_weights`` Bayesian weights."""

    @abstractmethod
    def spectrum(self) -> Array:
        """Eigenvalues (k,) of ``H`` over the directions kept, falling."""

    @abstractmethod
    def marginal(self, which: Mask, sizes: Sequence[int]) -> "Posterior":
        """Posterior of the weights ``which`` (P,) alone; ``sizes`` are those of the parts."""

    @abstractmethod
    def in_units_of_prior(self, gamma: Array) -> "Posterior":
        """The same posterior as `LowRank` parts in units of priors with precisions (P,), if it can.

        A flat prior counts as the faintest that is ever learned.
        """

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

    @property
    def covariance_root(self) -> "Root":
        """Itself."""
        return self

    def arrays(self) -> tuple[Array, ...]:
        """The root."""
        return (self.W,)

    def is_consistent(self, n_weights: Sequence[int]) -> bool:
        """A finite matrix of as many rows."""
        W = self.W
        return W.ndim == 2 and len(W) == sum(n_weights) and bool(np.all(np.isfinite(W)))

    def spectrum(self) -> Array:
        """Inverse squared singular values of the root, which loses no digits of small ones."""
        singular = svdvals(self.W) if self.W.shape[1] else np.empty(0)
        return np.sort(singular[singular > 0] ** -2.0)[::-1]

    def marginal(self, which: Mask, sizes: Sequence[int]) -> "Root":
        """Rows of the root, made square."""
        W = self.W[which]
        (R,) = qr(W.T, mode="r", check_finite=False)  # W Wᵀ = Rᵀ R
        R = R[: min(R.shape)]
        values = np.abs(np.diagonal(R)) if R.shape[0] == R.shape[1] else svdvals(R)
        values = values[values > 0]
        logdet = -2.0 * float(np.sum(np.log(values)))
        return Root(np.ascontiguousarray(R.T), logdet, self.n_dropped)

    def in_units_of_prior(self, gamma: Array) -> "LowRank":
        """Directions are eigenvectors of the whitened covariance."""
        scale = 1.0 / np.sqrt(np.maximum(gamma, SMALLEST_PRIOR))
        W = self.W / scale[:, None]
        c, U = eigen(W @ W.T)
        return LowRank(scale, U, np.maximum(c, 0.0), self.n_dropped)


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

    def arrays(self) -> tuple[Array, ...]:
        """Directions, scales and what is left of the prior along the directions."""
        return self.U, self.scale, self.c

    def is_consistent(self, n_weights: Sequence[int]) -> bool:
        """A direction per number in ``c``."""
        P, k = sum(n_weights), self.c.size
        return self.scale.shape == (P,) and self.U.shape == (P, k) and self.c.shape == (k,)

    def spectrum(self) -> Array:
        """From a root of the covariance: identity off the span of ``U``."""
        root = (self.U * (np.sqrt(self.c) - 1.0)) @ self.U.T
        root[np.diag_indices_from(root)] += 1.0
        return np.sort(svdvals(self.scale[:, None] * root) ** -2.0)[::-1]

    def marginal(self, which: Mask, sizes: Sequence[int]) -> "LowRank":
        """Some rows of ``U``: singular values say how far the data reach into their span."""
        if self.c.size == 0:  # the prior, for all that the rows say
            return replace(self, scale=self.scale[which], U=self.U[which])
        B = self.U[which] * np.sqrt(1.0 - self.c)
        U, s, _ = svd(B, full_matrices=False, check_finite=False)
        c = np.maximum(1.0 - s**2, self.c.min())
        return LowRank.of(self.scale[which], U, c, self.n_dropped)

    def in_units_of_prior(self, gamma: Array) -> "LowRank":
        """It is."""
        return self


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

    @property
    def independent(self) -> tuple[Posterior, ...]:
        """One per core."""
        return self.parts

    def arrays(self) -> tuple[Array, ...]:
        """Of all parts."""
        return tuple(array for part in self.parts for array in part.arrays())

    def is_consistent(self, n_weights: Sequence[int]) -> bool:
        """Each part has the weights of one core."""
        pairs = zip(self.parts, n_weights, strict=False)
        return len(self.parts) == len(n_weights) and all(p.is_consistent([n]) for p, n in pairs)

    def spectrum(self) -> Array:
        """Of all parts together."""
        return np.sort(np.concatenate([part.spectrum() for part in self.parts]))[::-1]

    def marginal(self, which: Mask, sizes: Sequence[int]) -> "Blocks":
        """Part by part."""
        masks = np.split(which, np.cumsum(sizes)[:-1])
        pairs = zip(self.parts, masks, strict=True)
        return Blocks(tuple(part.marginal(mask, ()) for part, mask in pairs))

    def in_units_of_prior(self, gamma: Array) -> Posterior:
        """Part by part."""
        cut = self._cut(gamma)
        pairs = zip(self.parts, cut, strict=True)
        return Blocks(tuple(part.in_units_of_prior(own) for part, own in pairs))


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

    def arrays(self) -> tuple[Array, ...]:
        """Variances."""
        return (self.variance,)

    def is_consistent(self, n_weights: Sequence[int]) -> bool:
        """A variance per weight."""
        return self.variance.shape == (sum(n_weights),)

    def spectrum(self) -> Array:
        """Inverse variances."""
        return np.sort(1.0 / self.variance[self.variance > 0])[::-1]

    def marginal(self, which: Mask, sizes: Sequence[int]) -> "Diagonal":
        """Variances of these."""
        return Diagonal(self.variance[which], self.n_dropped)

    def in_units_of_prior(self, gamma: Array) -> "Diagonal":
        """Weights are independent already."""
        return self
