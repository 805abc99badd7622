"""LA-TTKM: the paper's kernel machine with a tensor train in place of the CPD."""

from collections.abc import Sequence
from typing import Any, final

import numpy as np

from tensorlace.columns.bases import UnitPolynomial
from tensorlace.linalg.symmetric import NOISE, eigen
from tensorlace.predictive.distributions import Normal
from tensorlace_lab.systems.paper.mean_field_btn import polynomial_features
from tensorlace_lab.systems.parts.tt_network import als, hessian, initialise, jacobian, predict
from tensorlace_lab.systems.regressor import Array, Baseline

__all__ = ["TTRegressor"]


@final
class TTRegressor(Baseline):
    """Tensor-train kernel machine with a Laplace posterior.

    Unit-norm polynomials of standardised columns; alternating least squares with orthogonal cores,
    the Bayesian core last. Given the others the model is linear in that core, so its posterior, and
    the noise and prior precisions by evidence, are those of Bayesian linear regression. The other
    four Hessians of the paper put a posterior on all cores, with these precisions.

    Parameters
    ----------
    sizes : sequence of (rank, n_basis)
        Ranks of the train and basis functions per column. Of several, the one that is best on a
        tenth of the rows, held out, is fitted to all.
    core : int
        The core that the precisions, and the curvature "last", are of; 0 is the first column's.
    curvature : {"last", "block", "diag", "ggn", "full"}
        Hessian of the posterior. Of "full", directions of negative curvature are left out.
    n_sweeps : int
        Sweeps forth and back in every round.
    n_rounds : int
        Rounds of sweeps and precision updates.
    random_state : int, RandomState or None
        Where the cores start.

    Attributes
    ----------
    size_ : tuple (rank, n_basis)
    cores_ : tuple of array (r, I, s)
    noise_precision_, prior_precision_ : float
        For standardised data.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(200, 2))
    >>> y = X[:, 0] * X[:, 1] + 0.1 * rng.standard_normal(200)
    >>> model = TTRegressor([(2, 8)], random_state=0).fit(X, y)
    >>> bool(abs(model.predict([[1.0, 1.0]])[0] - 1.0) < 0.1)
    True
    """

    def __init__(
        self,
        sizes: Sequence[tuple[int, int]] = ((2, 8), (2, 12), (3, 8), (4, 8), (4, 12), (6, 8)),
        core: int = 0,
        curvature: str = "last",
        n_sweeps: int = 10,
        n_rounds: int = 3,
        random_state: Any = None,
    ) -> None:
        self.sizes = sizes
        self.core = core
        self.curvature = curvature
        self.n_sweeps = n_sweeps
        self.n_rounds = n_rounds
        self.random_state = random_state

    def _fit(self, X: Array, y: Array, rng: np.random.Generator) -> None:
        self._choose(self.sizes, self._fit_size, X, y, rng)

    def _fit_size(
        self, size: tuple[int, int], X: Array, y: Array, rng: np.random.Generator
    ) -> None:
        self.size_ = rank, _ = tuple(size)
        phi = self._features(X)
        cores = initialise([UnitPolynomial(len(p)).constant() for p in phi], rank, rng)
        d = range(len(phi))[self.core]
        beta, gamma = 10.0, 1e-2
        for _ in range(self.n_rounds):
            cores, _ = als(cores, phi, y, gamma / beta, self.n_sweeps, d)
            J = jacobian(cores, phi, [d])
            values, U = eigen(J @ J.T)
            values, projected = np.maximum(values, 0.0), U.T @ (J @ y)
            beta, gamma = _evidence(values, projected, float(y @ y), len(y), beta, gamma)
        h = beta * values + gamma
        mean = U @ (beta * projected / h)
        self.cores_ = (*cores[:d], mean.reshape(cores[d].shape), *cores[d + 1 :])
        self._which = [d]
        if self.curvature != "last":
            self._which = list(range(len(phi)))
            h, U = eigen(hessian(self.cores_, phi, y, beta, gamma, self.curvature))
        kept = h > NOISE * h.max()
        self._root = U[:, kept] / np.sqrt(h[kept])
        self.noise_precision_, self.prior_precision_ = beta, gamma

    def _predict(self, X: Array) -> Normal:
        phi = self._features(X)
        T = self._root.T @ jacobian(self.cores_, phi, self._which)
        deviation = np.sqrt(np.einsum("kn,kn->n", T, T))
        return Normal(predict(self.cores_, phi), deviation, self.noise_precision_**-0.5)

    def _features(self, X: Array) -> list[Array]:
        return [np.ascontiguousarray(phi.T) for phi in polynomial_features(X, self.size_[1])]


def _evidence(
    values: Array, projected: Array, yy: float, n: int, beta: float, gamma: float
) -> tuple[float, float]:
    """MacKay's fixed point of β and γ for a linear model with ``AᵀA = U diag(values) Uᵀ``."""
    for _ in range(200):
        h = beta * values + gamma
        m = beta * projected / h
        free = float(np.sum(beta * values / h))
        rss = max(yy - 2.0 * float(m @ projected) + float(values @ m**2), 1e-12 * n)
        new = max(n - free, 0.5) / rss, max(free, 1e-9) / max(float(m @ m), 1e-12)
        change = max(abs(np.log(new[0] / beta)), abs(np.log(new[1] / gamma)))
        beta, gamma = min(new[0], 1e12), float(np.clip(new[1], 1e-10, 1e10))
        if change < 1e-6:
            break
    return beta, gamma
