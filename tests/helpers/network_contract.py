"""What every network promises, each by an oracle that shares no code with it.

First derivatives are complex steps of the response and second ones those of the Jacobian: both are
polynomials in the weights, so the step has no error. What is linear is held against differences.
"""

import pickle
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise

import numpy as np

from tensorlace.networks.additive import Additive
from tensorlace.networks.engine import NUMPY
from tensorlace.networks.network import Network
from tensorlace.networks.sum import Sum
from tensorlace.rows.memory import MemoryRows
from tensorlace.solvers.als import core_system
from tensorlace.solvers.linearisation import linearise, residual_curvature
from tensorlace.solvers.products import block_grams, point, product
from tests.helpers import oracles
from tests.helpers.oracles import STEP, error

__all__ = ["CHECKS", "KIND_CHECKS", "SHAPES", "Case", "builders", "case_of", "functions"]

SHAPES = [(1, 1), (1, 3), (2, 1), (2, 4), (3, 2), (4, 2), (3, 5)]
"""Columns and rank."""


def alone(kind, constants, rank, rng):
    """A network of a kind."""
    return kind.initialise(constants, rank, rng)


def functions(constants, rank, rng):
    """A sum of one-column functions."""
    sizes = tuple(map(len, constants))
    return Additive(0.5 * rng.standard_normal((1, sum(sizes))), sizes)


def with_functions(kind, constants, rank, rng):
    """A network of a kind plus a sum of one-column functions."""
    return Sum((alone(kind, constants, rank, rng), functions(constants, rank, rng)))


def builders(name, kind):
    """Ways to use a kind of network, by name."""
    return {name: partial(alone, kind), f"{name} and functions": partial(with_functions, kind)}


@dataclass(frozen=True)
class Case:
    """A table and a network on it, with random weights."""

    network: Network
    bases: tuple
    u: np.ndarray  # (D, N)
    y: np.ndarray  # (N,)
    weight: np.ndarray | None  # (N,)

    @cached_property
    def phi(self):
        return [b.phi(x) for b, x in zip(self.bases, self.u, strict=True)]

    @cached_property
    def f(self):
        return self.network.response(self.phi)

    @cached_property
    def J(self):
        """Transposed Jacobian (P, N)."""
        return steps(self.network, lambda network: network.response(self.phi))

    @cached_property
    def H(self):
        """Second derivatives of the responses (P, P, N)."""
        return steps(self.network, lambda network: network.jacobian(self.phi))

    @property
    def w(self):
        return np.ones(self.y.size) if self.weight is None else self.weight

    @property
    def slices(self):
        """Where the weights of each core are."""
        ends = np.cumsum([0, *(V.size for V in self.network.cores)])
        return [slice(a, b) for a, b in pairwise(ends)]

    @property
    def rng(self):
        return np.random.default_rng(len(self.y))

    def rows(self, **options):
        options = {"block_rows": 16, **options}
        return MemoryRows(self.u, self.y, self.weight, self.bases, **options)

    def of_core(self, d):
        """Features that core d acts on."""
        functions = self.network.additive and d == len(self.network.cores) - 1
        return np.concatenate(self.phi) if functions else self.phi[d]

    def replaced(self, d, phi):
        """Features with those of one column exchanged."""
        return [*self.phi[:d], phi, *self.phi[d + 1 :]]


def case_of(build, D, R):
    """A case of a network that is built from constants, a rank and a generator."""
    rng = np.random.default_rng([D, R])
    bases = tuple(oracles.MIX[k] for k in rng.choice(len(oracles.MIX), D, replace=False))
    u = oracles.variables(bases, 40, rng)
    network = build([b.constant() for b in bases], R, rng)
    network = network.with_vector(network.vector + 0.3 * rng.standard_normal(network.n_weights))
    weight = rng.uniform(0.3, 3.0, 40) if D % 2 else None
    return Case(network, bases, u, rng.standard_normal(40), weight)


