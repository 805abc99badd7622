"""MF-BTN: a Bayesian tensor network whose weights are independent in the posterior."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from scipy.linalg import solve

from tensorlace.columns.bases import UnitPolynomial
from tensorlace.predictive.distributions import Normal
from tensorlace_lab.systems.parts.cp_machine import near_constant, others, row_kronecker
from tensorlace_lab.systems.regressor import Array, Baseline

__all__ = ["MeanField", "MeanFieldBTN", "ascend", "moments", "polynomial_features"]
Features = Sequence[Array]


@final
@dataclass(frozen=True)
class MeanField:
    """Means and variances (I, R) of the cores, noise precision ``beta``, prior precision ``gamma``.

    ``elbo`` are the bounds on ``log p(y)`` after each sweep.
    """

    means: tuple[Array, ...]
    variances: tuple[Array, ...]
    beta: float
    gamma: float
    elbo: tuple[float, ...] = ()

    def bound(self, features: Features, y: Array) -> float:
        """Evidence lower bound, in closed form."""
        Ef, Vf = moments(features, self.means, self.variances)
        error = float(np.sum((y - Ef) ** 2 + Vf))
        kl = 0.0
        for m, s2 in zip(self.means, self.variances, strict=True):
            kl += 0.5 * float(np.sum(self.gamma * (m * m + s2) - np.log(self.gamma * s2) - 1.0))
        return 0.5 * len(y) * np.log(self.beta / (2 * np.pi)) - 0.5 * self.beta * error - kl

    def balanced(self) -> Self:
        """Equal sizes of the factors of a term: same function, and the bound never falls."""
        sizes = np.array(
            [np.sum(m * m + s2, axis=0) for m, s2 in zip(self.means, self.variances, strict=True)]
        )
        scale = np.sqrt(np.exp(np.log(sizes).mean(axis=0)) / sizes)  # (D, R), products are one
        return type(self)(
            tuple(c * m for c, m in zip(scale, self.means, strict=True)),
            tuple(c * c * s2 for c, s2 in zip(scale, self.variances, strict=True)),
            self.beta,
            self.gamma,
            self.elbo,
        )


@final
class MeanFieldBTN(Baseline):
    """Mean-field Bayesian tensor network (MF-BTN, after Konstantinidis, Xu & Mandic 2022).

    A CPD on unit-norm polynomial features, prior N(0, 1/gamma), posterior with independent weights.
    The bound is in closed form, and so is its maximum over each core: coordinate ascent, the
    noise and prior precision included, without samples or step sizes. Of the ``sizes`` the one with
    the highest bound is kept.

    Parameters
    ----------
    sizes : sequence of (rank, n_basis)
        Candidates.
    max_iter, tol : int, float
        Sweeps at most, and the gain of the bound per row at which they stop.
    unit_norm : bool
        Divide the powers of a column by the norm of the row that they make.
    random_state : int, RandomState or None
        Start of the means.

    Attributes
    ----------
    posterior_ : MeanField
    size_ : tuple (rank, n_basis)

    Examples
    --------
    >>> X = np.linspace(-2, 2, 60)[:, None]
    >>> model = MeanFieldBTN(random_state=0).fit(X, X[:, 0] ** 2)
    >>> bool(np.all(np.diff(model.posterior_.elbo) > -1e-8))
    True
    """

    def __init__(
        self,
        sizes: Sequence[tuple[int, int]] = ((4, 4), (8, 8)),
        max_iter: int = 200,
        tol: float = 1e-5,
        unit_norm: bool = True,
        random_state: Any = None,
    ) -> None:
        self.sizes = sizes
        self.max_iter = max_iter
        self.tol = tol
        self.unit_norm = unit_norm
        self.random_state = random_state

    def _fit(self, X: Array, y: Array, rng: np.random.Generator) -> None:
        fits = []
        for rank, n_basis in self.sizes:
            features = polynomial_features(X, n_basis, self.unit_norm)
            means = near_constant(features, rank, rng)
            scale = rank ** (-1.0 / len(features))
            start = MeanField(
                tuple(scale * m for m in means),
                tuple(np.full_like(m, 0.05**2) for m in means),
                beta=1.0,
                gamma=1.0,
            )
            fits.append(ascend(start, features, y, self.max_iter, self.tol))
        best = int(np.argmax([fit.elbo[-1] for fit in fits]))
        self.posterior_, self.size_ = fits[best], tuple(self.sizes[best])

    def _predict(self, X: Array) -> Normal:
        q = self.posterior_
        Ef, Vf = moments(
            polynomial_features(X, self.size_[1], self.unit_norm), q.means, q.variances
        )
        return Normal(Ef, np.sqrt(Vf), q.beta**-0.5)


def polynomial_features(X: Array, n_basis: int, unit_norm: bool = True) -> list[Array]:
    """``x^i / |(1, x, .., x^(I-1))|``, or ``x^i``, per column of X (N, D): D matrices (N, I)."""
    if not unit_norm:
        return [np.vander(x, n_basis, increasing=True) for x in X.T]
    basis = UnitPolynomial(n_basis)
    return [basis.phi(np.ascontiguousarray(x)).T for x in X.T]


def moments(
    features: Features, means: Sequence[Array], variances: Sequence[Array]
) -> tuple[Array, Array]:
    """Mean and variance of ``f`` under independent weights, each (N,).

    ``E f = sum_r prod_d a_dr``, ``Var f = sum_r [prod_d (a_dr^2 + b_dr) - prod_d a_dr^2]`` with
    ``a = phi^T m`` and ``b = (phi^2)^T s^2``; the difference is summed in positive terms.
    """
    N, R = len(features[0]), means[0].shape[1]
    product, variance = np.ones((N, R)), np.zeros((N, R))
    for Phi, m, s2 in zip(features, means, variances, strict=True):
        a, b = Phi @ m, Phi**2 @ s2
        variance = variance * (a * a + b) + product**2 * b
        product = product * a
    return product.sum(axis=1), variance.sum(axis=1)


def ascend(q: MeanField, features: Features, y: Array, max_iter: int, tol: float) -> MeanField:
    """Coordinate ascent of the bound: each core, then the two precisions, in closed form.

    Noise and prior start to be learned after a few sweeps, when there is a function to speak of.
    """
    elbo: list[float] = []
    for k in range(max_iter):
        for d in range(len(features)):
            q = _with_core(q, features, y, d)
        q = q.balanced()
        if k >= 3:
            q = _with_precisions(q, features, y)
        elbo.append(q.bound(features, y))
        if k > 10 and elbo[-1] - elbo[-2] < tol * len(y):
            break
    return MeanField(q.means, q.variances, q.beta, q.gamma, tuple(elbo))


def _with_core(q: MeanField, features: Features, y: Array, d: int) -> MeanField:
    """Maximise the bound over means and variances of core d: linear in the means."""
    a = [Phi @ m for Phi, m in zip(features, q.means, strict=True)]
    second = [ak**2 + Phi**2 @ s2 for ak, Phi, s2 in zip(a, features, q.variances, strict=True)]
    Phi, Z = features[d], others(a, d)
    extra = np.maximum(others(second, d) - Z * Z, 0.0)  # Var z_r: only on the diagonal in r
    I, R = q.means[d].shape
    A = row_kronecker(Phi, Z)
    S = (A.T @ A).reshape(I, R, I, R)
    for r in range(R):
        S[:, r, :, r] += (Phi * extra[:, r : r + 1]).T @ Phi
    S = S.reshape(I * R, I * R)
    H = q.beta * S + q.gamma * np.eye(I * R)
    m = solve(H, q.beta * (A.T @ y), assume_a="pos").reshape(I, R)
    s2 = (1.0 / np.diagonal(H)).reshape(I, R)
    means, variances = list(q.means), list(q.variances)
    means[d], variances[d] = m, s2
    return MeanField(tuple(means), tuple(variances), q.beta, q.gamma)


def _with_precisions(q: MeanField, features: Features, y: Array) -> MeanField:
    Ef, Vf = moments(features, q.means, q.variances)
    beta = len(y) / max(float(np.sum((y - Ef) ** 2 + Vf)), 1e-12 * len(y))
    size = sum(float(np.sum(m * m + s2)) for m, s2 in zip(q.means, q.variances, strict=True))
    gamma = sum(m.size for m in q.means) / size
    return MeanField(q.means, q.variances, beta, gamma)
