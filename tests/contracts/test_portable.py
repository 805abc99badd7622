"""One contract for all that has a portable form: the graph is the thing, in every runtime."""

from itertools import pairwise

import numpy as np
import pytest

from tensorlace.columns.bases import (
    BSpline,
    Chebyshev,
    Cosine,
    Fourier,
    Indicator,
    Legendre,
    Levels,
    Missing,
    Polynomial,
    Sine,
    Subset,
    UnitPolynomial,
)
from tensorlace.columns.columns import Column
from tensorlace.columns.rotation import Rotation
from tensorlace.columns.summaries import summarise
from tensorlace.columns.warps import Codes, Cyclic
from tensorlace.fitting.registry import BASES, WARPS
from tensorlace.laplace.posterior import Blocks, Diagonal, LowRank, Root
from tensorlace.networks.additive import Additive
from tensorlace.networks.cpd import CPD
from tensorlace.networks.sum import Sum
from tensorlace.networks.tensor_train import TensorTrain
from tensorlace.portable import Builder, Input
from tests.helpers.javascript import start_javascript  # noqa: F401
from tests.helpers.portable import by_javascript, by_numpy, by_onnx, graph_of_columns

EPS = np.finfo(float).eps
RNG = np.random.default_rng(3)


def everywhere(javascript, function, x, want, bound, noise=4 * EPS):
    """Compare NumPy with ``want`` and the other runtimes with NumPy; errors by largest entries.

    ``bound`` and ``noise`` are relative to the largest finite value of each row of the result.
    """
    graph = graph_of_columns(function, len(x))
    got = by_numpy(graph, x)
    assert got.shape == want.shape
    close(got, want, bound)
    close(by_onnx(graph, x), got, noise)
    close(by_javascript(javascript, graph, x), got, noise)
    close(by_javascript(javascript, graph, [v[-1:] for v in x]), got[..., -1:], noise)


def close(got, want, bound):
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    both = np.isfinite(want)
    np.testing.assert_array_equal(got[~both], want[~both])
    size = np.maximum(np.abs(np.where(both, want, 0.0)), 1.0)
    error = np.abs(np.where(both, got, 0.0) - np.where(both, want, 0.0)) / size
    assert error.max(initial=0.0) <= bound, error.max() / EPS


def points(basis):
    """Variables in the home interval, at its ends and knots, outside, and codes."""
    if basis.interval is None:
        return np.concatenate([np.arange(-1.0, basis.n + 1.0), [0.5]])
    low, high = basis.interval
    ends = [low, high, np.nextafter(low, high), np.nextafter(high, low), 0.0, 1e-300, 0.5]
    knots = np.linspace(low, high, 13)
    far = [low - 0.4, high + 0.4, 3.0, -3.0]
    return np.concatenate([RNG.uniform(low, high, 60), ends, knots, far])


REGISTERED = [BASES[name](n) for name in BASES for n in (4, 5, 12)]
OTHERS = [
    *(kind(n) for kind in (Chebyshev, Legendre, Polynomial, UnitPolynomial) for n in (1, 2, 3, 33)),
    *(kind(n) for kind in (Cosine, Sine, Fourier, Indicator, Levels) for n in (1, 2, 33)),
    *(BSpline(n, degree=p) for p in (0, 1, 2, 5) for n in (p + 1, p + 9)),
    Subset(Legendre(7), (0, 3, 6)),
]
MISSING = [Missing(Cosine(4)), Missing(Subset(BSpline(6), (1, 4)))]


@pytest.mark.parametrize("basis", REGISTERED + OTHERS + MISSING, ids=repr)
def test_bases(javascript, basis):
    u = points(basis)
    if isinstance(basis, Missing):
        u[::7] = np.nan
    # waves of high frequency lose digits of the angle, and powers one rounding per factor
    everywhere(
        javascript, basis.portable, [u], basis.phi(u), bound=2 * (1 + basis.n) * EPS, noise=8 * EPS
    )


@pytest.mark.parametrize("basis", REGISTERED + OTHERS + MISSING, ids=repr)
def test_what_is_novel(javascript, basis):
    u = np.append(points(basis), np.nan)
    new = basis.portable_novel(*one_column())
    assert (new is None) == isinstance(basis, Missing)
    if new is not None:
        want = basis.novel(u).astype(float)
        everywhere(javascript, basis.portable_novel, [u], want, bound=0.0, noise=0.0)


def one_column():
    g = Builder()
    return g, g.column(g.input(Input("u", 1)), 0)


X = np.concatenate([RNG.lognormal(size=40), [1.0, 1.0, 1.0, 7.0]])
TRAINING = {
    "crowd": X,
    "ties": np.round(X),
    "far": 1e200 * X,
    "tiny": 1e-305 * X,
    "constant": np.full(5, 3.0),
    "one": np.array([-2.0]),
}


@pytest.mark.parametrize("name", TRAINING)
@pytest.mark.parametrize("kind", [*(WARPS[name] for name in WARPS), Codes])
def test_warps(javascript, kind, name):
    x = TRAINING[name]
    warp = kind.fit(x)
    rows = np.concatenate([x, 0.5 * (x[1:] + x[:-1]), [x.min() - 1.0, 1.5 * x.max(), 0.0]])
    everywhere(javascript, warp.portable, [rows], warp(rows), bound=EPS)
    beyond = warp.outside(rows).astype(float)
    everywhere(javascript, warp.portable_outside, [rows], beyond, bound=0.0)


