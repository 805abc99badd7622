"""A sum of networks on the same columns, such as products and one-column functions."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, Self, final

import numpy as np

from tensorlace._types import Array, Mask
from tensorlace.columns.bases.basis import Basis
from tensorlace.networks.block import Block
from tensorlace.networks.cores import Cores, Phi
from tensorlace.networks.engine import Engine
from tensorlace.networks.network import Averaged, Labels, Local, Network, Surroundings
from tensorlace.networks.portable import PortableNetwork
from tensorlace.portable import Builder, Value

__all__ = ["Sum"]


@final
class _Surroundings(Surroundings):
    """Those of each part."""

    def __init__(self, parts: Sequence[Surroundings]) -> None:
        self.parts = parts

    def around(self, block: Block, d: int, cores: Cores) -> tuple[Array | None, Array | None]:
        """Parts are asked one by one, by `Sum.core_sums`."""
        raise TypeError("a sum has no environment of its own: ask one of its parts")


@final
@dataclass(frozen=True, eq=False)
class Sum(Network):
    """The sum of the responses of its parts; their cores one after another.

    Attributes
    ----------
    parts : tuple of Network
    """

    parts: tuple[Network, ...]

    @property
    def cores(self) -> Cores:  # type: ignore[override]
        """Of all parts."""
        return tuple(V for part in self.parts for V in part.cores)

    def with_cores(self, cores: Cores) -> Self:
        """The same networks with other weights."""
        pairs = zip(self.parts, self._cut(cores), strict=True)
        return type(self)(tuple(part.with_cores(own) for part, own in pairs))

    def _cut(self, cores: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Cores, or what there is one of per core, of each part."""
        ends = accumulate((len(part.cores) for part in self.parts), initial=0)
        return [tuple(cores[a:b]) for a, b in pairwise(ends)]

    def _place(self, d: int) -> tuple[int, int]:
        """Part of core d, and its number there."""
        for k, part in enumerate(self.parts):
            if d < len(part.cores):
                return k, d
            d -= len(part.cores)
        raise IndexError(d)

    def is_consistent(self) -> bool:
        """Parts of the same columns."""
        each = all(part.is_consistent() for part in self.parts)
        return each and len({part.sizes for part in self.parts}) == 1

    @property
    def sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        """Basis functions of each column."""
        return self.parts[0].sizes

    @property
    def rank(self) -> int:
        """Of the first part."""
        return self.parts[0].rank

    @property
    def n_terms(self) -> int:
        """Of the first part, the others stay."""
        return self.parts[0].n_terms

    @property
    def additive(self) -> bool:
        """Whether a part is."""
        return any(part.additive for part in self.parts)

    @property
    def core_per_column(self) -> bool:
        """There are more cores than columns."""
        return False

    @property
    def kept_per_row(self) -> int:
        """Of all parts."""
        return sum(part.kept_per_row for part in self.parts)

    def response(self, phi: Phi) -> Array:
        """One part after another."""
        f = self.parts[0].response(phi)
        for part in self.parts[1:]:
            f += part.response(phi)
        return f

    def designs(self, phi: Phi, which: Sequence[int] | None = None) -> list[Array]:
        """Of one part below that of another."""
        wanted = set(range(len(self.cores)) if which is None else which)
        rows: list[Array] = []
        first = 0
        for part in self.parts:
            mine = [d for d in range(len(part.cores)) if first + d in wanted]
            first += len(part.cores)
            if mine:
                rows += part.designs(phi, mine)
        return rows

    def response_and_environment(self, phi: Phi, d: int) -> tuple[Array, Array]:
        """The environment in its own part."""
        k, own = self._place(d)
        _, Z = self.parts[k].response_and_environment(phi, own)
        return self.response(phi), Z

    def column_environments(self, phi: Phi) -> list[Array]:
        """One below another."""
        return self._by_column(lambda part: part.column_environments(phi))

    def column_weights(self, values: Cores) -> list[Array]:
        """One below another."""
        cut = iter(self._cut(values))
        return self._by_column(lambda part: part.column_weights(next(cut)))

    def _by_column(self, of: Callable[[Network], list[Array]]) -> list[Array]:
        parts = [of(part) for part in self.parts]
        return [np.concatenate(column) for column in zip(*parts, strict=True)]

    def averaged(self, phi: list[Array], weight: Array, p: int, own: Array) -> Averaged | None:
        """Averages add."""
        found = [part.averaged(phi, weight, p, own) for part in self.parts]
        known = [part for part in found if part is not None]
        if len(known) < len(found):
            return None
        mean = known[0].mean
        for part in known[1:]:
            mean = mean + part.mean
        gradient = tuple(g for part in known for g in part.gradient)
        return Averaged(mean, gradient, np.concatenate([part.environment for part in known]))

    def with_extra_functions(self, weights: Sequence[Array]) -> "Sum":
        """Weights of each column as `column_weights` has them."""
        heights = [[len(w) for w in part.column_weights(part.cores)] for part in self.parts]
        ends = np.cumsum(heights, axis=0)
        new = []
        for part, stop, height in zip(self.parts, ends, heights, strict=True):
            own = [w[b - h : b] for w, b, h in zip(weights, stop, height, strict=True)]
            new.append(part.with_extra_functions(own))
        return Sum(tuple(new))

    def portable(self, g: Builder, phi: Sequence[Value], which: Sequence[int]) -> PortableNetwork:
        """Those of all parts that have weights; environments one below another."""
        parts, first = [], 0
        for part in self.parts:
            mine = [d - first for d in which if first <= d < first + len(part.cores)]
            first += len(part.cores)
            if part.n_weights:
                parts.append(part.portable(g, phi, mine))
        f = parts[0].response
        for found in parts[1:]:
            f = f + found.response
        columns = zip(*(found.column_environments for found in parts), strict=True)
        Z = [g.concat(column) for column in columns]
        designs = [p.jacobian for p in parts if p.jacobian is not None]
        return PortableNetwork(f, Z, g.concat(designs) if designs else None)

    def local(self, phi: Phi, kept: Any = None) -> Local:
        """Of all parts."""
        given = (None,) * len(self.parts) if kept is None else kept
        pairs = zip(self.parts, given, strict=True)
        return _LocalSum(self, tuple(part.local(phi, own) for part, own in pairs))

    def surroundings(self, keep: bool) -> Surroundings:
        """Of all parts."""
        return _Surroundings([part.surroundings(keep) for part in self.parts])

    def core_sums(
        self, block: Block, d: int, around: Surroundings, others: Array | None = None
    ) -> tuple[Array, Array, Array]:
        """The part of the core, on what the other parts leave."""
        assert isinstance(around, _Surroundings)
        k, own = self._place(d)
        phi = block.features()
        for j, part in enumerate(self.parts):
            if j != k:
                f = part.response(phi)
                others = f if others is None else others + f
        return self.parts[k].core_sums(block, own, around.parts[k], others)

    def core_moments(self, block: Block) -> tuple[Array, ...]:
        """Of all parts."""
        return tuple(M for part in self.parts for M in part.core_moments(block))

    def gram(self, d: int, moments: Array, bases: Sequence[Basis]) -> Array:
        """As the part does it."""
        k, own = self._place(d)
        return self.parts[k].gram(own, moments, bases)

    def light(self, d: int, engine: Engine, bases: Sequence[Basis]) -> bool:
        """As the part says."""
        k, own = self._place(d)
        return self.parts[k].light(own, engine, bases)

    def squares(self, block: Block) -> tuple[Array, ...]:
        """Of all parts."""
        return tuple(s for part in self.parts for s in part.squares(block))

    def cross_terms(self, phi: Phi, misfit: Array) -> tuple[Array, ...]:
        """Of all parts: between parts there are none."""
        return tuple(term for part in self.parts for term in part.cross_terms(phi, misfit))

    def cross_matrix(self, terms: tuple[Array, ...]) -> Array:
        """Corners on the diagonal."""
        E = np.zeros((self.n_weights,) * 2)
        start, left = 0, terms
        for part in self.parts:
            n = len(part.cores) * (len(part.cores) - 1) // 2 if part.core_per_column else 0
            stop = start + part.n_weights
            E[start:stop, start:stop] = part.cross_matrix(left[:n])
            start, left = stop, left[n:]
        return E

    def balanced(self, gamma: Cores) -> Self:
        """Each part."""
        pairs = zip(self.parts, self._cut(gamma), strict=True)
        return type(self)(tuple(part.balanced(own) for part, own in pairs))

    def labels(self) -> Labels:
        """Of all parts."""
        return np.concatenate([part.labels() for part in self.parts], axis=1)

    def without_term(self, r: int, like: Cores | None = None) -> Cores:
        """Of the first part."""
        first, *rest = self._cut(like or self.cores)
        return (*self.parts[0].without_term(r, first), *(V for cores in rest for V in cores))

    def restricted(self, terms: Mask, functions: Sequence[Mask]) -> "Sum":
        """Each part."""
        return Sum(tuple(part.restricted(terms, functions) for part in self.parts))

    def cuts(self, terms: Mask, functions: Sequence[Mask]) -> list[tuple[Mask, Mask]]:
        """Of all parts."""
        return [cut for part in self.parts for cut in part.cuts(terms, functions)]

    def products(self) -> tuple[Cores, Array | None] | None:
        """Of a sum of products and one of functions."""
        found = self.parts[0].products()
        if found is None or found[1] is not None or len(self.parts) != 2:
            return None
        second = self.parts[1]
        return (found[0], second.cores[0]) if second.additive else None


