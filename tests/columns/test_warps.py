"""Each warp against its own definition, and what single ones promise beyond their contract."""

import pickle

import mpmath
import numpy as np
import pytest
from scipy import stats

from tensorlace.columns.summaries import summarise_column
from tensorlace.columns.warps import Codes, Identity, MinMax, Mixed, Quantile, Standardise
from tensorlace.errors import InputError
from tests.helpers.warp_contract import dyadic, same_bits

EPS = np.finfo(float).eps
SCALED = (Standardise, MinMax, Quantile, Mixed, Codes)  # all that promise equivariance
INTERVAL = (MinMax, Quantile, Mixed)


@pytest.mark.parametrize("kind", SCALED)
@pytest.mark.parametrize("k", [-1040, -900, -300, -1, 0, 1, 7, 300, 900, 1020])
def test_change_of_units_by_a_power_of_two_keeps_every_bit(kind, k):
    x = dyadic()
    scaled = np.ldexp(x, k)
    assert np.array_equal(np.ldexp(scaled, -k), x)  # the case itself is exact, subnormal or not
    new = np.concatenate([x, [x.min() - 1.0, x.max() + 1.0, 0.0]])
    assert same_bits(kind.fit(x)(new), kind.fit(scaled)(np.ldexp(new, k)))


@pytest.mark.parametrize("kind", SCALED)
@pytest.mark.parametrize("a", [0.25, 1.0, 1024.0])
@pytest.mark.parametrize("b", [-7.0, 0.125, 1e6, 2.0**30])
def test_exact_shift_keeps_every_bit(kind, a, b):
    x = dyadic()
    moved = a * x + b
    assert np.array_equal((moved - b) / a, x)
    assert same_bits(kind.fit(x)(x), kind.fit(moved)(moved))


@pytest.mark.parametrize("kind", SCALED)
def test_extreme_sizes(kind):
    x = np.random.default_rng(1).normal(size=100)
    expected = kind.fit(x)(x)
    for size in (1e300, 1e-300, 1e-305):
        u = kind.fit(size * x)(size * x)
        assert np.allclose(u, expected, rtol=1e-13, atol=1e-13)
    full = x / np.abs(x).max() * 1.7e308
    assert float(full.max()) - float(full.min()) == np.inf  # spans more than a float can hold
    assert np.allclose(kind.fit(full)(full), expected, rtol=1e-13, atol=1e-13)
    both = np.array([-1.7e308, 0.0, 1.7e308])
    assert np.allclose(
        kind.fit(both)(both), kind.fit(both / 1.7e308)(both / 1.7e308), rtol=0, atol=4 * EPS
    )


@pytest.mark.parametrize("kind", SCALED)
def test_subnormal_columns(kind):
    x = np.arange(8.0)
    assert same_bits(kind.fit(x * 5e-324)(x * 5e-324), kind.fit(x)(x))


@pytest.mark.parametrize("w", [np.ones(2), np.array([1.0, -1.0, 1.0]), np.array([1, np.nan, 1])])
def test_bad_weights(w):
    with pytest.raises(InputError, match="give one per row, 0 or more"):
        MinMax.fit(np.arange(3.0), w)


def test_repetitions_keep_every_bit_of_quantiles():
    rng = np.random.default_rng(2)
    x = np.round(rng.normal(size=300), 2)
    w = rng.integers(0, 5, 300).astype(float)
    assert same_bits(Quantile.fit(x, w)(x), Quantile.fit(np.repeat(x, w.astype(int)))(x))


def test_between_two_categories_is_outside():
    for kind in (*SCALED, Identity):
        outside = kind.fit(np.array([1.0, 2.0, 4.0])).outside(np.array([3.0]))
        assert outside[0] == (kind is Codes)
        assert kind.interval is (kind in INTERVAL)


# Constant columns.


@pytest.mark.parametrize("value", [0.0, 3.7, -1.7e308, 5e-324])
def test_constant_column(value):
    x = np.full(5, value)
    assert not Standardise.fit(x)(x).any()
    assert Standardise.fit(x).scale == 1.0
    assert Standardise.fit(x).location == value
    for kind in INTERVAL:
        assert np.all(kind.fit(x)(x) == 0.5)
        assert np.all(kind.fit(x)(np.array([value - 1.0, 7.0, -1e300, 1e300])) == 0.5)
    assert not Codes.fit(x)(x).any()


# Standardise.


