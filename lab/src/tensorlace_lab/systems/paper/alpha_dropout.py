"""Variational alpha-dropout: dropout trained with a Rényi energy."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

from tensorlace.metrics import nll
from tensorlace.predictive.distributions import Mixture
from tensorlace_lab.systems.parts.descent import descend, double, initial_layers, plain_steps
from tensorlace_lab.systems.regressor import Array, Baseline, equal_mixture

__all__ = ["AlphaDropout", "Energy"]


@final
class AlphaDropout(Baseline):
    """Black-box alpha-divergence dropout (Li & Gal 2017), alpha = 1/2.

    One ReLU layer, dropout on inputs and units. Per row the energy is
    ``-1/alpha log mean_k exp(alpha log N(y | f_k, 1/tau))`` over ``n_masks`` masks, with a decay of
    ``(1 - p) l^2 / 2 |W|^2`` on the weights. ``tau`` is learned; the rate p is chosen on a tenth of
    the rows, and the network trained again on all. The predictive is the mixture over ``n_draws``
    masks.

    Parameters
    ----------
    n_hidden : int
        Units of the layer.
    alpha : float
        Of the divergence.
    rates : sequence of float
        Candidate dropout rates.
    n_masks, n_draws : int
        Masks in training and in the predictive.
    lengthscale : float
        Of the weight decay.
    epochs, learning_rate, batch_size : int, float, int
        Adam with a cosine schedule.
    min_steps : int
        Steps at least, and four times as many at most, whatever the epochs.
    random_state : int, RandomState or None
        First weights, batches, masks and the held-out rows.

    Attributes
    ----------
    rate_ : float
        Chosen dropout rate.

    Examples
    --------
    >>> X = np.linspace(-2, 2, 50)[:, None]
    >>> model = AlphaDropout(rates=(0.01,), random_state=0).fit(X, np.sin(X[:, 0]))
    >>> model.rate_
    0.01
    """

    def __init__(
        self,
        n_hidden: int = 50,
        alpha: float = 0.5,
        rates: Sequence[float] = (0.005, 0.01, 0.05, 0.1),
        n_masks: int = 10,
        n_draws: int = 100,
        lengthscale: float = 1e-2,
        epochs: int = 400,
        learning_rate: float = 1e-2,
        batch_size: int = 128,
        min_steps: int = 2000,
        random_state: Any = None,
    ) -> None:
        self.n_hidden = n_hidden
        self.alpha = alpha
        self.rates = rates
        self.n_masks = n_masks
        self.n_draws = n_draws
        self.lengthscale = lengthscale
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.min_steps = min_steps
        self.random_state = random_state

    @double
    def _fit(self, X: Array, y: Array, rng: np.random.Generator) -> None:
        self._seed = int(rng.integers(2**31 - 1))
        seed = int(rng.integers(2**31 - 1))
        order = rng.permutation(len(X))
        held, rest = np.split(order, [max(len(X) // 10, 1)])
        scores = []
        for rate in self.rates if len(self.rates) > 1 else ():
            fitted = self._train(X[rest], y[rest], rate, seed)
            scores.append(nll(y[held], self._mixture(*fitted, rate, X[held])))
        self.rate_ = self.rates[int(np.argmin(scores))] if scores else self.rates[0]
        self._layers, self._log_tau = self._train(X, y, self.rate_, seed)

    def _train(self, X: Array, y: Array, rate: float, seed: int) -> tuple[Any, float]:
        rng = np.random.default_rng(seed)
        layers = initial_layers((X.shape[1], self.n_hidden, 1), rng)
        steps = plain_steps(len(X), self.epochs, self.batch_size, self.min_steps)
        (layers, log_tau), _ = descend(
            Energy(self.alpha, self.n_masks),
            (layers, np.log(10.0)),
            (X, y),
            (rate, self.lengthscale**2, float(len(X))),
            seed,
            steps=steps,
            batch=self.batch_size,
            rate=self.learning_rate,
        )
        return jax.tree.map(np.asarray, layers), float(log_tau)

    @double
    def _predict(self, X: Array) -> Mixture:
        return self._mixture(self._layers, self._log_tau, self.rate_, X)

    def _mixture(self, layers: Any, log_tau: float, rate: float, X: Array) -> Mixture:
        f = np.asarray(_draws(layers, X, rate, self._seed, self.n_draws))
        return equal_mixture(f, float(np.exp(-0.5 * log_tau)))


@final
@dataclass(frozen=True)
class Energy:
    """The objective for an alpha and a number of masks; equal ones are compiled once."""

    alpha: float
    n_masks: int

    def __call__(self, parameters: Any, rows: Any, constants: Any, key: Any, _progress: Any) -> Any:
        """Energy per row (Li & Gal 2017, eq. 10) and weight decay."""
        (layers, log_tau), (X, y), (rate, squared, n) = parameters, rows, constants
        alpha, n_masks = self.alpha, self.n_masks
        keys = jax.random.split(key, n_masks)
        f = jax.vmap(lambda k: _dropped(layers, X, rate, k, shared=False))(keys)  # (K, n)
        terms = -0.5 * alpha * jnp.exp(log_tau) * (y - f) ** 2
        energy = -(logsumexp(terms, axis=0) - jnp.log(n_masks)) / alpha - 0.5 * log_tau
        size = sum(jnp.sum(W**2) for W, _ in layers)
        return jnp.mean(energy) + 0.5 * (1.0 - rate) * squared * size / n


def _dropped(layers: Any, X: Any, rate: Any, key: Any, shared: bool) -> Any:
    """Outputs (n,) with inputs and units dropped; one mask for all rows if ``shared``."""
    for k, (W, b) in enumerate(layers):
        rows = 1 if shared else len(X)
        kept = jax.random.bernoulli(jax.random.fold_in(key, k), 1.0 - rate, (rows, W.shape[0]))
        X = (X * kept / (1.0 - rate)) @ W + b
        if k < len(layers) - 1:
            X = jax.nn.relu(X)
    return X[:, 0]


@partial(jax.jit, static_argnames="n_draws")
def _draws(layers: Any, X: Any, rate: Any, seed: Any, n_draws: int) -> Any:
    """Outputs (n_draws, n), a mask each."""
    keys = jax.random.split(jax.random.key(seed), n_draws)
    return jax.lax.map(lambda key: _dropped(layers, X, rate, key, shared=True), keys)
