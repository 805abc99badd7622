"""LA-TTKM: the paper's kernel machine with a tensor train in place of the CPD."""

from typing import Any, Self, final

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from tensorlace.bases import UnitPolynomial
from tensorlace.bases.basis import Array
from tensorlace.linalg import eigen
from tensorlace.predictive import Normal
from tensorlace.tensor_train import als, initialise, jacobian, predict

__all__ = ["TTRegressor"]


@final
class TTRegressor(RegressorMixin, BaseEstimator):
    """Tensor-train kernel machine with a Laplace posterior over one core.

    Unit-norm polynomials of standardised columns; alternating least squares with orthogonal cores,
    the Bayesian core last; given the others the model is linear in it, so its posterior, and the
    noise and prior precisions by evidence, are those of Bayesian linear regression.

    Parameters
    ----------
    rank, n_basis : int
        Ranks of the train, and basis functions per column.
    core : int
        The Bayesian core; 0 is the first column's.
    n_sweeps : int
        Sweeps forth and back in every round.
    n_rounds : int
        Rounds of sweeps and precision updates.
    random_state : int, RandomState or None
        Where the cores start.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(200, 2))
    >>> y = X[:, 0] * X[:, 1] + 0.1 * rng.standard_normal(200)
    >>> model = TTRegressor(rank=2, n_basis=4, random_state=0).fit(X, y)
    >>> bool(abs(model.predict([[1.0, 1.0]])[0] - 1.0) < 0.1)
    True
    """

    def __init__(
        self,
        rank: int = 3,
        n_basis: int = 8,
        core: int = 0,
        n_sweeps: int = 10,
        n_rounds: int = 3,
        random_state: Any = None,
    ) -> None:
        self.rank = rank
        self.n_basis = n_basis
        self.core = core
        self.n_sweeps = n_sweeps
        self.n_rounds = n_rounds
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to X (N, D) and y (N,)."""
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        y = np.asarray(y, dtype=float)
        spread, scale = X.std(axis=0), float(y.std())
        self._inputs = X.mean(axis=0), np.where(spread > 0, spread, 1.0)
        self._target = float(y.mean()), scale or 1.0
        z = (y - self._target[0]) / self._target[1]
        phi = self._features(X)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        cores = initialise([UnitPolynomial(len(p)).constant() for p in phi], self.rank, rng)
        d = range(len(phi))[self.core]
        beta, gamma = 10.0, 1e-2
        for _ in range(self.n_rounds):
            cores, _ = als(cores, phi, z, gamma / beta, self.n_sweeps, d)
            J = jacobian(cores, phi, [d])
            values, U = eigen(J @ J.T)
            values, projected = np.maximum(values, 0.0), U.T @ (J @ z)
            beta, gamma = _evidence(values, projected, float(z @ z), len(z), beta, gamma)
        h = beta * values + gamma
        mean = U @ (beta * projected / h)
        shape = cores[d].shape
        self.cores_ = (*cores[:d], mean.reshape(shape), *cores[d + 1 :])
        self._root, self._core = U / np.sqrt(h), d
        self.noise_precision_ = beta / self._target[1] ** 2
        self.prior_precision_ = gamma
        return self

    def predict_dist(self, X: Any) -> Normal:
        """Predictive distributions of new targets for the n rows of X, in units of y."""
        check_is_fitted(self, "cores_")
        phi = self._features(validate_data(self, X, dtype=np.float64, reset=False))
        T = self._root.T @ jacobian(self.cores_, phi, [self._core])
        deviation = np.sqrt(np.einsum("kn,kn->n", T, T))
        noise = 1.0 / np.sqrt(self.noise_precision_ * self._target[1] ** 2)
        standard = Normal(predict(self.cores_, phi), deviation, noise)
        return standard.affine(self._target[1], self._target[0])

    def predict(self, X: Any, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Predictive mean (n,), and with ``return_std`` the standard deviation of a new y (n,)."""
        dist = self.predict_dist(X)
        return (dist.mean, dist.std) if return_std else dist.mean

    def _features(self, X: Array) -> list[Array]:
        location, spread = self._inputs
        basis = UnitPolynomial(self.n_basis)
        return [basis.phi(np.ascontiguousarray(u)) for u in ((X - location) / spread).T]


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
