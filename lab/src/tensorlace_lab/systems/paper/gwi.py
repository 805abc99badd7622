"""GWI-DNN: Gaussian Wasserstein inference with a network as mean."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, final

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import cholesky, solve_triangular

from tensorlace.metrics import nll
from tensorlace.predictive.distributions import Normal
from tensorlace_lab.systems.parts.descent import (
    Training,
    double,
    initial_layers,
    squared_exponential,
)
from tensorlace_lab.systems.parts.held_out import held_out, variance_factor
from tensorlace_lab.systems.parts.kernel import SquaredExponential, likely
from tensorlace_lab.systems.regressor import Array, Baseline

__all__ = ["GWI", "trace_root"]

_LEAST_NOISE = 0.1  # of a second kernel, in units of the variance of y
_SUBSET = 100  # rows per step at which the two Gaussian measures are compared


@final
class GWI(Baseline):
    """Generalised variational inference in function space (Wild, Hu & Sejdinovic 2022).

    The prior is a Gaussian process with kernel k, the posterior a Gaussian measure whose mean is a
    network (two tanh layers, batch normalisation, a residual link) and whose covariance is
    ``r = k - k_Z K_ZZ^-1 k_Z + k_Z L L^T k_Z`` with L trained and Z training rows. The objective is
    the expected error, weighted per batch as in the released code, plus the Wasserstein distance
    of the two measures. Kernel and noise come from the marginal likelihood at Z and stay. The
    variance is tempered by the factor that is best on a tenth of the rows, held out. Where the
    noise is next to none, these rows decide between that kernel and the likeliest one with some
    noise: none explains copies among the rows, which a network as mean cannot remember.

    Two things differ from the released code, which scales the start of L by the signal (here: by
    the noise, which makes it the sparse Gaussian process posterior), and takes eigenvalues of an
    unsymmetric matrix with 100 added to its diagonal (here: of its symmetric form).

    Parameters
    ----------
    hidden : sequence of int
        Units per layer of the mean.
    max_inducing : int
        Points Z: all rows up to this number, else the larger of ``2 sqrt(N)`` and half of it.
    epochs, learning_rate, batch_size : int, float, int
        Adam with a cosine schedule.
    min_steps : int
        Steps at least, and four times as many at most, whatever the epochs.
    random_state : int, RandomState or None
        First weights, Z, batches and the held-out rows.

    Attributes
    ----------
    temperature_ : float
        Factor of the variance.

    Examples
    --------
    >>> X = np.linspace(-2, 2, 50)[:, None]
    >>> model = GWI(epochs=200, min_steps=200, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> bool(model.temperature_ > 0)
    True
    """

    def __init__(
        self,
        hidden: Sequence[int] = (10, 10),
        max_inducing: int = 500,
        epochs: int = 1000,
        learning_rate: float = 1e-2,
        batch_size: int = 1000,
        min_steps: int = 1500,
        random_state: Any = None,
    ) -> None:
        self.hidden = hidden
        self.max_inducing = max_inducing
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.min_steps = min_steps
        self.random_state = random_state

    @double
    def _fit(self, X: Array, y: Array, rng: np.random.Generator) -> None:
        held, rest = held_out(len(X), rng)
        X_held, y_held, X, y = X[held], y[held], X[rest], y[rest]
        M = self.max_inducing
        M = len(X) if len(X) <= M else max(M // 2, round(2 * np.sqrt(len(X))))
        kernels = likely(X[:M], y[:M], rng, M, least_noise=_LEAST_NOISE)
        layers = initial_layers((X.shape[1], *self.hidden, 1), rng)
        seed = int(rng.integers(2**31 - 1))
        found = [
            self._trained(_Prior.of(kernel, X[:M]), X, y, layers, seed).tempered(X_held, y_held)
            for kernel in kernels
        ]
        self._measure = min(found, key=lambda measure: nll(y_held, measure(X_held)))
        self.kernel_, self.temperature_ = self._measure.prior.kernel, self._measure.temperature

    def _trained(self, prior: "_Prior", X: Array, y: Array, layers: Any, seed: int) -> "_Measure":
        kernel, A = prior.kernel, prior.whitened(X)
        noise = max(kernel.noise, 1e-6)
        start = _lower_root_of_inverse(np.eye(A.shape[1]) + A.T @ A / noise)
        norms = [(np.ones(n), np.zeros(n)) for n in self.hidden]
        training = Training(self.epochs, self.learning_rate, self.batch_size, self.min_steps)
        constants = (kernel.lengths, kernel.signal, noise, float(len(X)))
        mean, root = training.minimise(_loss, ((layers, norms), start), (X, y, A), constants, seed)
        _, statistics = _network(mean, X, None)
        mean, root, statistics = jax.tree.map(np.asarray, (mean, np.tril(root), statistics))
        return _Measure(prior, mean, statistics, root, noise)

    @double
    def _predict(self, X: Array) -> Normal:
        return self._measure(X)


@final
@dataclass(frozen=True)
class _Prior:
    """The Gaussian process, seen from the points Z (M, D); ``L`` is the root of K_ZZ."""

    kernel: SquaredExponential
    Z: Array
    L: Array

    @classmethod
    def of(cls, kernel: SquaredExponential, Z: Array) -> Self:
        K = kernel(Z, Z) + 1e-8 * kernel.signal * np.eye(len(Z))
        return cls(kernel, Z, cholesky(K, lower=True))

    def whitened(self, X: Array) -> Array:
        """``(L^-1 k_Z(x))^T``, (n, M)."""
        return np.asarray(solve_triangular(self.L, self.kernel(self.Z, X), lower=True).T)


@final
@dataclass(frozen=True)
class _Measure:
    """A trained posterior: mean network with the statistics of its layers, covariance, noise."""

    prior: _Prior
    mean: Any
    statistics: Any
    root: Array
    noise: float
    temperature: float = 1.0

    def __call__(self, X: Array) -> Normal:
        mean, _ = _network(self.mean, X, self.statistics)
        A = self.prior.whitened(X)
        beyond = np.maximum(self.prior.kernel.signal - np.sum(A * A, axis=1), 0.0)
        r = beyond + np.sum((A @ self.root) ** 2, axis=1)
        t = self.temperature
        return Normal(np.asarray(mean), np.sqrt(t * r), np.sqrt(t * self.noise))

    def tempered(self, X: Array, y: Array) -> Self:
        """With the variance factor of least Gaussian NLL on these rows, in closed form."""
        return replace(self, temperature=variance_factor(self(X), y))


def _network(parameters: Any, X: Any, statistics: Any) -> tuple[Any, Any]:
    """Outputs (n,) and mean and variance of each hidden layer; given ones are used if any."""
    layers, norms = parameters
    seen = []
    for k, ((W, b), (scale, shift)) in enumerate(zip(layers[:-1], norms, strict=True)):
        H = jnp.tanh(X @ W + b)
        centre, spread = (H.mean(axis=0), H.var(axis=0)) if statistics is None else statistics[k]
        seen.append((centre, spread))
        H = scale * (H - centre) / jnp.sqrt(spread + 1e-5) + shift
        X = X + H if X.shape == H.shape else H
    W, b = layers[-1]
    return (X @ W + b)[:, 0], seen


def _loss(parameters: Any, rows: Any, constants: Any, key: Any, _progress: Any) -> Any:
    """Expected squared error over twice the noise variance, plus the Wasserstein distance."""
    (mean, root), (X, y, A), (lengths, signal, noise, n) = parameters, rows, constants
    m, _ = _network(mean, X, None)
    size = min(_SUBSET, len(X))
    at = jax.random.choice(key, len(X), (size,), replace=False)
    a, nugget = A[at], 1e-6 * signal * jnp.eye(size)
    K = squared_exponential(X[at], lengths, signal) + nugget
    inner = a @ jnp.tril(root)
    R = K - a @ a.T + inner @ inner.T + nugget
    r = jnp.mean(jnp.diagonal(R))
    fit = (jnp.mean((y - m) ** 2) + r) * n / len(X) / (2 * noise)
    C = jnp.linalg.cholesky(K)
    squared = jnp.mean(m**2) + signal + r - 2 * trace_root(C.T @ R @ C) / size
    return fit + jnp.sqrt(jnp.maximum(squared, 1e-8))


def _lower_root_of_inverse(B: Array) -> Array:
    """Lower ``L`` with ``L Lᵀ = B⁻¹``, which rounding could leave with a negative eigenvalue.

    Taken from below, ``B = U Uᵀ`` with an upper triangle, and ``L = U⁻ᵀ``.
    """
    U = cholesky(B[::-1, ::-1], lower=True)[::-1, ::-1]
    return np.asarray(solve_triangular(U, np.eye(len(B))).T)


@jax.custom_vjp
def trace_root(S: Any) -> Any:
    """Trace of the square root of a positive semidefinite matrix; its gradient is smooth."""
    return jnp.sum(jnp.sqrt(jnp.maximum(jnp.linalg.eigvalsh(S), 0.0)))


def _forward(S: Any) -> Any:
    lam, U = jnp.linalg.eigh((S + S.T) / 2)
    roots = jnp.sqrt(jnp.maximum(lam, 1e-10 * lam[-1]))
    return jnp.sum(jnp.sqrt(jnp.maximum(lam, 0.0))), (U, roots)


def _backward(saved: Any, g: Any) -> Any:
    U, roots = saved
    return (g * 0.5 * (U / roots) @ U.T,)


trace_root.defvjp(_forward, _backward)
