"""What models say of unseen rows, and stacking: weights by how well their mixture does there."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np

from tensorlace._types import Array
from tensorlace.likelihoods import student
from tensorlace.machines.ensemble import SHARPNESS, blend
from tensorlace.predictive.distributions import Distribution, Mixture

__all__ = ["Unseen", "greedy", "mean_and_error", "score_weights"]


@final
@dataclass(frozen=True, eq=False)
class Unseen:
    """What K models say of n rows that they were not fitted to, in units of y.

    Attributes
    ----------
    means, epistemic, aleatoric : (K, n) arrays
    degrees : (K,) array or None
        Of Student's t, by which models that were fitted with tails are judged; None: none was.
    """

    means: Array
    epistemic: Array
    aleatoric: Array
    degrees: Array | None = None

    @classmethod
    def of(cls, dists: Sequence[Distribution]) -> Self:
        """From one Normal per model."""
        parts = ("means", "epistemic_stds", "aleatoric_stds")
        return cls(*(np.concatenate([getattr(d, part) for d in dists]) for part in parts))

    @property
    def log_std(self) -> Array:
        """Logarithm of the total standard deviation (K, n)."""
        return np.log(np.hypot(self.epistemic, self.aleatoric))

    def log_density(self, y: Array) -> Array:
        """Of the targets ``y`` (n,): (K, n)."""
        z = (y - self.means) / np.hypot(self.epistemic, self.aleatoric)
        if self.degrees is not None:
            pairs = zip(z, self.degrees, strict=True)
            return (
                np.stack([student.log_density(row * row, nu) for row, nu in pairs]) - self.log_std
            )
        return np.asarray(-0.5 * z * z - self.log_std - 0.5 * np.log(2.0 * np.pi))

    def __getitem__(self, part: Any) -> "Unseen":
        """Some of the models, or of the rows."""
        models = part[0] if isinstance(part, tuple) else part
        degrees = None if self.degrees is None else self.degrees[models]
        return Unseen(self.means[part], self.epistemic[part], self.aleatoric[part], degrees)

    def mixture(self, weights: Array) -> Mixture:
        """Their blend with overall weights (K,)."""
        by_row = blend(weights, self.log_std)
        return Mixture(self.means, self.epistemic, self.aleatoric, by_row)


def greedy(unseen: Unseen, y: Array, weight: Array | None, n_members: int) -> Array:
    """Members of a blend picked one by one, the same one more than once if it helps.

    Parameters
    ----------
    unseen : Unseen of K models and n rows
    y : (n,) array
    weight : (n,) array or None
        Repetitions of the rows.
    n_members : int
        Picks.

    Returns
    -------
    (K,) array
        How often each was picked.

    Examples
    --------
    >>> means, ones = np.array([[0.0, 5.0], [5.0, 0.0], [4.0, 4.0]]), np.ones((3, 2))
    >>> u = Unseen(means, 0.0 * ones, ones)
    >>> greedy(u, np.zeros(2), None, 2)
    array([1., 1., 0.])
    """
    w = np.ones(y.size) if weight is None else weight
    share = -SHARPNESS * unseen.log_std
    density = unseen.log_density(y) + share
    counts = np.zeros(len(share))
    above = below = np.full(y.size, -np.inf)
    for _ in range(n_members):
        up, down = np.logaddexp(above, density), np.logaddexp(below, share)
        best = int(np.argmax((up - down) @ w))
        counts[best] += 1
        above, below = up[best], down[best]
    return counts


def score_weights(unseen: Unseen, y: Array, weight: Array | None, rate: float) -> Array:
    """Weights (K,) of sum one that fall as ``exp(rate × mean log score)``.

    >>> u = Unseen(np.array([[0.0, 0.0], [3.0, 3.0]]), np.zeros((2, 2)), np.ones((2, 2)))
    >>> score_weights(u, np.zeros(2), None, 2.0).round(4).tolist()
    [0.9999, 0.0001]
    """
    score = np.average(unseen.log_density(y), axis=1, weights=weight)
    w = np.exp(rate * (score - score.max()))
    return np.asarray(w / w.sum())


def mean_and_error(values: Array, weight: Array | None) -> tuple[float, float]:
    """Mean of n independent values and its standard error; weights are repetitions.

    >>> mean_and_error(np.array([0.0, 2.0]), np.array([2.0, 2.0]))
    (1.0, 0.5)
    """
    count = len(values) if weight is None else weight.sum()
    mean = np.average(values, weights=weight)
    error = np.sqrt(np.average((values - mean) ** 2, weights=weight) / count)
    return float(mean), float(error)