def steps(network, of):
    """Derivatives of ``of(network)`` by each of the weights."""
    out = []
    for k in range(network.n_weights):
        v = network.vector.astype(complex)
        v[k] += 1j * STEP
        out.append(of(network.with_vector(v)).imag / STEP)
    return np.array(out)


def same_bits(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


# --- weights ---


def weights_come_back(case):
    network, v = case.network, case.network.vector
    assert v.shape == (network.n_weights,)
    assert network.with_vector(v).is_like(network)
    assert np.array_equal(network.with_vector(v).vector, v)
    assert same_bits(network.with_cores(network.cores).cores, network.cores)
    for d, V in enumerate(network.cores):
        moved = network.with_core(d, V + 1.0)
        assert np.array_equal(np.flatnonzero(moved.vector != v), np.arange(v.size)[case.slices[d]])
    assert network.sizes == tuple(b.n for b in case.bases)
    copy = pickle.loads(pickle.dumps(network))
    assert copy.is_like(network)
    assert np.array_equal(copy.response(case.phi), case.f)


def arguments_are_left_alone(case):
    phi = [p.copy() for p in case.phi]
    for array in (*phi, *case.network.cores):
        array.setflags(write=False)
    case.network.response(phi)
    case.network.jacobian(phi)
    here = case.network.local(phi)
    direction = case.network.cores
    here.push(direction), here.pull(case.y), here.bend(direction)
    here.pull_turned(case.y, case.y, direction)
    here.residual(case.y)
    case.network.balanced(tuple(np.ones_like(V) for V in case.network.cores))


def only_shapes_that_fit_are_consistent(case):
    network = case.network
    assert network.is_consistent()
    for d, V in enumerate(network.cores):
        assert not network.with_core(d, V[0]).is_consistent()
        if len(case.bases) > 1:
            assert not network.with_core(d, np.concatenate([V, V])).is_consistent()


def labels_say_what_a_weight_belongs_to(case):
    column, term, order = case.network.labels()
    J, sizes = case.J, np.array(case.network.sizes)
    assert np.all((column >= 0) & (column < len(sizes)) & (order >= 0) & (order < sizes[column]))
    assert len({*zip(column, term, order, strict=True)}) == case.network.n_weights
    assert np.any(term < 0) == case.network.additive
    for d, n in enumerate(sizes):
        for i in range(n):
            without = case.phi[d].copy()
            without[i] = 0.0
            changed = case.network.jacobian(case.replaced(d, without))
            mine = (column == d) & (order == i)
            assert np.all(changed[mine] == 0.0)
            others = (column == d) & ~mine
            assert np.abs(changed[others] - J[others]).max(initial=0.0) < 1e-14 * np.abs(J).max()
    if not case.network.n_terms:
        return
    products = term >= 0
    assert np.array_equal(np.unique(term[products]), np.arange(case.network.n_terms))
    for r in range(case.network.n_terms):
        v = np.where(term == r, 0.0, case.network.vector)
        fewer = case.network.with_cores(case.network.without_term(r))
        assert fewer.n_weights == np.sum(term != r)
        assert np.array_equal(fewer.vector, case.network.vector[term != r])
        scale = np.abs(case.f).max()
        rest = case.network.with_vector(v).response(case.phi)
        assert np.abs(fewer.response(case.phi) - rest).max() < 1e-14 * scale
        like = tuple(2.0 * V for V in case.network.cores)
        doubled = case.network.without_term(r, like)
        assert same_bits(doubled, [2.0 * V for V in fewer.cores])


def a_restricted_network_is_one_with_zeros(case):
    rng, network = case.rng, case.network
    for _ in range(4):
        kept = [rng.uniform(size=n) < 0.6 for n in network.sizes]
        for mask in kept:
            mask[rng.integers(mask.size)] = True
        terms = rng.uniform(size=network.n_terms) < 0.6
        terms[: 1 if network.n_terms else 0] = True
        small = network.restricted(terms, kept)
        assert small.is_consistent()
        assert small.sizes == tuple(int(mask.sum()) for mask in kept)
        cuts = network.cuts(terms, kept)
        pairs = zip(network.cores, cuts, strict=True)
        assert same_bits(small.cores, [V[np.ix_(*cut)] for V, cut in pairs])
        column, term, order = network.labels()
        stays = np.array([kept[d][i] for d, i in zip(column, order, strict=True)])
        if network.n_terms:
            stays &= (term < 0) | terms[term]
        assert np.array_equal(small.vector, network.vector[stays])
        zeroed = network.with_vector(np.where(stays, network.vector, 0.0))
        phi = [p[mask] for p, mask in zip(case.phi, kept, strict=True)]
        away = small.response(phi) - zeroed.response(case.phi)
        assert np.abs(away).max() < 1e-14 * np.abs(case.f).max()


# --- the response ---


def the_response_is_linear_in_each_core(case):
    rng, t = case.rng, 0.3
    for d, V in enumerate(case.network.cores):
        A, B = rng.standard_normal((2, *V.shape))
        f, g, h = (
            case.network.with_core(d, core).response(case.phi)
            for core in (A, B, t * A + (1 - t) * B)
        )
        assert error(h, t * f + (1 - t) * g) < 1e-14


def the_response_is_linear_in_the_features_of_each_column(case):
    t = 0.3
    for d, phi in enumerate(case.phi):
        other = case.rng.standard_normal(phi.shape)
        f, g = (
            case.network.response(case.replaced(d, p)) for p in (other, t * other + (1 - t) * phi)
        )
        assert error(g, t * f + (1 - t) * case.f) < 1e-13


def a_column_network_is_a_dense_tensor(case):
    """Its entries are responses where one function of each column is 1 and all others are 0."""
    if not case.network.core_per_column:
        return
    sizes = case.network.sizes
    which = np.indices(sizes).reshape(len(sizes), -1)
    W = case.network.response([np.eye(n)[:, i] for n, i in zip(sizes, which, strict=True)])
    assert error(case.f, oracles.kronecker_features(case.phi) @ W) < 1e-13


def features_may_be_made_when_asked_for(case):
    class Made:
        """Features that nobody keeps."""

        def __len__(self):
            return len(case.phi)

        def __getitem__(self, d):
            return case.bases[d].phi(case.u[d])

    assert np.array_equal(case.network.response(Made()), case.f)
    for d in range(len(case.network.cores)):
        f, Z = case.network.response_and_environment(Made(), d)
        assert same_bits((f, Z), case.network.response_and_environment(case.phi, d))


# --- first derivatives ---


def the_jacobian_is_the_complex_step(case):
    network = case.network
    assert error(network.jacobian(case.phi), case.J) < 1e-14
    D = len(network.cores)
    for which in (*((d,) for d in range(D)), (0, D - 1) if D > 1 else (0,)):
        wanted = np.concatenate([case.J[case.slices[d]] for d in which])
        assert error(network.jacobian(case.phi, which), wanted) < 1e-14


def environments_are_what_cores_are_multiplied_with(case):
    for d, V in enumerate(case.network.cores):
        f, Z = case.network.response_and_environment(case.phi, d)
        assert np.array_equal(f, case.f)
        assert Z.shape == (len(V), len(f))
        expected = case.J[case.slices[d]].reshape(*V.shape, -1)
        assert error(Z[:, None] * case.of_core(d), expected) < 1e-14
    if case.network.core_per_column:
        for d, Z in enumerate(case.network.environments(case.phi)):
            assert error(Z, case.network.response_and_environment(case.phi, d)[1]) < 1e-14


def a_column_moves_along_its_environment(case):
    """All weights of a column together: the response is linear in them."""
    network, (column, _, _) = case.network, case.network.labels()
    Z = network.column_environments(case.phi)
    for d, phi in enumerate(case.phi):
        step = np.where(column == d, case.rng.standard_normal(network.n_weights), 0.0)
        change = network.with_vector(network.vector + step).response(case.phi) - case.f
        by_column = network.column_weights(network.with_vector(step).cores)
        assert by_column[d].shape == (len(Z[d]), network.sizes[d])
        assert all(np.all(W == 0.0) for e, W in enumerate(by_column) if e != d)
        assert error(np.einsum("kn,ki,in->n", Z[d], by_column[d], phi), change) < 1e-13


def extra_functions_come_last_in_their_columns(case):
    network = case.network
    Z = network.column_environments(case.phi)
    weights = [case.rng.standard_normal(len(z)) for z in Z]
    larger = network.with_extra_functions(weights)
    assert larger.is_consistent()
    assert larger.sizes == tuple(n + 1 for n in network.sizes)
    zero = np.zeros((1, len(case.y)))
    padded = [np.vstack([p, zero]) for p in case.phi]
    assert error(larger.response(padded), case.f) < 1e-14
    for d, phi in enumerate(case.phi):
        own = case.rng.standard_normal((1, len(case.y)))
        moved = [*padded[:d], np.vstack([phi, own]), *padded[d + 1 :]]
        expected = case.f + own[0] * (weights[d] @ Z[d])
        assert error(larger.response(moved), expected) < 1e-13


def averages_are_those_of_a_loop(case):
    network, phi = case.network, case.phi
    weight = case.rng.dirichlet(np.ones(len(case.y)))
    for p, n in enumerate(network.sizes):
        own = case.rng.standard_normal((n, 5))
        found = network.averaged(phi, weight, p, own)
        if found is None:
            continue
        Z = network.column_environments(phi)[p] @ weight
        assert error(found.environment, Z) < 1e-14
        assert [g.shape for g in found.gradient] == [(V.size, 5) for V in network.cores]
        for k in range(5):
            moved = case.replaced(p, np.repeat(own[:, [k]], len(case.y), axis=1))
            assert abs(found.mean[k] - network.response(moved) @ weight) < 1e-14
            J = steps(network, lambda other, moved=moved: other.response(moved) @ weight)
            assert error(np.concatenate([g[:, k] for g in found.gradient]), J) < 1e-13


# --- derivatives without the Jacobian ---


def products_at_rows_are_dense_products(case):
    network, rng = case.network, case.rng
    p = rng.standard_normal(network.n_weights)
    direction = network.with_vector(p).cores
    q, misfit = rng.standard_normal((2, len(case.y)))
    first = network.local(case.phi)
    turned = np.einsum("jkn,k,n->j", case.H, p, misfit)
    expected = [
        case.f,
        case.y - case.f,
        p @ case.J,
        case.J @ q,
        case.J @ q + turned,
        np.einsum("j,jkn,k->n", p, case.H, p),
    ]
    for here in (first, network.local(case.phi, first.kept)):
        found = [
            here.response(),
            here.residual(case.y),
            here.push(direction),
            np.concatenate([V.ravel() for V in here.pull(q)]),
            np.concatenate([V.ravel() for V in here.pull_turned(q, misfit, direction)]),
            here.bend(direction),
        ]
        assert all(V.shape == W.shape for V, W in zip(here.pull(q), network.cores, strict=True))
        for actual, wanted in zip(found, expected, strict=True):
            assert error(actual, wanted) < 1e-13
        if here is first:
            kept = found
    assert same_bits(found, kept)
    assert network.kept_per_row >= 0


# --- sums over rows ---


def core_problems_are_dense_least_squares(case):
    """As a sweep meets them: each core moves before the next is asked for."""
    with case.rows() as rows, case.rows(memory_budget=0) as fresh:
        kept, again = (case.network.surroundings(keep=keep) for keep in (True, False))
        for d, V in enumerate(case.network.cores):
            A, residual = case.J[case.slices[d]], case.y - case.f
            system = core_system(rows, case.network, d, kept)
            assert error(system.gram, (A * case.w) @ A.T) < 1e-13
            assert error(system.residual, (A @ (case.w * residual)).reshape(V.shape)) < 1e-13
            assert abs(system.rss / (case.w @ residual**2) - 1.0) < 1e-13
            for other in (
                core_system(rows, case.network, d, again),
                core_system(fresh, case.network, d),
            ):
                assert np.array_equal(other.gram, system.gram)
                assert np.array_equal(other.residual, system.residual)
                assert other.rss == system.rss
            moved = case.network.with_core(d, V + 0.3 * case.rng.standard_normal(V.shape))
            case = replace(case, network=moved)


def a_core_may_be_part_of_something_larger(case):
    others = case.rng.standard_normal(len(case.y))
    with case.rows() as rows, case.rows(block_rows=64) as whole:
        (block,) = whole.blocks
        for d in range(len(case.network.cores)):
            around = case.network.surroundings(keep=False)
            M, slope, rss = case.network.core_sums(block, d, around, others)
            A, residual = case.J[case.slices[d]], case.y - others - case.f
            assert error(slope.ravel(), A @ (case.w * residual)) < 1e-13
            assert abs(rss / (case.w @ residual**2) - 1.0) < 1e-13
            system = core_system(rows, case.network, d)
            assert error(case.network.gram(d, M, case.bases), system.gram) < 1e-13


def gram_matrices_are_the_dense_ones(case):
    dense = (case.J * case.w) @ case.J.T
    with case.rows() as rows:
        for at, G in zip(case.slices, block_grams(rows, case.network), strict=True):
            assert error(G, dense[at, at]) < 1e-13
        squares = rows.reduce(case.network.squares)
        linear = linearise(rows, case.network)
    assert [s.shape for s in squares] == [V.shape for V in case.network.cores]
    assert error(np.concatenate([s.ravel() for s in squares]), np.diagonal(dense)) < 1e-13
    assert error(linear.dense_gram(), dense) < 1e-13
    assert error(linear.slope, case.J @ (case.w * (case.y - case.f))) < 1e-13
    for d in range(len(case.network.cores)):
        assert case.network.light(d, NUMPY, case.bases) in (True, False)


def the_hessian_is_that_of_the_loss(case):
    misfit = case.w * (case.f - case.y)
    E = case.H @ misfit
    with case.rows() as rows:
        found = residual_curvature(rows, case.network)
        at = point(rows, case.network)
        x = case.rng.standard_normal(len(E))
        times = product(rows, at, x, exact=True)
    size = np.abs((case.J * case.w) @ case.J.T).max()
    assert np.abs(found - E).max() < 1e-14 * size
    assert np.array_equal(found, found.T)
    assert all(np.all(found[at, at] == 0.0) for at in case.slices)
    dense = (case.J * case.w) @ case.J.T + E
    assert error(times, dense @ x) < 1e-12


def single_precision_rows_come_close(case):
    with case.rows(dtype=np.float32) as single, case.rows() as double:
        for d in range(len(case.network.cores)):
            a, b = (core_system(rows, case.network, d) for rows in (single, double))
            assert a.gram.dtype == np.float64
            assert error(a.gram, b.gram) < 1e-5
            assert error(a.residual, b.residual) < 1e-5
        squares = (rows.reduce(case.network.squares) for rows in (single, double))
        assert all(error(a, b) < 1e-5 for a, b in zip(*squares, strict=True))


# --- prior ---


def penalty(gamma, cores):
    return sum(np.sum(g * V * V) for g, V in zip(gamma, cores, strict=True))


def balancing_lowers_the_penalty_alone(case):
    rng, cores = case.rng, case.network.cores
    scaled = case.network.with_cores(tuple(V * 10.0 ** rng.uniform(-3, 3) for V in cores))
    f = scaled.response(case.phi)
    D = len(case.bases)
    for make in (np.ones_like, lambda V: rng.uniform(0.3, 3.0, V.shape), np.zeros_like):
        gamma = tuple(make(V) for V in cores)
        after = scaled.balanced(gamma)
        assert after.is_like(scaled)
        assert error(after.response(case.phi), f) < 1e-13
        counts = gamma if gamma[0].any() else tuple(np.ones_like(V) for V in cores)
        least = penalty(counts, after.cores)
        assert least <= penalty(counts, scaled.cores) * (1 + 1e-14)
        assert error(after.balanced(gamma).vector, after.vector) < 1e-14
        if len(cores) >= D:  # no scales of the columns' cores give less
            for _ in range(5):
                log = rng.uniform(-0.1, 0.1, D)
                scales = [*np.exp(log - log.mean()), *np.ones(len(cores) - D)]
                others = [s * V for s, V in zip(scales, after.cores, strict=True)]
                assert penalty(counts, others) >= least * (1 - 1e-14)


def a_core_of_zeros_is_harmless(case):
    network = case.network.with_core(0, 0.0 * case.network.cores[0])
    f = network.response(case.phi)
    balanced = network.balanced(tuple(np.ones_like(V) for V in network.cores))
    assert np.array_equal(balanced.response(case.phi), f)
    J = steps(network, lambda other: other.response(case.phi))
    assert np.abs(network.jacobian(case.phi) - J).max() < 1e-14 * np.abs(J).max(initial=1.0)


CHECKS = (
    weights_come_back,
    arguments_are_left_alone,
    only_shapes_that_fit_are_consistent,
    labels_say_what_a_weight_belongs_to,
    a_restricted_network_is_one_with_zeros,
    the_response_is_linear_in_each_core,
    the_response_is_linear_in_the_features_of_each_column,
    a_column_network_is_a_dense_tensor,
    features_may_be_made_when_asked_for,
    the_jacobian_is_the_complex_step,
    environments_are_what_cores_are_multiplied_with,
    a_column_moves_along_its_environment,
    extra_functions_come_last_in_their_columns,
    averages_are_those_of_a_loop,
    products_at_rows_are_dense_products,
    core_problems_are_dense_least_squares,
    a_core_may_be_part_of_something_larger,
    gram_matrices_are_the_dense_ones,
    the_hessian_is_that_of_the_loss,
    single_precision_rows_come_close,
    balancing_lowers_the_penalty_alone,
    a_core_of_zeros_is_harmless,
)
"""Of a network with weights, as a `Case`."""


# --- how a kind begins ---


def it_begins_with_as_many_weights_as_it_says(kind, D, R):
    bases = oracles.MIX[:D]
    network = kind.initialise([b.constant() for b in bases], R, np.random.default_rng(0))
    assert isinstance(network, kind)
    assert network.is_consistent()
    assert network.sizes == tuple(b.n for b in bases)
    assert tuple(map(len, network.cores)) == kind.widths(network.sizes, R)
    assert 1 <= network.rank <= R
    assert network.core_per_column
    assert not network.additive


def it_begins_as_its_generator_says(kind, D, R):
    constants = [b.constant() for b in oracles.MIX[:D]]
    first = kind.initialise(constants, R, np.random.default_rng(7))
    np.random.default_rng(8).standard_normal(5)
    again = kind.initialise(constants, R, np.random.default_rng(7))
    other = kind.initialise(constants, R, np.random.default_rng(8))
    assert np.array_equal(first.vector, again.vector)
    assert not any(map(np.array_equal, first.cores, other.cores))


def it_begins_at_the_size_of_the_target(kind, D, R):
    """Products of D plain random factors would vanish or explode."""
    bases = oracles.MIX[:D]
    rng = np.random.default_rng(0)
    u = oracles.variables(bases, 20, rng)
    phi = [b.phi(x) for b, x in zip(bases, u, strict=True)]
    constants = [b.constant() for b in bases]
    networks = [kind.initialise(constants, R, rng) for _ in range(200)]
    f = [network.response(phi) for network in networks]
    assert 0.5 < networks[0].rank * np.mean(np.square(f)) < 4.0  # signs are random


KIND_CHECKS = (
    it_begins_with_as_many_weights_as_it_says,
    it_begins_as_its_generator_says,
    it_begins_at_the_size_of_the_target,
)
"""Of a kind of network, for D columns and a rank."""
