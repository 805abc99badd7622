"""Several responses per row: an output core beside those of the columns.

``f_k(x) = Σ_r z_r(x) c_rk``: the core C (K_o, K) is one of a column that is not in the table, the
number of the output, whose features are its indicator. So a network of D + 1 columns is a network
of D columns with K outputs, and weights, priors, balancing and files of it are those of any other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from tensorlace._types import Array
from tensorlace.networks.column_network import ColumnNetwork
from tensorlace.networks.cores import Phi

__all__ = ["Outputs"]


@final
@dataclass(frozen=True, eq=False)
class Outputs:
    """A network of D columns with K outputs.

    Attributes
    ----------
    network : ColumnNetwork
        Of D + 1 columns; its last core, (K_o, K), combines what the others make into outputs.
    """

    network: ColumnNetwork

    @property
    def n_outputs(self) -> int:
        """K."""
        return self.network.sizes[-1]

    @property
    def n_columns(self) -> int:
        """D."""
        return len(self.network.sizes) - 1

    def with_output(self, phi: Phi, k: int) -> list[Array]:
        """Features of the D + 1 columns for output ``k``, from those of D columns (I_d, n)."""
        given = [phi[d] for d in range(self.n_columns)]
        indicator = np.zeros((self.n_outputs, given[0].shape[1]))
        indicator[k] = 1.0
        return [*given, indicator]

    def response(self, phi: Phi) -> Array:
        """All responses (K, n), in one pass over the columns.

        >>> from tensorlace.networks.cpd import CPD
        >>> V = (np.array([[1.0, 2.0]]), np.array([[1.0, 10.0, 100.0]]))   # R = 1, I = 2, K = 3
        >>> Outputs(CPD(V)).response([np.array([[1.0], [4.0]])])           # 1 + 2*4 = 9
        array([[  9.],
               [ 90.],
               [900.]])
        """
        _, Z = self.network.response_and_environment(self.with_output(phi, 0), self.n_columns)
        out: Array = self.network.cores[-1].T @ Z
        return out

    def jacobian(self, phi: Phi, which: Sequence[int] | None = None) -> Array:
        """Transposed Jacobians (K, P, n) of the responses, or of the cores ``which`` only."""
        per_output = (
            self.network.jacobian(self.with_output(phi, k), which) for k in range(self.n_outputs)
        )
        return np.stack(list(per_output))

    def gram(self, phi: Phi, curvature: Array, which: Sequence[int] | None = None) -> Array:
        """``Σ_n A_nᵀ H_n A_n`` (P, P) with weights ``H`` (K, K, n) of the responses of each row.

        The generalised Gauss-Newton matrix of a likelihood of K responses.
        """
        A = self.jacobian(phi, which)
        weighted = np.einsum("kln,lpn->kpn", curvature, A)
        G: Array = np.einsum("kpn,kqn->pq", A, weighted, optimize=True)
        return G
