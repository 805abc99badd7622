"""FVI: variational inference over functions, a linearised stand-in."""

from collections.abc import Sequence
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.scipy.linalg import cho_solve

from tensorlace.predictive.distributions import Normal
from tensorlace_lab.systems.paper.laplace_bnn import jacobian
from tensorlace_lab.systems.parts.descent import (
    Training,
    double,
    initial_layers,
    network,
    squared_exponential,
)
from tensorlace_lab.systems.parts.held_out import held_out, variance_factor
from tensorlace_lab.systems.parts.kernel import most_likely
from tensorlace_lab.systems.regressor import Array, Baseline

__all__ = ["FVI"]

_JITTER = 1e-2
_AWAY = 32  # points of the box, beside the rows of the batch, where functions are compared


@final
class FVI(Baseline):
    """Function-space variational inference; a stand-in for Ma & Hernandez-Lobato (2021).

    No code of the original (a stochastic process generator) is public. This keeps its idea, a
    bound with the divergence between functions, not weights, in the linearised form: ``q(f)`` at
    points X is ``N(f_mu(X), J diag(s^2) J^T)`` for a tanh network, the prior is a Gaussian
    process with its hyperparameters by marginal likelihood, and the divergence is taken at the rows
    of the batch and random points of the box around all, new in every step. Noise is learned, and
    as networks fit training rows too well, the variance is scaled by the factor that is best on a
    tenth of the rows, held out.

    Parameters
    ----------
    hidden : sequence of int
        Units per layer.
    epochs, learning_rate, batch_size : int, float, int
        Adam with a cosine schedule.
    min_steps : int
        Steps at least, and four times as many at most, whatever the epochs.
    hyper_rows : int
        Rows that the prior sees.
    random_state : int, RandomState or None
        First weights, batches, measurement points and the held-out rows.

    Attributes
    ----------
    temperature_ : float
        Factor of the variance.

    Examples
    --------
    >>> X = np.linspace(-2, 2, 50)[:, None]
    >>> model = FVI(epochs=300, min_steps=300, learning_rate=0.03, random_state=0)
    >>> model = model.fit(X, np.sin(X[:, 0]))
    >>> bool(abs(model.predict([[1.0]])[0] - np.sin(1.0)) < 0.1)
    True
    """

    def __init__(
        self,
        hidden: Sequence[int] = (10, 10),
        epochs: int = 400,
        learning_rate: float = 1e-2,
        batch_size: int = 128,
        min_steps: int = 2000,
        hyper_rows: int = 1000,
        random_state: Any = None,
    ) -> None:
        self.hidden = hidden
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.min_steps = min_steps
        self.hyper_rows = hyper_rows
        self.random_state = random_state

    @double
    def _fit(self, X: Array, y: Array, rng: np.random.Generator) -> None:
        held, rest = held_out(len(X), rng)
        X_held, y_held, X, y = X[held], y[held], X[rest], y[rest]
        kernel = most_likely(X, y, rng, self.hyper_rows)
        layers = initial_layers((X.shape[1], *self.hidden, 1), rng)
        logs = np.full(sum(W.size + b.size for W, b in layers), np.log(0.02))
        box = (X.min(axis=0), X.max(axis=0))
        training = Training(self.epochs, self.learning_rate, self.batch_size, self.min_steps)
        start, seed = (layers, logs, np.log(0.3)), int(rng.integers(2**31 - 1))
        constants = (kernel.lengths, kernel.signal, box, float(len(X)))
        layers, logs, log_noise = training.minimise(_loss, start, (X, y), constants, seed)
        self._layers, self._logs = jax.tree.map(np.asarray, (layers, logs))
        self.noise_std_, self.temperature_ = float(np.exp(log_noise)), 1.0
        self.temperature_ = variance_factor(self._predict(X_held), y_held)

    @double
    def _predict(self, X: Array) -> Normal:
        mean = np.asarray(network(self._layers, X))
        J = np.asarray(jacobian(self._layers, X))
        root = np.sqrt(self.temperature_)
        return Normal(mean, root * np.sqrt(J**2 @ np.exp(2 * self._logs)), root * self.noise_std_)


def _loss(parameters: Any, rows: Any, constants: Any, key: Any, _progress: Any) -> Any:
    """Negative bound per row: expected error in closed form, divergence at measurement points."""
    layers, logs, log_noise = parameters
    (X, y), (lengths, signal, (low, high), n) = rows, constants
    spread, n_batch = jnp.exp(2 * logs), len(X)
    box = jax.random.uniform(key, (_AWAY, X.shape[1]), dtype=X.dtype)
    M = jnp.concatenate([X, low + (high - low) * box])
    f, J = network(layers, M), _jacobian(layers, M)
    error = (y - f[:n_batch]) ** 2 + J[:n_batch] ** 2 @ spread
    fit = jnp.mean(log_noise + 0.5 * error / jnp.exp(2 * log_noise))
    nugget = _JITTER * jnp.eye(len(M))
    K = squared_exponential(M, lengths, signal) + nugget
    return fit + _divergence(f, (J * spread) @ J.T + nugget, K) / n


def _divergence(mean: Any, Q: Any, K: Any) -> Any:
    """``KL(N(mean, Q) || N(0, K))``."""
    L, C = jnp.linalg.cholesky(K), jnp.linalg.cholesky(Q)
    trace = jnp.trace(cho_solve((L, True), Q))
    quadratic = mean @ cho_solve((L, True), mean)
    logs = 2 * jnp.sum(jnp.log(jnp.diagonal(L)) - jnp.log(jnp.diagonal(C)))
    return 0.5 * (trace + quadratic - len(mean) + logs)


def _jacobian(layers: Any, X: Any) -> Any:
    """Derivatives by all weights (n, P), themselves differentiable."""
    flat, restore = ravel_pytree(layers)
    return jax.vmap(jax.grad(lambda t, x: network(restore(t), x[None])[0]), (None, 0))(flat, X)