def test_standardise_moments():
    x = np.random.default_rng(4).gamma(2.0, size=1000) * 1e-5 + 3.0
    warp = Standardise.fit(x)
    assert abs(warp(x).mean()) < 1e-14
    assert abs(warp(x).std() - 1.0) < 1e-14
    w = np.random.default_rng(5).uniform(size=1000)
    u = Standardise.fit(x, w)(x)
    assert abs(np.average(u, weights=w)) < 1e-13
    assert abs(np.average(u**2, weights=w) - 1.0) < 1e-13


def test_robust_standardise():
    rng = np.random.default_rng(4)
    x = 3.0 + 2.0 * rng.standard_normal(20_001)
    warp = Standardise.robust(summarise_column(x))
    low, middle, high = np.quantile(x, [stats.norm.cdf(-1.0), 0.5, stats.norm.cdf(1.0)])
    assert warp.location == pytest.approx(middle, abs=2e-3)
    assert warp.scale == pytest.approx(0.5 * (high - low), rel=2e-3)
    assert warp.scale == pytest.approx(2.0, rel=0.02)
    x[:3] = 1e12
    wild = Standardise.robust(summarise_column(x))
    assert wild.location == pytest.approx(warp.location, abs=2e-3)
    assert wild.scale == pytest.approx(warp.scale, rel=2e-3)
    u = warp(np.array([warp.location, warp.location + warp.scale]))
    np.testing.assert_allclose(u, [0.0, 1.0], atol=1e-12)


def test_robust_standardise_counts_repetitions_and_falls_back_to_moments():
    x, w = np.array([1.0, 2.0, 4.0, 8.0]), np.array([3.0, 1.0, 0.0, 2.0])
    a = Standardise.robust(summarise_column(x, w))
    b = Standardise.robust(summarise_column(np.repeat(x, w.astype(int))))
    assert (a.location, a.scale) == (b.location, b.scale)
    mirrored = Standardise.robust(summarise_column(-x, w))
    assert (mirrored.location, mirrored.scale) == (-a.location, a.scale)
    half = np.concatenate([np.zeros(880), np.linspace(1.0, 2.0, 110), np.full(10, 1e9)])
    warp = Standardise.robust(summarise_column(half))  # 95 % are below 1.64
    assert warp.location == 0.0
    assert warp.scale == pytest.approx(0.5 * 1.64 / stats.norm.ppf(0.95), rel=0.01)
    nearly = summarise_column(np.append(np.zeros(1000), 7.0))
    assert Standardise.robust(nearly) == Standardise.from_summary(nearly)
    same = summarise_column(np.full(5, 3.0))
    assert Standardise.robust(same) == Standardise.from_summary(same)


def digits(value, certified):
    return 17.0 if value == certified else -np.log10(abs(value - certified) / abs(certified))


@pytest.mark.parametrize(
    ("base", "least"), [(1_000_000, 9.3), (10_000_000, 8.2)], ids=["NumAcc3", "NumAcc4"]
)
def test_standardise_on_nist_numerical_accuracy(base, least):
    x = np.array([base + 0.2] + [base + 0.1, base + 0.3] * 500)
    warp = Standardise.fit(x)
    assert digits(warp.location, base + 0.2) >= 15
    assert digits(warp.scale * np.sqrt(1001 / 1000), 0.1) >= least
    # The lost digits were lost when the data became floats: against those, all are right.
    with mpmath.workdps(40):
        exact = [mpmath.mpf(float(v)) for v in x]
        mean = mpmath.fsum(exact) / len(exact)
        sd = mpmath.sqrt(mpmath.fsum((v - mean) ** 2 for v in exact) / len(exact))
    assert abs(warp.location - float(mean)) <= np.spacing(float(mean))
    assert abs(warp.scale / float(sd) - 1.0) <= 2 * EPS


@pytest.mark.parametrize("size", [1.0, 1e300, 1e-300, 1e-310])
@pytest.mark.parametrize("shift", [0.0, 100.0])
def test_standardise_inverse(size, shift):
    x = (np.random.default_rng(6).normal(size=(50)) + shift) * size
    warp = Standardise.fit(x)
    atol = 8 * EPS * np.abs(x).max() + 5e-324
    assert np.allclose(warp.inverse(warp(x)), x, rtol=0, atol=atol)
    assert np.allclose(warp.inverse(np.zeros((2, 3))), warp.location, rtol=0, atol=atol)
    assert np.allclose(warp.inverse(np.ones(1)) - warp.location, warp.scale, rtol=0, atol=2 * atol)


def test_standardise_inverse_over_the_whole_range():
    x = np.array([-1.7e308, 0.0, 1.7e308])
    warp = Standardise.fit(x)
    assert warp.location == 0.0
    assert np.isclose(warp.scale, 1.7e308 * np.sqrt(2 / 3), rtol=4 * EPS)
    assert np.allclose(warp.inverse(warp(x)), x, rtol=4 * EPS, atol=1e292)
    assert np.isinf(warp.inverse(np.array([100.0]))[0])  # no float that large, and no NaN