def test_codes_of_missing_values(javascript):
    for values in ([2.0, np.nan, 5.0], [2.0, 5.0], [np.nan]):
        warp = Codes.from_summary(summarise(np.array(values), missing=True))
        rows = np.array([5.0, 2.0, 3.0, np.nan, -np.inf, np.inf])
        everywhere(javascript, warp.portable, [rows], warp(rows), bound=0.0)


@pytest.mark.parametrize("period", [24.0, 0.1])
def test_cyclic(javascript, period):
    warp, rows = Cyclic(period), np.concatenate([RNG.uniform(-99, 99, 50), [0.0, -period, 1e9]])
    everywhere(javascript, warp.portable, [rows], warp(rows), bound=0.0)
    assert warp.portable_outside(*one_column()) is None


def test_many_knots(javascript):
    x = RNG.lognormal(size=20_000)
    warp = WARPS["quantile"].fit(x)
    assert warp.knots.size > 8000
    rows = np.concatenate([warp.frame.backward(warp.knots[::50]), RNG.lognormal(size=200)])
    everywhere(javascript, warp.portable, [rows], warp(rows), bound=EPS)


@pytest.mark.parametrize("warp", [*WARPS])
@pytest.mark.parametrize(
    "basis", [Legendre(4), Missing(Legendre(3)), Subset(Missing(Cosine(3)), (0, 3))]
)
def test_columns(javascript, warp, basis):
    column = Column(WARPS[warp].fit(X), basis, "x")
    rows = np.concatenate([X, [np.nan, 0.0, 99.0]])
    want = column.phi(column.variable(rows))
    everywhere(javascript, lambda g, x: column.portable(g, x)[0], [rows], want, bound=8 * EPS)
    beyond = column.outside(rows).astype(float)
    everywhere(javascript, column.portable_outside, [rows], beyond, bound=0.0)


def test_rotation(javascript):
    rotation = Rotation(
        np.array([0, 2]), np.array([1]), RNG.standard_normal(2), RNG.standard_normal((2, 2))
    )
    X = RNG.standard_normal((20, 3))
    everywhere(
        javascript,
        lambda g, *x: g.stack(rotation.portable(g, x)),
        list(X.T),
        rotation(X).T,
        4 * EPS,
    )


W = RNG.standard_normal((6, 4))
POSTERIORS = [
    Root(W, 0.0),
    Diagonal(RNG.uniform(size=6)),
    LowRank(RNG.uniform(1, 2, 6), np.linalg.qr(W)[0], RNG.uniform(size=4)),
    LowRank(RNG.uniform(1, 2, 6), np.zeros((6, 0)), np.zeros(0)),
    Blocks((Root(W[:2], 0.0), Diagonal(np.zeros(0)), Diagonal(RNG.uniform(size=4)))),
]


@pytest.mark.parametrize("posterior", POSTERIORS, ids=lambda p: type(p).__name__)
def test_posteriors(javascript, posterior):
    G = RNG.standard_normal((6, 30))
    G[:, 0] = 0.0
    everywhere(
        javascript,
        lambda g, *rows: posterior.portable(g, g.stack(rows)),
        list(G),
        posterior.quad(G),
        bound=32 * EPS,
        noise=32 * EPS,
    )


SIZES = (3, 2, 4, 1)


def cpd(sizes, rank=3):
    return CPD(tuple(RNG.standard_normal((rank, n)) for n in sizes))


def train(ranks):
    pairs = zip(ranks[:-1], ranks[1:], SIZES[: len(ranks) - 1], strict=True)
    return TensorTrain(tuple(RNG.standard_normal((r * s, n)) for r, s, n in pairs), ranks)


ADDITIVE = Additive(RNG.standard_normal((1, sum(SIZES))), SIZES)
NETWORKS = {
    "cpd": cpd(SIZES),
    "cpd of one column": cpd(SIZES[:1]),
    "cpd of two columns": cpd(SIZES[:2]),
    "train": train((1, 2, 3, 2, 1)),
    "train of one column": train((1, 1)),
    "train of two columns": train((1, 2, 1)),
    "train of rank 1": train((1, 1, 1, 1, 1)),
    "additive": ADDITIVE,
    "cpd and additive": Sum((cpd(SIZES), ADDITIVE)),
    "train and additive": Sum((train((1, 2, 3, 2, 1)), ADDITIVE)),
    "additive alone in a sum": Sum((cpd(SIZES, rank=0), ADDITIVE)),
}


@pytest.mark.parametrize("which", ["all", "first", "last"])
@pytest.mark.parametrize("name", NETWORKS)
def test_networks(javascript, name, which):
    network = NETWORKS[name]
    cores = range(len(network.cores))
    wanted = {"all": list(cores), "first": [0], "last": [cores[-1]]}[which]
    if name == "additive alone in a sum":
        wanted = [cores[-1]]
    rows = [RNG.standard_normal((n, 20)) for n in network.sizes]

    def portable(g, *columns):
        ends = np.cumsum([0, *network.sizes])
        phi = [g.stack(columns[a:b]) for a, b in pairwise(ends)]
        out = network.portable(g, phi, wanted)
        return g.concat([g.stack([out.response]), *out.column_environments, out.jacobian])

    environments = network.column_environments(rows)
    want = np.concatenate(
        [network.response(rows)[None], *environments, network.jacobian(rows, wanted)]
    )
    x = [row for phi in rows for row in phi]
    everywhere(javascript, portable, x, want, bound=64 * EPS, noise=64 * EPS)
