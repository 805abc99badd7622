"""Training of neural networks with JAX and Optax: one jitted loop for all, in double precision.

Double precision is switched on inside `double` only; importing this module changes no setting of
JAX.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, wraps
from itertools import pairwise
from typing import Any, ParamSpec, TypeVar, final

import jax
import jax.numpy as jnp
import numpy as np
import optax

__all__ = [
    "Training",
    "descend",
    "double",
    "initial_layers",
    "network",
    "plain_steps",
    "squared_exponential",
]
P = ParamSpec("P")
T = TypeVar("T")
Layers = list[tuple[Any, Any]]
"""Weights (fan_in, fan_out) and biases (fan_out,) of each layer."""


def double(function: Callable[P, T]) -> Callable[P, T]:
    """Run a function with 64-bit JAX, and leave the setting of the program as it was."""

    @wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        with jax.enable_x64(True):
            return function(*args, **kwargs)

    return wrapped


def initial_layers(sizes: tuple[int, ...], rng: np.random.Generator) -> Layers:
    """Weights N(0, 1 / fan_in) and biases zero, for layers of the given sizes."""
    return [(rng.standard_normal((a, b)) / np.sqrt(a), np.zeros(b)) for a, b in pairwise(sizes)]


def network(layers: Any, X: Any, activation: Callable[[Any], Any] = jnp.tanh) -> Any:
    """Multilayer perceptron: X (n, D) to outputs (n,)."""
    for W, b in layers[:-1]:
        X = activation(X @ W + b)
    W, b = layers[-1]
    return (X @ W + b)[:, 0]


def squared_exponential(X: Any, lengths: Any, signal: Any) -> Any:
    """Kernel matrix (n, n) of X (n, D), differentiable."""
    scaled = X / lengths
    distances = jnp.sum((scaled[:, None] - scaled[None]) ** 2, axis=2)
    return signal * jnp.exp(-0.5 * distances)


def plain_steps(n_rows: int, epochs: int, batch: int, fewest: int) -> int:
    """Steps for a number of epochs, between ``fewest`` and four times as many."""
    return int(np.clip(epochs * n_rows / min(batch, n_rows), fewest, 4 * fewest))


@partial(jax.jit, static_argnames=("loss", "steps", "batch", "rate"))
def descend(
    loss: Callable[..., Any],
    parameters: Any,
    data: Any,
    constants: Any,
    seed: int,
    *,
    steps: int,
    batch: int,
    rate: float,
) -> tuple[Any, Any]:
    """Minimise by Adam with a cosine schedule; returns parameters and the losses (steps,).

    Parameters
    ----------
    loss : callable
        ``loss(parameters, rows, constants, key, progress)`` for a batch, scaled to all rows;
        ``progress`` runs from 0 to 1.
    parameters : tree of arrays
        Where to start.
    data : tuple of arrays
        Rows along the first axis. A ``batch`` of at least as many is all of them.
    constants : tree of arrays
        Handed to the loss as they are.
    seed : int
        For batches and noise.
    steps, batch, rate : int, int, float
        Number of steps, rows per step and first learning rate.
    """
    n = len(data[0])
    optimiser = optax.adam(optax.cosine_decay_schedule(rate, steps, alpha=0.01))

    def step(state: Any, k: Any) -> Any:
        parameters, memory, key = state
        key, pick, noise = jax.random.split(key, 3)
        rows = data
        if batch < n:
            at = jax.random.randint(pick, (batch,), 0, n)
            rows = tuple(part[at] for part in data)
        value, gradient = jax.value_and_grad(loss)(parameters, rows, constants, noise, k / steps)
        update, memory = optimiser.update(gradient, memory)
        return (optax.apply_updates(parameters, update), memory, key), value

    start = (parameters, optimiser.init(parameters), jax.random.key(seed))
    (parameters, _, _), values = jax.lax.scan(step, start, jnp.arange(steps))
    return parameters, values


@final
@dataclass(frozen=True)
class Training:
    """How long, how fast and by how many rows at a time a network is trained.

    Attributes
    ----------
    epochs, learning_rate, batch_size : int, float, int
        Adam with a cosine schedule.
    min_steps : int
        Steps at least, and four times as many at most, whatever the epochs.
    """

    epochs: int
    learning_rate: float
    batch_size: int
    min_steps: int

    def minimise(
        self,
        loss: Callable[..., Any],
        parameters: Any,
        data: tuple[Any, ...],
        constants: Any,
        seed: int,
    ) -> Any:
        """Parameters that `descend` ends at."""
        steps = plain_steps(len(data[0]), self.epochs, self.batch_size, self.min_steps)
        how = {"steps": steps, "batch": self.batch_size, "rate": self.learning_rate}
        return descend(loss, parameters, data, constants, seed, **how)[0]
