"""Values that no training row had: a category never seen, or one missing where none was.

Such a value behaves as if its column had one function more, which is 0 on all training rows. The
weights of that function have kept their prior: mean 0, so the prediction is that of the other
functions at their typical values, and precision γ, so the variance is larger by ``Σ_r z_r² / γ_r``
with the environment z of the column. A sum of one-column functions is one more term with z = 1.
"""

from collections.abc import Sequence

import numpy as np

from tensorlace._types import Array, Mask
from tensorlace.columns.columns import Columns
from tensorlace.laplace.prior_groups import SMALLEST_PRIOR
from tensorlace.networks.network import Cores, Network

__all__ = ["extra_response", "extra_variance", "novel_values", "prior_variances"]


def novel_values(columns: Columns, u: Array) -> Mask:
    """Tell which variables (D, n) no training row had the like of."""
    return np.stack([c.basis.novel(x) for c, x in zip(columns.columns, u, strict=True)])


def prior_variances(network: Network, gamma: Cores) -> tuple[Array, ...]:
    """Prior variances (K',) of the weights of one more function of each column.

    They are the means over the functions after the first, which is the constant one. A flat prior
    counts as the faintest that is ever learned.

    >>> from tensorlace.networks.cpd import CPD
    >>> prior_variances(CPD((np.ones((1, 3)),)), (np.array([[1.0, 2.0, 4.0]]),))
    (array([0.375]),)
    """
    floored = (np.maximum(g, SMALLEST_PRIOR) for g in network.column_weights(gamma))
    return tuple(np.mean(1.0 / g[:, min(1, g.shape[1] - 1) :], axis=1) for g in floored)


def extra_variance(
    network: Network, phi: Sequence[Array], novel: Mask, variances: Sequence[Array]
) -> Array:
    """Variance (n,) that the new functions add, from features and ``novel`` (D, n)."""
    extra = np.zeros(novel.shape[1])
    Z = network.column_environments(phi)
    for z, v, mask in zip(Z, variances, novel, strict=True):
        extra += mask * (v @ z**2)
    return extra


def extra_response(
    network: Network, phi: Sequence[Array], novel: Mask | Array, weights: Sequence[Array]
) -> Array:
    """What draws of the new ``weights``, D times (K', m), add to the linearised model: (n, m).

    The new functions have the values ``novel`` (D, n); a mask is 1 where a value is novel.
    """
    Z = network.column_environments(phi)
    parts = [(z * mask).T @ w for z, w, mask in zip(Z, weights, novel, strict=True)]
    return np.sum(parts, axis=0)
