"""SP-BTN: a Bayesian tensor network with a low-rank mean and a Kronecker-separable variance."""

from collections.abc import Sequence
from functools import reduce
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from scipy.optimize import minimize

from tensorlace.predictive.distributions import Normal
from tensorlace_lab.systems.paper.mean_field_btn import (
    MeanField,
    ascend,
    moments,
    polynomial_features,
)
from tensorlace_lab.systems.parts.cp_machine import near_constant
from tensorlace_lab.systems.parts.descent import double
from tensorlace_lab.systems.regressor import Array, Baseline

__all__ = ["StructuredBTN", "negative_bound", "posterior_moments"]


@final
class StructuredBTN(Baseline):
    """Bayesian tensor network with structured posterior (Konstantinidis, Xu & Mandic 2022).

    As `MeanFieldBTN`, but the means of all cores are one tensor of low rank,
    ``M[d, i, r] = sum_q a_dq b_iq c_rq``, and the standard deviations are ``s_d s_i s_r``. The
    bound has the same closed form. Every factor enters several cores, so no factor has a closed
    optimum; all are found together by L-BFGS, from the structured posterior nearest to a
    mean-field one.

    Parameters
    ----------
    sizes : sequence of (rank, n_basis)
        Candidates; the one with the highest bound is kept.
    mean_rank : int
        Terms of the mean.
    max_iter : int
        Iterations of L-BFGS at most.
    unit_norm : bool
        Divide the powers of a column by the norm of the row that they make.
    random_state : int, RandomState or None
        Start of the means.

    Attributes
    ----------
    elbo_ : float
        Bound on ``log p(y)`` for the standardised target.
    size_ : tuple (rank, n_basis)

    Examples
    --------
    >>> X = np.linspace(-2, 2, 60)[:, None]
    >>> model = StructuredBTN(sizes=[(3, 6)], random_state=0).fit(X, np.sin(X[:, 0]))
    >>> bool(abs(model.predict([[1.0]])[0] - np.sin(1.0)) < 0.1)
    True
    """

    def __init__(
        self,
        sizes: Sequence[tuple[int, int]] = ((4, 4), (8, 8)),
        mean_rank: int = 16,
        max_iter: int = 300,
        unit_norm: bool = True,
        random_state: Any = None,
    ) -> None:
        self.sizes = sizes
        self.mean_rank = mean_rank
        self.max_iter = max_iter
        self.unit_norm = unit_norm
        self.random_state = random_state

    @double
    def _fit(self, X: Array, y: Array, rng: np.random.Generator) -> None:
        best = np.inf
        for rank, n_basis in self.sizes:
            features = polynomial_features(X, n_basis, self.unit_norm)
            start = _nearest(_mean_field(features, y, rank, rng), self.mean_rank, rng)
            flat, restore = ravel_pytree(start)
            data = (jnp.asarray(np.stack(features)), jnp.asarray(y))

            def objective(theta: Array, restore: Any = restore, data: Any = data) -> Any:
                value, slope = _value_and_slope(restore(jnp.asarray(theta)), *data)
                return float(value), np.asarray(ravel_pytree(slope)[0])

            options = {"maxiter": self.max_iter, "maxcor": 20}
            run = minimize(
                objective, np.asarray(flat), jac=True, method="L-BFGS-B", options=options
            )
            if run.fun < best:
                best, self.size_ = run.fun, (rank, n_basis)
                self._parameters = jax.tree.map(np.asarray, restore(jnp.asarray(run.x)))
        self.elbo_ = -float(best)

    def _predict(self, X: Array) -> Normal:
        means, stds = posterior_moments(self._parameters)
        features = polynomial_features(X, self.size_[1], self.unit_norm)
        mean, variance = moments(features, list(means), list(stds**2))
        return Normal(mean, np.sqrt(variance), float(np.exp(-0.5 * self._parameters["beta"])))


def posterior_moments(p: Any) -> tuple[Any, Any]:
    """Means and standard deviations (D, I, R) of all weights, d slow and r fast."""
    a, b, c = p["mean"]
    u, v, w = p["log_std"]
    logs = u[:, None, None] + v[None, :, None] + w[None, None, :]
    product = jnp if isinstance(a, jax.Array) else np
    return product.einsum("dq,iq,rq->dir", a, b, c), product.exp(logs)


def negative_bound(p: Any, Phi: Any, y: Any) -> Any:
    """Minus the evidence bound, in closed form, for features (D, N, I) and y (N,)."""
    means, stds = posterior_moments(p)
    a = jnp.einsum("dni,dir->dnr", Phi, means)
    b = jnp.einsum("dni,dir->dnr", Phi**2, stds**2)
    product, variance = jnp.ones_like(a[0]), jnp.zeros_like(a[0])
    for d in range(len(Phi)):
        variance = variance * (a[d] ** 2 + b[d]) + product**2 * b[d]
        product = product * a[d]
    error = jnp.sum((y - product.sum(axis=1)) ** 2 + variance.sum(axis=1))
    beta, gamma = jnp.exp(p["beta"]), jnp.exp(p["gamma"])
    likelihood = 0.5 * len(y) * (p["beta"] - jnp.log(2 * jnp.pi)) - 0.5 * beta * error
    kl = gamma * (means**2 + stds**2) - 2 * jnp.log(stds) - 1.0 - p["gamma"]
    return 0.5 * jnp.sum(kl) - likelihood


_value_and_slope = jax.jit(jax.value_and_grad(negative_bound))


def _mean_field(features: list[Array], y: Array, rank: int, rng: np.random.Generator) -> MeanField:
    means = near_constant(features, rank, rng)
    scale = rank ** (-1.0 / len(features))
    start = MeanField(
        tuple(scale * m for m in means), tuple(np.full_like(m, 0.05**2) for m in means), 1.0, 1.0
    )
    return ascend(start, features, y, 100, 1e-4)


def _nearest(q: MeanField, mean_rank: int, rng: np.random.Generator) -> dict[str, Any]:
    """Structured posterior near a mean-field one: CP of the means, main effects of the log stds."""
    M, logs = np.stack(q.means), 0.5 * np.log(np.stack(q.variances))
    whole = logs.mean()
    u, v, w = (logs.mean(axis=axes) - whole for axes in ((1, 2), (0, 2), (0, 1)))
    return {
        "mean": _cp(M, mean_rank, rng),
        "log_std": (u + whole, v, w),
        "beta": np.log(q.beta),
        "gamma": np.log(q.gamma),
    }


def _cp(M: Array, rank: int, rng: np.random.Generator, n_sweeps: int = 50) -> list[Array]:
    """Factors (D, Q), (I, Q), (R, Q) of a small tensor by alternating least squares."""
    factors: list[Any] = [rng.standard_normal((n, rank)) for n in M.shape]
    for _ in range(n_sweeps):
        for k in range(3):
            rest = [factors[j] for j in range(3) if j != k]
            B = (rest[0][:, None] * rest[1][None]).reshape(-1, rank)
            unfolded = np.moveaxis(M, k, 0).reshape(M.shape[k], -1)
            G = B.T @ B + 1e-6 * np.eye(rank)
            factors[k] = np.linalg.solve(G, B.T @ unfolded.T).T
    sizes = [np.linalg.norm(f, axis=0) + 1e-300 for f in factors]
    common = reduce(np.multiply, sizes) ** (1 / 3)
    return [f * (common / s) for f, s in zip(factors, sizes, strict=True)]
