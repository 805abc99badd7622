"""Networks with one core per column: what they share whatever surrounds a core."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np

from tensorlace._types import Array, Mask
from tensorlace.columns.bases.basis import Basis
from tensorlace.networks.block import Block
from tensorlace.networks.cores import Cores, Phi, design
from tensorlace.networks.engine import Engine
from tensorlace.networks.gram import expand
from tensorlace.networks.network import Labels, Network, Surroundings
from tensorlace.networks.portable import PortableNetwork, portable_design
from tensorlace.portable import Builder, Value

__all__ = ["ColumnNetwork"]


class ColumnNetwork(Network):
    """A network whose core d acts on the features of column d; the kind that has a name.

    Its environments decide everything else.

    Attributes
    ----------
    any_order : bool
        Whether it is the same network whatever the order of the columns.
    """

    any_order: ClassVar[bool] = False

    @classmethod
    @abstractmethod
    def initialise(cls, constants: Sequence[Array], rank: int, rng: np.random.Generator) -> Self:
        """Random weights near the constant function.

        ``constants`` are its coefficients in the functions of each column, D times (I_d,). Nothing
        may depend on the number of rows.
        """

    @staticmethod
    @abstractmethod
    def widths(sizes: Sequence[int], rank: int) -> tuple[int, ...]:
        """Rows K_d of each core for columns of ``sizes`` functions."""

    @abstractmethod
    def environments(self, phi: Phi) -> list[Array]:
        """Environments (K_d, n) of all cores."""

    @abstractmethod
    def portable_environments(
        self, g: Builder, factors: Sequence[Value]
    ) -> tuple[Value, Sequence[Value]]:
        """Response (n,) and environments (K_d, n) from the factors ``V^(d) φ_d`` (K_d, n)."""

    @property
    def core_per_column(self) -> bool:
        """By definition."""
        return True

    @property
    def sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        """Basis functions of each column."""
        return tuple(V.shape[1] for V in self.cores)

    def designs(self, phi: Phi, which: Sequence[int] | None = None) -> list[Array]:
        """``Z ⊙ φ`` of each core, eq. (linear_f)."""
        Z = self.environments(phi)
        wanted = range(len(self.cores)) if which is None else which
        return [design(Z[d], phi[d]) for d in wanted]

    def portable(self, g: Builder, phi: Sequence[Value], which: Sequence[int]) -> PortableNetwork:
        """All follows from how factors make up the response and the environments."""
        f, Z = self.portable_environments(g, [V @ p for V, p in zip(self.cores, phi, strict=True)])
        designs = [portable_design(g, Z[d], phi[d]) for d in which]
        return PortableNetwork(f, Z, g.concat(designs) if designs else None)

    def column_environments(self, phi: Phi) -> list[Array]:
        """Environments of the cores."""
        return self.environments(phi)

    def column_weights(self, values: Cores) -> list[Array]:
        """As they are."""
        return list(values)

    def core_sums(
        self, block: Block, d: int, around: Surroundings, others: Array | None = None
    ) -> tuple[Array, Array, Array]:
        """By the engine of the block."""
        left, right = around.around(block, d, self.cores)
        y = block.y if others is None else block.y - others
        phi, psi = block.phi(d), block.psi(d)
        return block.engine.core(left, right, self.cores[d], phi, psi, y, block.weight)

    def core_moments(self, block: Block) -> tuple[Array, ...]:
        """Structured moments of every environment."""
        Z = self.environments(block.features())
        return tuple(block.engine.moments(block.psi(d), z) for d, z in enumerate(Z))

    def gram(self, d: int, moments: Array, bases: Sequence[Basis]) -> Array:
        """See `gram.expand`."""
        return expand(moments, bases[d].closure(), len(self.cores[d]))

    def light(self, d: int, engine: Engine, bases: Sequence[Basis]) -> bool:
        """By the size of the core."""
        return engine.light(len(self.cores[d]), bases[d].closure().shape[2])

    def squares(self, block: Block) -> tuple[Array, ...]:
        """``(Z ∘ Z)(φ ∘ φ)ᵀ``, O(n·Σ_d K_d I_d)."""
        phi = block.features()
        Z = self.environments(phi)
        return tuple((z * z) @ block.weighted(p * p).T for z, p in zip(Z, phi, strict=True))

    def labels(self) -> Labels:
        """Column, row of the core and order."""
        grid = [
            np.stack(np.meshgrid([d], range(len(V)), range(V.shape[1]), indexing="ij"))
            for d, V in enumerate(self.cores)
        ]
        return np.concatenate([g.reshape(3, -1) for g in grid], axis=1).astype(np.intp)

    def restricted(self, terms: Mask, functions: Sequence[Mask]) -> Self:
        """Cores cut to size."""
        cuts = self.cuts(terms, functions)
        pairs = zip(self.cores, cuts, strict=True)
        return self.with_cores(tuple(np.ascontiguousarray(V[np.ix_(*cut)]) for V, cut in pairs))

    def cuts(self, terms: Mask, functions: Sequence[Mask]) -> list[tuple[Mask, Mask]]:
        """Terms are rows of the cores, if there are any; otherwise all rows stay."""
        rows = [terms if self.n_terms else np.ones(len(V), dtype=np.bool_) for V in self.cores]
        return list(zip(rows, functions, strict=True))
