"""The response as a linear function of Gaussian weights, and sums of it over rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from tensorlace._types import Array

__all__ = ["LinearResponse"]


@final
@dataclass(frozen=True, eq=False)
class LinearResponse:
    """Linearised responses of a machine, or sums of them: means, and what weights are taken with.

    Attributes
    ----------
    mean : (n,) array
        In units of the standardised target.
    gradient : (P, n) array
        Of the Bayesian weights.
    novel, beyond : D arrays (K', n)
        Of the weights of one more function of each column: for values that no training row had the
        like of, and for values beyond its range.
    """

    mean: Array
    gradient: Array
    novel: tuple[Array, ...]
    beyond: tuple[Array, ...]

    def combined(self, weights: Array) -> "LinearResponse":
        """Sums of the responses by ``weights`` (n, k)."""
        return LinearResponse(
            self.mean @ weights,
            self.gradient @ weights,
            tuple(z @ weights for z in self.novel),
            tuple(z @ weights for z in self.beyond),
        )

    @classmethod
    def joined(cls, parts: Sequence["LinearResponse"]) -> "LinearResponse":
        """Responses side by side."""
        return cls(
            np.concatenate([r.mean for r in parts]),
            np.concatenate([r.gradient for r in parts], axis=1),
            tuple(np.concatenate(z, axis=1) for z in zip(*(r.novel for r in parts), strict=True)),
            tuple(np.concatenate(z, axis=1) for z in zip(*(r.beyond for r in parts), strict=True)),
        )

    def __add__(self, other: "LinearResponse") -> "LinearResponse":
        return LinearResponse(
            self.mean + other.mean,
            self.gradient + other.gradient,
            tuple(a + b for a, b in zip(self.novel, other.novel, strict=True)),
            tuple(a + b for a, b in zip(self.beyond, other.beyond, strict=True)),
        )

    def __sub__(self, other: "LinearResponse") -> "LinearResponse":
        return LinearResponse(
            self.mean - other.mean,
            self.gradient - other.gradient,
            tuple(a - b for a, b in zip(self.novel, other.novel, strict=True)),
            tuple(a - b for a, b in zip(self.beyond, other.beyond, strict=True)),
        )

    def extra_variance(self, variances: Sequence[Array], roots: Sequence[Array]) -> Array:
        """Variance (n,) by the further functions.

        Parameters
        ----------
        variances : D arrays (K',)
            Of the independent weights of ``novel``.
        roots : D arrays (K', m)
            Of the covariances of the weights of ``beyond``.
        """
        extra = np.zeros(len(self.mean))
        for z, v in zip(self.novel, variances, strict=True):
            extra += v @ z**2
        for z, root in zip(self.beyond, roots, strict=True):
            extra += np.sum((root.T @ z) ** 2, axis=0)
        return extra
