"""TN-GPR: Gaussian process regression in basis functions projected by a tensor train."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from scipy.linalg import solve
from scipy.optimize import minimize_scalar

from tensorlace.predictive.distributions import Normal
from tensorlace_lab.systems.parts.cp_machine import near_constant
from tensorlace_lab.systems.parts.evidence import most_evident
from tensorlace_lab.systems.parts.kernel import most_likely
from tensorlace_lab.systems.parts.sine_features import MAX_LENGTHS, sine_features
from tensorlace_lab.systems.regressor import Array, Baseline, UnitBox

__all__ = ["TNGPR", "ProjectedPosterior", "alternate_train", "train_design"]


@final
class TNGPR(Baseline):
    """Projected basis functions (Menzen, Memmel, Batselier & Kok 2023).

    Sine features of a squared-exponential kernel, weights a tensor train found by alternating least
    squares with orthogonal cores (so the ridge on one core is the ridge on the whole tensor). All
    cores but the middle one project the features; the Gaussian process in that subspace is exact,
    and its length, signal and noise maximise the marginal likelihood. Cores and hyperparameters
    alternate ``n_rounds`` times.

    Parameters
    ----------
    n_basis, rank : int
        Features per column, and ranks of the train.
    n_sweeps, n_rounds : int
        Sweeps of least squares per round, and rounds.
    max_lengths : sequence of float
        Limits of the length scale, in units of the range of a column: the sines vanish half of it
        away. Of several, the one that is best on a tenth of the rows, held out.
    hyper_rows : int
        Rows that give the first hyperparameters, by exact marginal likelihood.
    random_state : int, RandomState or None
        Start of the cores; those rows.

    Examples
    --------
    >>> X = np.linspace(-3, 3, 60)[:, None]
    >>> model = TNGPR(random_state=0).fit(X, np.sin(X[:, 0]))
    >>> bool(abs(model.predict([[1.0]])[0] - np.sin(1.0)) < 1e-2)
    True
    """

    def __init__(
        self,
        n_basis: int = 20,
        rank: int = 3,
        n_sweeps: int = 10,
        n_rounds: int = 2,
        max_lengths: Sequence[float] = MAX_LENGTHS,
        hyper_rows: int = 500,
        random_state: Any = None,
    ) -> None:
        self.n_basis = n_basis
        self.rank = rank
        self.n_sweeps = n_sweeps
        self.n_rounds = n_rounds
        self.max_lengths = max_lengths
        self.hyper_rows = hyper_rows
        self.random_state = random_state

    def _fit(self, X: Array, y: Array, rng: np.random.Generator) -> None:
        self._choose(self.max_lengths, self._fit_limited, X, y, rng)

    def _fit_limited(self, max_length: float, X: Array, y: Array, rng: np.random.Generator) -> None:
        self._box = UnitBox.of(X)
        U = self._box(X)
        kernel = most_likely(U, y, rng, self.hyper_rows, ard=False)
        length, signal, noise = float(kernel.lengths[0]), kernel.signal, max(kernel.noise, 1e-7)
        length = min(length, max_length)
        cores = _start(sine_features(U, self.n_basis, length), self.rank, rng)
        d = len(cores) // 2
        for _ in range(self.n_rounds):
            features = sine_features(U, self.n_basis, length)
            cores = alternate_train(features, y, cores, noise / signal, self.n_sweeps, d)

            def posterior(log_length: float, cores: list[Array] = cores) -> ProjectedPosterior:
                features = sine_features(U, self.n_basis, float(np.exp(log_length)))
                A = train_design(features, cores, d)
                return ProjectedPosterior.of(A, y, (signal, noise))  # noqa: B023

            at = np.log(length)
            best = minimize_scalar(
                lambda t: -posterior(t).evidence,
                bounds=(at - 0.7, min(at + 0.7, np.log(max_length) + 1e-6)),
                method="bounded",
                options={"maxiter": 12},
            )
            chosen = max((posterior(best.x), best.x), (posterior(at), at), key=_evidence)
            self._posterior, length = chosen[0], float(np.exp(chosen[1]))
            signal, noise = self._posterior.signal, self._posterior.noise
        self._cores, self._core, self.lengthscale_ = cores, d, length

    def _predict(self, X: Array) -> Normal:
        features = sine_features(self._box(X), self.n_basis, self.lengthscale_)
        return self._posterior.predict(train_design(features, self._cores, self._core))


@final
@dataclass(frozen=True)
class ProjectedPosterior:
    """Bayesian linear regression on projected features, its two variances by evidence."""

    U: Array
    mean: Array
    variances: Array
    signal: float
    noise: float
    evidence: float

    @classmethod
    def of(cls, A: Array, y: Array, start: tuple[float, float]) -> Self:
        """Posterior for a design A (N, P); the search starts at variances ``start``."""
        lam, U = np.linalg.eigh(A.T @ A)
        lam, c = np.maximum(lam, 0.0), U.T @ (A.T @ y)
        s, v, value = most_evident(lam, c, float(y @ y), len(y), start)
        shrunk = s / (v + s * lam)
        return cls(U, shrunk * c, v * shrunk, s, v, value)

    def predict(self, A: Array) -> Normal:
        """Predictive of y for the design of n rows."""
        u = A @ self.U
        return Normal(u @ self.mean, np.sqrt(u**2 @ self.variances), np.sqrt(self.noise))


def _evidence(choice: tuple[ProjectedPosterior, float]) -> float:
    return choice[0].evidence


def _start(features: list[Array], rank: int, rng: np.random.Generator) -> list[Array]:
    """Cores (r, I, r') of a train that is near the constant function."""
    D, I = len(features), features[0].shape[1]
    ranks = [min(rank, I ** min(d, D - d)) if 0 < d < D else 1 for d in range(D + 1)]
    ones = near_constant(features, 1, rng)
    cores = []
    for d, one in enumerate(ones):
        core = 0.1 * np.abs(one).max() * rng.standard_normal((ranks[d], I, ranks[d + 1]))
        core[0, :, 0] += one[:, 0]
        cores.append(core)
    return cores


def alternate_train(
    features: list[Array], y: Array, cores: list[Array], ridge: float, n_sweeps: int, stop: int
) -> list[Array]:
    """Minimise ``|y - f|^2 + ridge |w|^2``, ending at core ``stop`` with all others orthogonal."""
    cores, D = list(cores), len(cores)
    rights: list[Array] = [np.ones((len(y), 1))] * (D + 1)
    for d in range(D - 1, 0, -1):  # right-orthogonal to begin with
        cores[d] = _right_orthogonal(cores[d])
        rights[d] = _absorb_right(features[d], cores[d], rights[d + 1])
    lefts: list[Array] = [np.ones((len(y), 1))] * (D + 1)

    def update(d: int) -> None:
        A = _design(lefts[d], features[d], rights[d + 1])
        H = A.T @ A
        H.flat[:: len(H) + 1] += ridge + 1e-12 * np.trace(H) / len(H)
        cores[d] = solve(H, A.T @ y, assume_a="pos").reshape(cores[d].shape)

    for _ in range(n_sweeps):
        for d in range(D - 1):
            update(d)
            cores[d] = _left_orthogonal(cores[d])
            lefts[d + 1] = _absorb_left(features[d], cores[d], lefts[d])
        for d in range(D - 1, 0, -1):
            update(d)
            cores[d] = _right_orthogonal(cores[d])
            rights[d] = _absorb_right(features[d], cores[d], rights[d + 1])
    for d in range(stop):
        update(d)
        cores[d] = _left_orthogonal(cores[d])
        lefts[d + 1] = _absorb_left(features[d], cores[d], lefts[d])
    update(stop)
    return cores


def train_design(features: list[Array], cores: list[Array], d: int) -> Array:
    """Design (N, r I r') of core d given the others: the projected basis functions."""
    left = right = np.ones((len(features[0]), 1))
    for k in range(d):
        left = _absorb_left(features[k], cores[k], left)
    for k in range(len(cores) - 1, d, -1):
        right = _absorb_right(features[k], cores[k], right)
    return _design(left, features[d], right)


def _design(left: Array, Phi: Array, right: Array) -> Array:
    products = left[:, :, None, None] * Phi[:, None, :, None] * right[:, None, None, :]
    return products.reshape(len(Phi), -1)


def _absorb_left(Phi: Array, core: Array, left: Array) -> Array:
    return np.einsum("nis,ni->ns", np.tensordot(left, core, 1), Phi, optimize=True)


def _absorb_right(Phi: Array, core: Array, right: Array) -> Array:
    return np.einsum("rin,ni->nr", np.tensordot(core, right.T, 1), Phi, optimize=True)


def _left_orthogonal(core: Array) -> Array:
    r, I, s = core.shape
    return np.linalg.qr(core.reshape(r * I, s))[0].reshape(r, I, s)


def _right_orthogonal(core: Array) -> Array:
    r, I, s = core.shape
    return np.linalg.qr(core.reshape(r, I * s).T)[0].T.reshape(r, I, s)
