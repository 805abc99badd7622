"""BTN-KM: a CP kernel machine that finds its rank by Gamma priors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np

from tensorlace.linalg.symmetric import inverse_root
from tensorlace.predictive.distributions import Normal
from tensorlace_lab.systems.paper.mean_field_btn import polynomial_features
from tensorlace_lab.systems.parts.cp_machine import near_constant
from tensorlace_lab.systems.regressor import Array, Baseline

__all__ = ["BTNKM", "Factor", "second_moments"]

_A0 = _B0 = 1e-6  # all Gamma priors
_SHIFT, _BLOCK, _PRUNE = 0.2, 2048, 1e-5


@final
class BTNKM(Baseline):
    """Bayesian tensor-network kernel machine (Kilic & Batselier 2025).

    CPD on unit-norm polynomial features (shifted by 0.2), each core Gaussian with a full covariance
    in a mean-field posterior; Gamma priors on the precision of every term, of every basis function
    of every column, and of the noise. Each update starts from the prior. Terms that their precision
    switches off are removed. The predictive has the exact first two moments of ``f``.

    Parameters
    ----------
    n_basis, max_rank : int
        Basis functions per column, and terms to start with.
    max_iter, tol : int, float
        Sweeps at most, and the relative change of the noise precision at which they stop.
    random_state : int, RandomState or None
        Start of the cores.

    Attributes
    ----------
    rank_ : int
        Terms left.
    noise_precision_ : float
        For the standardised target.

    Examples
    --------
    >>> X = np.linspace(-2, 2, 60)[:, None]
    >>> model = BTNKM(max_rank=3, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> bool(abs(model.predict([[1.0]])[0] - np.sin(1.0)) < 0.1)
    True
    """

    def __init__(
        self,
        n_basis: int = 10,
        max_rank: int = 10,
        max_iter: int = 50,
        tol: float = 1e-4,
        random_state: Any = None,
    ) -> None:
        self.n_basis = n_basis
        self.max_rank = max_rank
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _fit(self, X: Array, y: Array, rng: np.random.Generator) -> None:
        features = self._features(X)
        start = near_constant(features, self.max_rank, rng)
        scale = self.max_rank ** (-1.0 / len(features))
        factors = [Factor(scale * W, np.zeros((W.size, W.size))) for W in start]
        moments = [_factor_moments(Phi, q) for Phi, q in zip(features, factors, strict=True)]
        terms = np.ones(self.max_rank)
        functions = [np.ones(self.n_basis) for _ in features]
        tau = 1.0
        for k in range(self.max_iter):
            for d, Phi in enumerate(features):
                prior = np.outer(functions[d], terms).ravel()
                factors[d] = _core(Phi, y, moments, d, tau, prior)
                moments[d] = _factor_moments(Phi, factors[d])
            squares = [q.squares() for q in factors]  # E v^2, (I, R)
            rate = _rates(functions, squares)
            count = sum(s2.shape[0] for s2 in squares)
            terms = (_A0 + 0.5 * count) / (_B0 + 0.5 * rate)
            functions = [(_A0 + 0.5 * s2.shape[1]) / (_B0 + 0.5 * (s2 @ terms)) for s2 in squares]
            old, tau = tau, _noise_precision(y, moments)
            keep = _worth_keeping(factors)
            if not keep.all():
                factors, terms = [q.subset(keep) for q in factors], terms[keep]
                moments = [
                    _factor_moments(Phi, q) for Phi, q in zip(features, factors, strict=True)
                ]
            elif k > 5 and abs(tau - old) < self.tol * tau:
                break
        self._factors, self.noise_precision_ = tuple(factors), tau
        self.rank_ = factors[0].mean.shape[1]

    def _predict(self, X: Array) -> Normal:
        parts = [
            second_moments(self._features(X[i : i + _BLOCK]), self._factors)
            for i in range(0, len(X), _BLOCK)
        ]
        mean, variance = (np.concatenate(part) for part in zip(*parts, strict=True))
        return Normal(mean, np.sqrt(variance), self.noise_precision_**-0.5)

    def _features(self, X: Array) -> list[Array]:
        return [Phi + _SHIFT for Phi in polynomial_features(X, self.n_basis)]


@final
@dataclass(frozen=True)
class Factor:
    """Gaussian posterior of a core: mean (I, R), covariance (I R, I R), i slow, r fast."""

    mean: Array
    covariance: Array

    def squares(self) -> Array:
        """``E v^2``, shape (I, R)."""
        return self.mean**2 + np.diagonal(self.covariance).reshape(self.mean.shape)

    def subset(self, keep: Any) -> Self:
        """Marginal posterior of some terms."""
        I, R = self.mean.shape
        C = self.covariance.reshape(I, R, I, R)[:, keep][:, :, :, keep]
        n = I * int(np.sum(keep))
        return type(self)(self.mean[:, keep], C.reshape(n, n))

    def spread(self, Phi: Array) -> Array:
        """Covariances of ``V^T phi`` for features (N, I): (N, R, R)."""
        I, R = self.mean.shape
        C = self.covariance.reshape(I, R, I, R).transpose(0, 2, 1, 3).reshape(I * I, R * R)
        return (_squared(Phi) @ C).reshape(len(Phi), R, R)


def second_moments(features: Sequence[Array], factors: Sequence[Factor]) -> tuple[Array, Array]:
    """Mean and variance of ``f``, each (N,), for independent Gaussian cores.

    ``Var f = 1^T [had_d (a a^T + B_d) - had_d a a^T] 1``, summed in terms that are never negative.
    """
    N, R = len(features[0]), factors[0].mean.shape[1]
    product, variance = np.ones((N, R)), np.zeros((N, R, R))
    for Phi, q in zip(features, factors, strict=True):
        a, B = Phi @ q.mean, q.spread(Phi)
        outer = product[:, :, None] * product[:, None, :]
        variance = variance * (a[:, :, None] * a[:, None, :] + B) + outer * B
        product = product * a
    return product.sum(axis=1), np.maximum(variance.sum(axis=(1, 2)), 0.0)


def _squared(Phi: Array) -> Array:
    """``phi (x) phi``: (N, I^2)."""
    return (Phi[:, :, None] * Phi[:, None, :]).reshape(len(Phi), -1)


def _factor_moments(Phi: Array, q: Factor) -> tuple[Array, Array]:
    """``E a`` (N, R) and ``E a a^T`` (N, R, R) for ``a = V^T phi``."""
    a = Phi @ q.mean
    return a, a[:, :, None] * a[:, None, :] + q.spread(Phi)


def _core(
    Phi: Array, y: Array, moments: list[tuple[Array, Array]], d: int, tau: float, prior: Array
) -> Factor:
    """Posterior of core d given the moments of the others: Bayesian least squares."""
    N, I = Phi.shape
    R = moments[0][0].shape[1]
    z, zz = np.ones((N, R)), np.ones((N, R * R))
    for k, (a, aa) in enumerate(moments):
        if k != d:
            z, zz = z * a, zz * aa.reshape(N, -1)
    S = (_squared(Phi).T @ zz).reshape(I, I, R, R).transpose(0, 2, 1, 3).reshape(I * R, I * R)
    H = tau * S
    H.flat[:: I * R + 1] += prior
    t = tau * (Phi.T @ (z * y[:, None])).ravel()
    H = (H + H.T) / 2
    root = inverse_root(H)
    if root is None:  # no digit left: the ridge that double precision can hold
        H.flat[:: I * R + 1] += 1e-12 * np.trace(H)
        root = inverse_root(H)
        assert root is not None
    W = root[0]
    return Factor((W @ (W.T @ t)).reshape(I, R), W @ W.T)


def _rates(functions: list[Array], squares: list[Array]) -> Array:
    """``sum_d sum_i delta_i^(d) E v_ir^2``, shape (R,)."""
    return np.asarray(sum(f @ s2 for f, s2 in zip(functions, squares, strict=True)))


def _noise_precision(y: Array, moments: list[tuple[Array, Array]]) -> float:
    """``(a0 + N/2) / (b0 + E|y - f|^2 / 2)``."""
    f, ff = np.ones_like(moments[0][0]), np.ones_like(moments[0][1])
    for a, aa in moments:
        f, ff = f * a, ff * aa
    error = float(y @ y - 2 * (y @ f.sum(axis=1)) + ff.sum())
    return (_A0 + 0.5 * len(y)) / (_B0 + 0.5 * max(error, 1e-12 * len(y)))


def _worth_keeping(factors: list[Factor]) -> Any:
    """Terms whose size is not negligible beside the largest, (R,)."""
    logs = sum(np.log(np.linalg.norm(q.mean, axis=0) + 1e-300) for q in factors)
    return np.asarray(logs > np.max(logs) + np.log(_PRUNE))