# The warps to [0, 1].


@pytest.mark.parametrize("kind", INTERVAL)
def test_ends_and_order(kind):
    rng = np.random.default_rng(8)
    x = rng.lognormal(sigma=3.0, size=500)
    u = kind.fit(x)(np.sort(x))
    assert u[0] == 0.0
    assert u[-1] == 1.0
    assert np.all(np.diff(u) > 0.0)
    fine = np.linspace(x.min() - 1.0, x.max() + 1.0, 20_001)
    assert np.all(np.diff(kind.fit(x)(fine)) >= -2 * EPS)


def test_minmax_definition():
    x = dyadic()
    new = np.array([-50.0, 0.3, 99.0])
    expected = (new - x.min()) / (x.max() - x.min())
    assert np.allclose(MinMax.fit(x)(new), expected, rtol=4 * EPS, atol=4 * EPS)


def test_quantile_is_stretched_mid_ranks():
    x = np.round(np.random.default_rng(9).normal(size=200), 1)
    rank = stats.rankdata(x)  # ties share their average rank
    expected = (rank - rank.min()) / (rank.max() - rank.min())
    assert np.allclose(Quantile.fit(x)(x), expected, rtol=0, atol=2 * EPS)


def test_quantile_interpolates_and_clips():
    warp = Quantile.fit(np.array([0.0, 0.0, 1.0, 9.0]))
    # Mid-ranks 1.5, 3, 4 stretched to [0, 1].
    new = np.array([-1e300, 0.0, 0.5, 1.0, 5.0, 9.0, 1e300])
    assert np.allclose(warp(new), [0, 0, 0.3, 0.6, 0.8, 1, 1], rtol=0, atol=2 * EPS)


def test_quantile_with_subnormal_gaps_stays_in_the_interval():
    u = Quantile.fit(np.array([0.0, 1e-320, 1.0]))(np.array([0.0, 5e-321, 1e-320, 1e-300, 1.0]))
    assert np.all((u >= 0.0) & (u <= 1.0))


@pytest.mark.parametrize("draw", ["uniform", "normal", "standard_cauchy", "lognormal"])
@pytest.mark.parametrize("n", [1, 2, 3, 700, 40_000])
def test_quantile_looks_up_what_numpy_interpolates(draw, n):
    rng = np.random.default_rng(n)
    x = getattr(rng, draw)(size=n)
    warp = Quantile.fit(x)
    new = np.concatenate([x, rng.permutation(x) + 0.01 * rng.normal(size=n), [-1e308, 1e308]])
    expected = np.interp(warp.frame.forward(new), warp.knots, warp.heights)
    assert np.allclose(warp(new), expected, rtol=0, atol=2 * EPS)
    assert np.array_equal(warp(x[:50]), warp(x)[:50])


def test_quantile_pickles_without_its_table_of_cells():
    warp = Quantile.fit(np.random.default_rng(0).normal(size=500))
    fresh = len(pickle.dumps(warp))
    new = np.linspace(-3, 3, 100)
    u = warp(new)
    assert len(pickle.dumps(warp)) == fresh
    assert same_bits(pickle.loads(pickle.dumps(warp))(new), u)


def test_mixed_is_the_average():
    x = np.random.default_rng(10).lognormal(size=100)
    new = np.concatenate([x, [-5.0, 1e3]])
    both = 0.5 * (MinMax.fit(x)(new) + Quantile.fit(x)(new))
    assert np.allclose(Mixed.fit(x)(new), both, rtol=2 * EPS, atol=0)
    assert Mixed.fit(x)(np.array([1e3]))[0] > 1.0  # goes on beyond the range


# The others.


def test_codes():
    warp = Codes.fit(np.array([5.0, -2.0, 5.0, 7.5]))
    assert warp.values.tolist() == [-2.0, 5.0, 7.5]
    new = np.array([-2.0, 5.0, 7.5, 6.0, -9.0, 99.0, np.nan])
    assert warp(new).tolist() == [0, 1, 2, -1, -1, -1, -1]


def test_identity():
    x = dyadic(20)
    assert same_bits(Identity.fit(x)(x), x)


def test_equality_looks_at_everything():
    x = dyadic(20)
    assert Standardise.fit(x) == Standardise.fit(x)
    assert Standardise.fit(x) != MinMax.fit(x)
    other = np.concatenate([x, x[:1]])  # the same range, other moments and knots
    assert Standardise.fit(x) != Standardise.fit(other)
    assert Quantile.fit(x) != Quantile.fit(other)
