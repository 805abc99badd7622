"""LA-BNN: a neural network with a linearised Laplace posterior."""

from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from tensorlace.linalg.symmetric import inverse_root
from tensorlace.predictive.distributions import Normal
from tensorlace_lab.systems.parts.descent import (
    descend,
    double,
    initial_layers,
    network,
    plain_steps,
)
from tensorlace_lab.systems.regressor import Array, Baseline

__all__ = ["LaplaceBNN", "jacobian", "precisions"]

_BLOCK = 2048


@final
class LaplaceBNN(Baseline):
    """Linearised Laplace approximation of a one-layer tanh network (Immer et al. 2021).

    The network minimises ``beta/2 |y - f|^2 + gamma/2 |theta|^2``; the posterior precision is
    ``beta J^T J + gamma I`` over all weights. Noise precision ``beta`` and prior precision
    ``gamma`` maximise the Laplace evidence, ``n_rounds`` times in turn with training. The
    predictive variance is ``j^T H^-1 j + 1/beta``. Every fit starts a new network.

    Parameters
    ----------
    n_hidden : int
        Units of the layer.
    epochs, learning_rate, batch_size : int, float, int
        Adam with a cosine schedule, per round.
    min_steps : int
        Steps at least, and four times as many at most, whatever the epochs.
    n_rounds : int
        Rounds of training and evidence.
    random_state : int, RandomState or None
        First weights and batches.

    Attributes
    ----------
    noise_precision_, prior_precision_ : float
        For standardised data.

    Examples
    --------
    >>> X = np.linspace(-2, 2, 50)[:, None]
    >>> model = LaplaceBNN(n_hidden=10, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> bool(abs(model.predict([[1.0]])[0] - np.sin(1.0)) < 0.05)
    True
    """

    def __init__(
        self,
        n_hidden: int = 100,
        epochs: int = 500,
        learning_rate: float = 1e-2,
        batch_size: int = 512,
        min_steps: int = 1000,
        n_rounds: int = 4,
        random_state: Any = None,
    ) -> None:
        self.n_hidden = n_hidden
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.min_steps = min_steps
        self.n_rounds = n_rounds
        self.random_state = random_state

    @double
    def _fit(self, X: Array, y: Array, rng: np.random.Generator) -> None:
        layers: Any = initial_layers((X.shape[1], self.n_hidden, 1), rng)
        steps = plain_steps(len(X), self.epochs, self.batch_size, self.min_steps)
        beta, gamma = 10.0, 1.0
        for _ in range(self.n_rounds):
            layers, _ = descend(
                _loss,
                layers,
                (X, y),
                (gamma / beta, float(len(X))),
                int(rng.integers(2**31 - 1)),
                steps=steps,
                batch=self.batch_size,
                rate=self.learning_rate,
            )
            theta = np.asarray(ravel_pytree(layers)[0])
            residual = y - np.asarray(network(layers, X))
            G = np.asarray(sum(J.T @ J for J in _blocks(layers, X)))
            lam = np.maximum(np.linalg.eigvalsh(G), 0.0)
            beta, gamma = precisions(
                lam, float(residual @ residual), float(theta @ theta), len(y), (beta, gamma)
            )
        H = beta * G
        H.flat[:: len(H) + 1] += gamma
        root = inverse_root(H)
        assert root is not None  # gamma > 0
        self._layers = [(np.asarray(W), np.asarray(b)) for W, b in layers]
        self._root, self.noise_precision_, self.prior_precision_ = root[0], beta, gamma

    @double
    def _predict(self, X: Array) -> Normal:
        mean = np.asarray(network(self._layers, X))
        squares = [np.sum((J @ self._root) ** 2, axis=1) for J in _blocks(self._layers, X)]
        return Normal(mean, np.sqrt(np.concatenate(squares)), self.noise_precision_**-0.5)


def _loss(layers: Any, rows: Any, constants: Any, _key: Any, _progress: Any) -> Any:
    """``|y - f|^2 / N + gamma / (beta N) |theta|^2``: the posterior per row, in units 2/beta."""
    (X, y), (ridge, n) = rows, constants
    size = sum(jnp.sum(W**2) + jnp.sum(b**2) for W, b in layers)
    return jnp.mean((y - network(layers, X)) ** 2) + ridge * size / n


@jax.jit
def jacobian(layers: Any, X: Any) -> Any:
    """Derivatives of the output by all weights, (n, P)."""
    flat, restore = ravel_pytree(layers)
    return jax.vmap(jax.grad(lambda t, x: network(restore(t), x[None])[0]), (None, 0))(flat, X)


def _blocks(layers: Any, X: Array) -> list[Array]:
    return [np.asarray(jacobian(layers, X[i : i + _BLOCK])) for i in range(0, len(X), _BLOCK)]


def precisions(
    lam: Array, error: float, size: float, n: int, start: tuple[float, float]
) -> tuple[float, float]:
    """Noise and prior precision by MacKay's fixed point of the Laplace evidence.

    ``gamma = e / |theta|^2``, ``beta = (N - e) / |r|^2`` with ``e = sum beta lam / (beta lam +
    gamma)`` for the eigenvalues ``lam`` of ``J^T J``.
    """
    beta, gamma = start
    for _ in range(100):
        effective = float(np.sum(beta * lam / (beta * lam + gamma)))
        effective = min(effective, 0.95 * n)  # a network that interpolates has no noise to measure
        old, gamma = (beta, gamma), effective / size
        beta = (n - effective) / max(error, 1e-12 * n)
        if np.allclose(old, (beta, gamma), rtol=1e-8):
            break
    return beta, gamma
