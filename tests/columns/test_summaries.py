"""One pass over the leaves of a column gives the same warps, to the bit, wherever the rows are."""

import pickle
from dataclasses import astuple, replace

import mpmath
import numpy as np
import pytest

from tensorlace.columns.summaries import (
    EXACT_VALUES,
    KEPT_VALUES,
    LEAF_ROWS,
    merge,
    merge_tables,
    summarise,
    summarise_column,
    summarise_leaf,
    summarise_table,
)
from tensorlace.columns.warps import Codes, Identity, MinMax, Mixed, Quantile, Standardise
from tensorlace.errors import InputError
from tensorlace.sources.reduction import tree_reduce

WARPS = (Standardise, MinMax, Quantile, Mixed, Codes, Identity)
N = 5 * LEAF_ROWS + 1234


def same_bits(a, b):
    """Whether two summaries are the same, field by field."""
    return pickle.dumps(astuple(a)) == pickle.dumps(astuple(b))


def dyadic(n, seed=0):
    """Values on a grid of 1/1024 with ties, spread differently in each leaf."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-3000, 5000, n) / 1024.0
    return x * 2.0 ** (np.arange(n) // LEAF_ROWS % 5 - 2)


def in_leaves(x, w=None, size=LEAF_ROWS):
    cuts = [slice(i, i + size) for i in range(0, len(x), size)]
    return tree_reduce((summarise(x[c], None if w is None else w[c]) for c in cuts), merge)


def moments(s):
    """Mean and standard deviation in raw units."""
    sd = np.ldexp(np.sqrt(s.m2 / s.n), s.frame.exponent)
    return float(s.frame.backward(np.array(s.mean))), float(sd)


# The tree.


@pytest.mark.parametrize("n", range(1, 20))
def test_tree_is_balanced_and_in_order(n):
    def pair(a, b):
        return (a[0] + b[0], max(a[1], b[1]) + 1)

    order, depth = tree_reduce((([k], 0) for k in range(n)), pair)
    assert order == list(range(n))
    assert depth == int(np.ceil(np.log2(n)))


@pytest.mark.parametrize("n", range(1, 40))
@pytest.mark.parametrize("run", [2, 4, 8])
def test_runs_of_a_power_of_two_may_be_reduced_first(n, run):
    def pair(a, b):
        return f"({a}{b})"

    leaves = [f"{k}." for k in range(n)]
    runs = (tree_reduce(leaves[i : i + run], pair) for i in range(0, n, run))
    assert tree_reduce(runs, pair) == tree_reduce(leaves, pair)


def test_nothing_to_reduce():
    with pytest.raises(InputError, match="1 or more rows"):
        tree_reduce([], merge)


# In memory = streamed.


def table(seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=N), rng.integers(0, 7, N), dyadic(N), np.full(N, 3.7)])
    return X, rng.uniform(size=N) * rng.integers(0, 2, N)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("leaves", [1, 2, 3, 4, 100])
def test_any_chunks_of_leaves_give_the_same_bits(leaves, weighted):
    X, w = table()
    w = w if weighted else None

    def stream():
        for start in range(0, N, leaves * LEAF_ROWS):  # read a chunk, then cut it into leaves
            chunk = np.asfortranarray(X[start : start + leaves * LEAF_ROWS])
            weight = None if w is None else w[start : start + leaves * LEAF_ROWS].copy()
            for i in range(0, len(chunk), LEAF_ROWS):
                c = slice(i, i + LEAF_ROWS)
                yield summarise_leaf(chunk[c], None if weight is None else weight[c])

    whole = summarise_table(X, w)
    streamed = tree_reduce(stream(), merge_tables)
    assert len(whole) == len(streamed) == X.shape[1]
    for x, s, t in zip(X.T, whole, streamed, strict=True):
        assert same_bits(s, t)
        assert same_bits(s, summarise_column(x, w))
        for kind in WARPS:
            if kind is Codes and s.compressions:
                continue
            a, b = kind.from_summary(t)(x), kind.fit(x, w)(x)
            assert np.array_equal(a.view(np.int64), b.view(np.int64))


@pytest.mark.parametrize("chunk", [2, 4])
def test_chunks_of_a_power_of_two_may_be_summarised_on_their_own(chunk):
    X, w = table(1)
    size = chunk * LEAF_ROWS
    parts = (summarise_table(X[i : i + size], w[i : i + size]) for i in range(0, N, size))
    for s, t in zip(tree_reduce(parts, merge_tables), summarise_table(X, w), strict=True):
        assert same_bits(s, t)


@pytest.mark.parametrize("n", [0, 100])
def test_merging_with_nothing_changes_nothing(n):
    s = summarise(dyadic(n))
    for nothing in (summarise(np.zeros(0)), summarise(np.full(3, np.nan), np.zeros(3))):
        assert nothing.empty
        assert nothing.n == 0.0
        assert same_bits(merge(s, nothing), s)
        assert same_bits(merge(nothing, s), s)


def test_leaves_without_weight():
    x, w = dyadic(N), np.ones(N)
    w[LEAF_ROWS : 3 * LEAF_ROWS] = 0.0
    s = summarise_column(x, w)
    seen = x[w > 0.0]
    assert (s.n, s.frame.low, s.frame.high) == (seen.size, seen.min(), seen.max())
    assert np.array_equal(s.values, np.unique(seen))


def test_input_is_left_alone_and_float32_and_integers_are_taken():
    x = np.arange(10)
    s = summarise_column(x.astype(float))
    assert same_bits(summarise_column(x), s)
    assert same_bits(summarise_column(x.astype(np.float32)), s)
    assert x.tolist() == list(range(10))


# Moments.


@pytest.mark.parametrize("k", [-1000, -300, 0, 5, 1000])
def test_change_of_units_keeps_every_bit(k):
    x = dyadic(N)
    s, t = summarise_column(x), summarise_column(np.ldexp(x, k))
    assert (s.n, s.mean, s.m2, s.frame.width) == (t.n, t.mean, t.m2, t.frame.width)
    assert t.frame.exponent == s.frame.exponent + k
    assert np.array_equal(np.ldexp(s.values, k), t.values)
    assert np.array_equal(s.masses, t.masses)


@pytest.mark.parametrize("a", [0.25, 1.0, 1024.0])
@pytest.mark.parametrize("b", [-7.0, 0.125, 1e6, 2.0**30])
@pytest.mark.parametrize("kind", [Standardise, MinMax, Quantile, Mixed, Codes])
def test_exact_shift_keeps_every_bit(kind, a, b):
    x = np.concatenate([dyadic(N), np.full(LEAF_ROWS, 1.5)])  # some leaves are constant
    moved = a * x + b
    assert np.array_equal((moved - b) / a, x)
    u, v = kind.fit(x)(x), kind.fit(moved)(moved)
    assert np.array_equal(u.view(np.int64), v.view(np.int64))


def test_compressed_sketch_is_equivariant_to_the_bit():
    x = np.random.default_rng(2).integers(-(2**20), 2**20, 12 * LEAF_ROWS) / 1024.0
    s, t = summarise_column(x), summarise_column(4.0 * x + 2.0**20)
    assert s.compressions == t.compressions > 0
    assert np.array_equal(4.0 * s.values + 2.0**20, t.values)
    assert np.array_equal(s.masses, t.masses)
    u, v = Quantile.from_summary(s)(x), Quantile.from_summary(t)(4.0 * x + 2.0**20)
    assert np.array_equal(u.view(np.int64), v.view(np.int64))


@pytest.mark.parametrize("size", [1.0, 1e300, 1e-300, 1e-305])
@pytest.mark.parametrize("shift", [0.0, 1e3])
def test_moments_against_mpmath(size, shift):
    rng = np.random.default_rng(3)
    x = (rng.normal(size=2000) * np.repeat([1.0, 1e-6, 30.0, 1.0], 500) + shift) * size
    w = rng.uniform(size=2000)
    with mpmath.workdps(40):
        xs, ws = [mpmath.mpf(float(v)) for v in x], [mpmath.mpf(float(v)) for v in w]
        n = mpmath.fsum(ws)
        mean = mpmath.fsum(a * b for a, b in zip(xs, ws, strict=True)) / n
        square = mpmath.fsum(b * (a - mean) ** 2 for a, b in zip(xs, ws, strict=True)) / n
        sd = mpmath.sqrt(square)
        s = in_leaves(x, w, size=100)
        got_mean, got_sd = moments(s)
        assert abs(s.n / n - 1) < 1e-15
        assert abs(got_mean - mean) < 1e-15 * (abs(mean) + 20 * sd)
        assert abs(got_sd / sd - 1) < 1e-15 * 4


def test_full_range_and_subnormal_leaves():
    x = np.array([-1.7e308, 5e-324, 0.0, 1.7e308])
    for size in (1, 2, 4):
        mean, sd = moments(in_leaves(x, size=size))
        assert abs(mean) < 1e293
        assert np.isclose(sd, 1.7e308 * np.sqrt(0.5), rtol=1e-15)
    tiny = np.arange(8.0) * 5e-324
    assert np.isclose(Standardise.from_summary(in_leaves(tiny, size=2)).spread, 0.28641, rtol=1e-5)


@pytest.mark.parametrize(
    ("base", "least"), [(1_000_000, 9.3), (10_000_000, 8.2)], ids=["NumAcc3", "NumAcc4"]
)
def test_nist_numerical_accuracy_in_leaves_of_100(base, least):
    x = np.array([base + 0.2] + [base + 0.1, base + 0.3] * 500)
    s = in_leaves(x, size=100)
    mean, sd = moments(s)
    sd *= np.sqrt(1001 / 1000)
    assert abs(mean - (base + 0.2)) <= np.spacing(base + 0.2)
    assert -np.log10(abs(sd - 0.1) / 0.1) >= least
    whole = summarise(x)  # what is lost was lost when the data became floats
    assert abs(s.m2 / whole.m2 - 1.0) < 1e-14


@pytest.mark.parametrize("kind", WARPS)
def test_weights_are_repetitions(kind):
    rng = np.random.default_rng(4)
    x = np.round(rng.normal(size=N), 2)
    w = rng.integers(0, 5, N).astype(float)  # the repeated rows fall into other leaves
    u, v = kind.fit(x, w)(x), kind.fit(np.repeat(x, w.astype(int)))(x)
    assert np.allclose(u, v, rtol=1e-15, atol=1e-15)


# The sketch.


def distribution(values, masses, at):
    """Weight below, and up to, each of ``at``, as parts of all weight."""
    c = np.concatenate([[0.0], np.cumsum(masses)]) / masses.sum()
    return np.array([c[np.searchsorted(values, at, side)] for side in ("left", "right")])


def column(kind, n=300_000):
    rng = np.random.default_rng(5)
    if kind == "ties":  # half of all rows on one value, a fifth on another
        x = rng.normal(size=n)
        x[rng.uniform(size=n) < 0.5] = 0.25
        x[rng.uniform(size=n) < 0.2] = -1.0
        return x
    x = rng.lognormal(sigma=2.0, size=n)
    return {"random": x, "sorted": np.sort(x), "falling": -np.sort(x)}[kind]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["random", "sorted", "falling", "ties"])
def test_sketch_keeps_its_error_bound(kind, weighted):
    x = column(kind)
    w = np.random.default_rng(6).exponential(size=x.size) ** 2 if weighted else np.ones(x.size)
    s = summarise_column(x, w)
    depth = np.ceil(np.log2(x.size / LEAF_ROWS))
    assert 1 <= s.compressions < depth
    assert s.rank_error == s.compressions / (2 * (KEPT_VALUES - 1)) < 5e-4
    assert s.values.size <= EXACT_VALUES
    assert (s.values[0], s.values[-1]) == (x.min(), x.max())
    assert np.all(np.diff(s.values) > 0.0)
    assert np.all(s.masses > 0.0)
    assert np.isclose(s.masses.sum(), w.sum(), rtol=1e-12)
    order = np.argsort(x, kind="stable")
    truth = distribution(x[order], w[order], x)
    error = np.abs(distribution(s.values, s.masses, x) - truth)
    assert error.max() <= s.rank_error * (1 + 1e-9)
    # The warp: mid-ranks of both, each stretched to [0, 1], and a step of the knots between.
    middle = truth.mean(axis=0)
    expected = (middle - middle.min()) / (middle.max() - middle.min())
    warp = Quantile.from_summary(s)
    assert warp.knots.size <= EXACT_VALUES
    off = np.abs(warp(x) - expected) > 6 * s.rank_error
    assert not off[np.isin(x, s.values)].any()
    # Straight lines climb the jump at a tie: the rows left out in the gaps beside it are off.
    assert w[off].sum() / w.sum() <= (4 * 2 * s.rank_error if kind == "ties" else 0.0)


def test_one_compression_reaches_but_keeps_half_a_step():
    x = np.arange(EXACT_VALUES + 1.0)
    s = summarise(x)
    assert (s.compressions, s.values.size) == (1, KEPT_VALUES)
    error = np.abs(distribution(s.values, s.masses, x) - distribution(x, np.ones(x.size), x))
    assert 0.9 * s.rank_error < error.max() <= s.rank_error * (1 + 1e-9)


def test_sketch_is_exact_up_to_its_size():
    rng = np.random.default_rng(7)
    x = rng.permutation(np.repeat(np.arange(float(EXACT_VALUES)), 5))
    s = summarise_column(x)
    assert (s.compressions, s.rank_error) == (0, 0.0)
    assert np.array_equal(s.values, np.arange(float(EXACT_VALUES)))
    assert np.all(s.masses == 5.0)
    assert Codes.from_summary(s).values.size == EXACT_VALUES
    more = merge(s, summarise(np.array([-1.0])))
    assert more.compressions == 1
    with pytest.raises(InputError, match="too many distinct values for an indicator"):
        Codes.from_summary(more)


def test_two_compressed_sketches_merge_without_loss():
    x = np.random.default_rng(8).normal(size=(2, EXACT_VALUES + 1))
    s = merge(summarise(x[0]), summarise(x[1]))
    assert s.compressions == 1
    assert s.values.size == 2 * KEPT_VALUES


def test_zeros_have_one_sign():
    assert np.signbit(summarise(np.array([-0.0, 0.0, -0.0])).values).tolist() == [False]


# Errors.


def test_errors_name_the_column():
    X = np.ones((3, 2))
    X[1, 1] = np.inf
    for f in (summarise_table, summarise_leaf):
        with pytest.raises(InputError, match="column 1: 1 of 3 rows are not finite"):
            f(X)
        with pytest.raises(InputError, match="column 'b': 1 of 3 rows"):
            f(X, None, ("a", "b"))
        with pytest.raises(InputError, match="one per row, 0 or more"):
            f(X, np.ones(4))
        assert f(X, np.array([1.0, 0.0, 1.0]))[1].n == 2.0
    assert all(s.empty for s in summarise_table(X[:0]))


# Missing values.


@pytest.mark.parametrize("weighted", [False, True])
def test_missing_values_are_counted_and_otherwise_not_there(weighted):
    """As if their rows had weight 0, to the bit."""
    rng = np.random.default_rng(4)
    x, w = dyadic(N), rng.integers(0, 4, N) / 2.0 if weighted else None
    gone = rng.random(N) < 0.3
    gone[LEAF_ROWS : 2 * LEAF_ROWS] = True  # a leaf without any value
    weight = np.ones(N) if w is None else w
    found = summarise_column(np.where(gone, np.nan, x), w, missing=True)
    expected = summarise_column(x, np.where(gone, 0.0, weight))
    assert found.missing == weight[gone].sum()
    assert same_bits(replace(found, missing=0.0), expected)


@pytest.mark.parametrize("w", [None, np.full(N, 0.5)])
def test_where_nothing_is_missing_no_bit_changes(w):
    x = dyadic(N)
    assert same_bits(summarise_column(x, w, missing=True), summarise_column(x, w))
    assert summarise_column(x, w).missing == 0.0


def test_a_column_without_values():
    s = summarise_table(np.full((N, 1), np.nan), missing=True)[0]
    assert s.empty
    assert s.missing == N
    some = summarise(np.array([1.0, 2.0]))
    assert same_bits(merge(s, some), replace(some, missing=float(N)))
    assert same_bits(merge(some, s), replace(some, missing=float(N)))


def test_missing_values_are_refused_unless_expected():
    X = np.zeros((3, 2))
    X[1, 1] = np.nan
    for f in (summarise_table, summarise_leaf):
        with pytest.raises(InputError, match="column 'b': 1 of 3 rows are not finite"):
            f(X, None, ("a", "b"))
        assert [s.missing for s in f(X, missing=True)] == [0.0, 1.0]
        X[0, 1] = np.inf
        with pytest.raises(InputError, match="column 1: 1 of 2 rows are not finite"):
            f(X, missing=True)
        X[0, 1] = 0.0