@final
class _LocalSum(Local):
    """Those of the parts."""

    def __init__(self, network: Sum, parts: tuple[Local, ...]) -> None:
        self._network, self._parts = network, parts
        self.kept = tuple(part.kept for part in parts)

    def _cut(self, cores: Cores) -> Iterator[tuple[Local, Cores]]:
        start = 0
        for part, network in zip(self._parts, self._network.parts, strict=True):
            stop = start + len(network.cores)
            yield part, cores[start:stop]
            start = stop

    def response(self) -> Array:
        """One part after another."""
        f = self._parts[0].response()
        for part in self._parts[1:]:
            f += part.response()
        return f

    def residual(self, y: Array) -> Array:
        """What one part leaves to the next."""
        for part in self._parts:
            y = part.residual(y)
        return y

    def push(self, direction: Cores) -> Array:
        """Changes add."""
        first, *rest = (part.push(own) for part, own in self._cut(direction))
        for change in rest:
            first += change
        return first

    def pull(self, q: Array) -> Cores:
        """One after another."""
        return tuple(V for part in self._parts for V in part.pull(q))

    def pull_turned(self, change: Array, misfit: Array, direction: Cores) -> Cores:
        """One after another."""
        pairs = self._cut(direction)
        return tuple(V for p, own in pairs for V in p.pull_turned(change, misfit, own))

    def bend(self, direction: Cores) -> Array:
        """Second derivatives add."""
        first, *rest = (part.bend(own) for part, own in self._cut(direction))
        for second in rest:
            first = first + second
        return first
