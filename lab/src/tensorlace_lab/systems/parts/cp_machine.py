"""CP kernel machines fitted by alternating least squares, real or complex, with one Bayesian core.

A machine is ``f(x) = Re sum_r prod_d phi_d(x_d)^T w_r^(d)``; the ridge is on the whole weight
tensor, ``|w|^2 = 1^T (had_d W_d^H W_d) 1``, not on its factors. Weights of a core are ordered
(i slow, r fast).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from scipy.linalg import cholesky, solve, solve_triangular

from tensorlace.predictive.distributions import Normal
from tensorlace_lab.systems.parts.evidence import most_evident
from tensorlace_lab.systems.regressor import Array

__all__ = ["CoreLaplace", "alternate", "near_constant", "others", "row_kronecker"]
Features = Sequence[Any]
"""One matrix (N, I_d) per core, real or complex."""
_STRENGTH = 1e-12


def row_kronecker(Phi: Any, Z: Any) -> Any:
    """Rows ``phi_n (x) z_n`` of (N, I) and (N, R): (N, I R), i slow, r fast."""
    return (Phi[:, :, None] * Z[:, None, :]).reshape(len(Phi), -1)


def others(factors: Sequence[Any], d: int) -> Any:
    """Product of all factors (N, R) but the d-th."""
    out = np.ones_like(factors[0])
    for k, factor in enumerate(factors):
        if k != d:
            out = out * factor
    return out


def near_constant(features: Features, rank: int, rng: np.random.Generator) -> list[Any]:
    """Cores (I, R) whose factors are the constant function 1 and noise: products stay near one.

    Products of purely random factors vanish or explode with the number of cores.
    """
    cores = []
    for Phi in features:
        G = Phi.conj().T @ Phi
        ridge = 1e-3 * np.trace(G).real / len(G)
        one = np.linalg.solve(G + ridge * np.eye(len(G)), Phi.conj().sum(axis=0))
        scale = np.linalg.norm(one) / np.sqrt(len(one))
        noise = rng.standard_normal((len(one), rank))
        cores.append(one[:, None] + 0.5 * scale * noise)
    return cores


def alternate(
    features: Features, y: Array, cores: list[Any], ridge: float, n_sweeps: int
) -> list[Any]:
    """Minimise ``|y - f|^2 + ridge |w|^2`` over one core after the other, forth and back."""
    cores = [W / np.linalg.norm(W, axis=0) for W in cores]
    factors = [Phi @ W for Phi, W in zip(features, cores, strict=True)]
    D = len(cores)
    order = [*range(D), *range(D - 2, 0, -1)] if D > 1 else [0]
    for step in range(n_sweeps * len(order)):
        d = order[step % len(order)]
        A = row_kronecker(features[d], others(factors, d))
        G = gram_of_others(cores, d)
        H = A.conj().T @ A + ridge * np.kron(np.eye(features[d].shape[1]), G)
        H.flat[:: len(H) + 1] += _STRENGTH * np.trace(H).real / len(H)
        W = solve(H, A.conj().T @ y, assume_a="pos").reshape(features[d].shape[1], -1)
        norms = np.linalg.norm(W, axis=0)
        # the next core takes the size of the terms: it is solved for from scratch
        cores[d] = np.where(norms > 0, W / np.where(norms > 0, norms, 1.0), cores[d])
        factors[d] = features[d] @ cores[d]
    return cores


def gram_of_others(cores: Sequence[Any], d: int) -> Any:
    """``had_{k != d} W_k^H W_k`` (R, R): the metric of core d in the norm of the whole tensor."""
    R = cores[0].shape[1]
    G = np.ones((R, R), dtype=np.result_type(*cores))
    for k, W in enumerate(cores):
        if k != d:
            G = G * (W.conj().T @ W)
    return G


@final
@dataclass(frozen=True)
class CoreLaplace:
    """Posterior of one core given the others: exact Bayesian linear regression (Laplace, "last").

    Signal and noise variance maximise the evidence of that linear model.
    """

    cores: tuple[Any, ...]
    d: int
    T: Any
    U: Array
    mean: Array
    variances: Array
    noise: float
    evidence: float

    @classmethod
    def best(cls, features: Features, y: Array, cores: Sequence[Any], noise: float) -> Self:
        """Posterior of the core with the highest evidence."""
        fits = (cls.of(features, y, cores, d, noise) for d in range(len(cores)))
        return max(fits, key=lambda fit: fit.evidence)

    @classmethod
    def of(cls, features: Features, y: Array, cores: Sequence[Any], d: int, noise: float) -> Self:
        """Posterior of core d; the search for the noise variance starts at ``noise``."""
        G = gram_of_others(cores, d)
        G.flat[:: len(G) + 1] += 1e-10 * np.trace(G).real / len(G)
        # w^H (I (x) G) w = |u|^2 with u = C^H w per i, so A w = A C^-H u
        T = solve_triangular(cholesky(G, lower=True), np.eye(len(G)), lower=True).conj().T
        A = _design(features, cores, d, T)
        lam, U = np.linalg.eigh(A.T @ A)
        lam, c = np.maximum(lam, 0.0), U.T @ (A.T @ y)
        start = (1.0 / max(float(np.mean(np.sum(A * A, axis=1))), 1e-9), max(noise, 1e-8))
        s, v, value = most_evident(lam, c, float(y @ y), len(y), start)
        shrunk = s / (v + s * lam)
        return cls(tuple(cores), d, T, U, shrunk * c, v * shrunk, v, value)

    def predict(self, features: Features) -> Normal:
        """Predictive of y for the features of n rows."""
        u = _design(features, self.cores, self.d, self.T) @ self.U
        return Normal(u @ self.mean, np.sqrt(u**2 @ self.variances), np.sqrt(self.noise))


def _design(features: Features, cores: Sequence[Any], d: int, T: Any) -> Array:
    """Real design of core d in coordinates with prior N(0, s I); ``Re(A u)`` if complex."""
    factors = [Phi @ W for Phi, W in zip(features, cores, strict=True)]
    A = row_kronecker(features[d], others(factors, d) @ T)
    return np.hstack([A.real, -A.imag]) if np.iscomplexobj(A) else A
