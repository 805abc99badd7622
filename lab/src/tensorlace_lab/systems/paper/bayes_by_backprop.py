"""BBB: Bayes by backprop, a neural network with independent Gaussian weights."""

from collections.abc import Sequence
from functools import partial
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np

from tensorlace.predictive.distributions import Mixture
from tensorlace_lab.systems.parts.descent import Training, double, initial_layers
from tensorlace_lab.systems.regressor import Array, Baseline, equal_mixture

__all__ = ["BayesByBackprop"]


@final
class BayesByBackprop(Baseline):
    """Mean-field variational inference over the weights (Blundell et al. 2015).

    Tanh network, prior N(0, 1), ``q(w) = prod N(mu, sd^2)``; the gradient of the bound is taken
    through samples of the pre-activations (local reparameterisation), the divergence is in closed
    form and grows to its weight over the first fifth of the steps. The noise is learned. The
    predictive is the mixture over ``n_draws`` networks.

    Parameters
    ----------
    hidden : sequence of int
        Units per layer.
    epochs, learning_rate, batch_size : int, float, int
        Adam with a cosine schedule.
    min_steps : int
        Steps at least, and four times as many at most, whatever the epochs.
    n_draws : int
        Networks in the predictive mixture.
    random_state : int, RandomState or None
        First weights, batches and samples.

    Examples
    --------
    >>> X = np.linspace(-2, 2, 50)[:, None]
    >>> model = BayesByBackprop(min_steps=200, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> len(model.predict_dist(X).weights)
    100
    """

    def __init__(
        self,
        hidden: Sequence[int] = (10, 10),
        epochs: int = 200,
        learning_rate: float = 1e-2,
        batch_size: int = 2048,
        min_steps: int = 5000,
        n_draws: int = 100,
        random_state: Any = None,
    ) -> None:
        self.hidden = hidden
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.min_steps = min_steps
        self.n_draws = n_draws
        self.random_state = random_state

    @double
    def _fit(self, X: Array, y: Array, rng: np.random.Generator) -> None:
        sizes = (X.shape[1], *self.hidden, 1)
        means = initial_layers(sizes, rng)
        logs = [(np.full_like(W, np.log(0.02)), np.full_like(b, np.log(0.02))) for W, b in means]
        training = Training(self.epochs, self.learning_rate, self.batch_size, self.min_steps)
        start, seed = (means, logs, np.log(0.3)), int(rng.integers(2**31 - 1))
        means, logs, log_noise = training.minimise(_loss, start, (X, y), float(len(X)), seed)
        self._means, self._logs = jax.tree.map(np.asarray, (means, logs))
        self.noise_std_, self._seed = float(np.exp(log_noise)), int(rng.integers(2**31 - 1))

    @double
    def _predict(self, X: Array) -> Mixture:
        f = np.asarray(_draws(self._means, self._logs, X, self._seed, self.n_draws))
        return equal_mixture(f, self.noise_std_)


def _sampled_layer(X: Any, mean: Any, log: Any, key: Any) -> Any:
    """Pre-activations of a layer with random weights, independent between rows."""
    (W, b), (lW, lb) = mean, log
    variance = X**2 @ jnp.exp(2 * lW) + jnp.exp(2 * lb)
    noise = jax.random.normal(key, variance.shape, dtype=variance.dtype)
    return X @ W + b + jnp.sqrt(variance) * noise


def _loss(parameters: Any, rows: Any, n: Any, key: Any, progress: Any) -> Any:
    """Negative evidence bound per row."""
    means, logs, log_noise = parameters
    X, y = rows
    keys = jax.random.split(key, len(means))
    for k, (mean, log) in enumerate(zip(means, logs, strict=True)):
        X = _sampled_layer(X, mean, log, keys[k])
        if k < len(means) - 1:
            X = jnp.tanh(X)
    fit = jnp.mean(log_noise + 0.5 * ((y - X[:, 0]) / jnp.exp(log_noise)) ** 2)
    return fit + jnp.minimum(5.0 * progress, 1.0) * _divergence(means, logs) / n


def _divergence(means: Any, logs: Any) -> Any:
    """``KL(q || N(0, 1))`` over all weights."""
    parts = jax.tree.map(lambda m, l: 0.5 * jnp.sum(m**2 + jnp.exp(2 * l) - 2 * l - 1), means, logs)
    return sum(jax.tree.leaves(parts))


@partial(jax.jit, static_argnames="n_draws")
def _draws(means: Any, logs: Any, X: Any, seed: Any, n_draws: int) -> Any:
    """Outputs (n_draws, n) of whole networks drawn from q."""

    def one(key: Any) -> Any:
        H = X
        for k, ((W, b), (lW, lb)) in enumerate(zip(means, logs, strict=True)):
            a, c = jax.random.split(jax.random.fold_in(key, k))
            H = H @ (W + jnp.exp(lW) * jax.random.normal(a, W.shape))
            H = H + b + jnp.exp(lb) * jax.random.normal(c, b.shape)
            if k < len(means) - 1:
                H = jnp.tanh(H)
        return H[:, 0]

    return jax.lax.map(one, jax.random.split(jax.random.key(seed), n_draws))
