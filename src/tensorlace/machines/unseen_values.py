"""Values that no training row had: a category never seen, or one missing where none was.

Such a value behaves as if its column had one function more, which is 0 on all training rows. The
weights of that function have kept their prior: mean 0, so the prediction is that of the other
functions at their typical values, and precision γ, so the variance is larger by ``Σ_r z_r² / γ_r``
with the environment z of the column. The additive part counts as one more rank term with z = 1.
"""

from collections.abc import Sequence

import numpy as np

from tensorlace._types import Array, Mask
from tensorlace.columns.columns import Columns
from tensorlace.laplace.prior_groups import SMALLEST_PRIOR
from tensorlace.networks.cpd import Cores, environments, factors

__all__ = ["extra_response", "extra_variance", "novel_values", "padded_cores", "prior_variances"]


def novel_values(columns: Columns, u: Array) -> Mask:
    """Tell which variables (D, n) no training row had the like of."""
    return np.stack([c.basis.novel(x) for c, x in zip(columns.columns, u, strict=True)])


def prior_variances(gamma: Cores, sizes: Sequence[int]) -> tuple[Array, ...]:
    """Prior variances (R,) of one more function of each column, the additive part's last if any.

    They are the means over the functions after the first, which is the constant one. A flat prior
    counts as the faintest that is ever learned.

    >>> prior_variances((np.array([[1.0, 2.0, 4.0]]),), [3])
    (array([0.375]),)
    """
    terms = list(gamma[: len(sizes)])
    if len(gamma) > len(sizes):
        own = np.split(gamma[-1], np.cumsum(sizes)[:-1], axis=1)
        terms = [np.concatenate(pair) for pair in zip(terms, own, strict=True)]
    floored = (np.maximum(g, SMALLEST_PRIOR) for g in terms)
    return tuple(np.mean(1.0 / g[:, min(1, g.shape[1] - 1) :], axis=1) for g in floored)


def _environments(cores: Cores, phi: Sequence[Array]) -> list[Array]:
    """Environments (R, n) of all columns; the additive part is a last term of ones."""
    Z = environments(factors(cores, phi))
    if len(cores) == len(phi):
        return Z
    return [np.concatenate([z, np.ones((1, z.shape[1]))]) for z in Z]


def extra_variance(
    cores: Cores, phi: Sequence[Array], novel: Mask, variances: Sequence[Array]
) -> Array:
    """Variance (n,) that the new functions add, from features and ``novel`` (D, n)."""
    extra = np.zeros(novel.shape[1])
    Z = _environments(cores, phi)
    for z, v, mask in zip(Z, variances, novel, strict=True):
        extra += mask * (v @ z**2)
    return extra


def extra_response(
    cores: Cores, phi: Sequence[Array], novel: Mask, weights: Sequence[Array]
) -> Array:
    """What draws of the new ``weights``, D times (R, m), add to the linearised model: (n, m)."""
    Z = _environments(cores, phi)
    parts = [(z * mask).T @ w for z, w, mask in zip(Z, weights, novel, strict=True)]
    return np.sum(parts, axis=0)


def padded_cores(cores: Cores, weights: Sequence[Array], draw: int) -> Cores:
    """Cores with the new functions last, their weights from one draw."""
    R, D = cores[0].shape[0], len(weights)
    out = [np.column_stack([V, w[:R, draw]]) for V, w in zip(cores, weights, strict=False)]
    if len(cores) > D:
        own = np.split(cores[-1], np.cumsum([V.shape[1] for V in cores[:D]])[:-1], axis=1)
        pairs = zip(own, weights, strict=True)
        out.append(np.concatenate([x for a, w in pairs for x in (a, w[R:, draw][None])], axis=1))
    return tuple(out)
