"""Predictive distributions against scipy, mpmath, scoringrules, quadrature and brute force."""

import ast
import inspect
import pickle
import tracemalloc
from dataclasses import FrozenInstanceError
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import mpmath
import numpy as np
import pytest
import scoringrules
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from tensorlace import metrics
from tensorlace.errors import InputError
from tensorlace.predictive import distributions as predictive
from tensorlace.predictive.distributions import Distribution, Mixture, Normal, Samples

EPS = np.finfo(float).eps
LEVELS = np.array([1e-300, 1e-12, 0.001, 0.025, 0.3, 0.5, 0.62, 0.975, 1 - 1e-12])


def normal(n=40, seed=0):
    rng = np.random.default_rng(seed)
    return Normal(3 * rng.standard_normal(n), rng.gamma(2, size=n), rng.gamma(2, size=n))


def mixture(m=6, n=40, seed=0):
    rng = np.random.default_rng(seed)
    means, e, a = 3 * rng.standard_normal((m, n)), rng.gamma(2, size=(m, n)), rng.gamma(2, size=n)
    return Mixture(means, e, np.tile(a, (m, 1)), rng.dirichlet(np.ones(m)))


def samples(s=101, n=40, seed=0):
    return Samples(np.random.default_rng(seed).standard_t(5, size=(s, n)))


def targets(n=40, seed=1):
    return 4 * np.random.default_rng(seed).standard_normal(n)


KINDS = pytest.mark.parametrize("make", [normal, mixture, samples])
GAUSSIAN = pytest.mark.parametrize("make", [normal, mixture])


def components(d, row):
    """(weight, mean, variance) of each component of a row, in 50 digits."""
    parts = zip(
        d.weights, d.means.T[row], d.epistemic_stds.T[row], d.aleatoric_stds.T[row], strict=True
    )
    return [
        (mpmath.mpf(w), mpmath.mpf(m), mpmath.mpf(e) ** 2 + mpmath.mpf(a) ** 2)
        for w, m, e, a in parts
    ]


def exact_cdf(d, row, y, sign=1):
    """The cdf, or with sign -1 its complement."""
    return sum(w * mpmath.ncdf(sign * (y - m) / mpmath.sqrt(v)) for w, m, v in components(d, row))


def exact_pdf(d, row, y):
    return sum(w * mpmath.npdf(y, m, mpmath.sqrt(v)) for w, m, v in components(d, row))


@pytest.fixture(autouse=True)
def fifty_digits():
    with mpmath.workdps(50):
        yield


# Normal


def test_normal_is_scipys():
    d, y = normal(), targets()
    reference = stats.norm(d.mean, np.sqrt(d.epistemic_std**2 + d.aleatoric_std**2))
    np.testing.assert_allclose(d.std, reference.std(), rtol=2 * EPS)
    np.testing.assert_allclose(d.logpdf(y), reference.logpdf(y), rtol=1e-14)
    np.testing.assert_allclose(d.pdf(y), reference.pdf(y), rtol=1e-13)
    np.testing.assert_allclose(d.cdf(y), reference.cdf(y), rtol=1e-13)
    np.testing.assert_allclose(d.quantile(0.3), reference.ppf(0.3), rtol=1e-13)
    np.testing.assert_allclose(d.interval(0.9), reference.interval(0.9), rtol=1e-13)
    np.testing.assert_allclose(d.crps(y), scoringrules.crps_normal(y, d.mean, d.std), rtol=1e-13)


@pytest.mark.parametrize("std", [1e-300, 1e-12, 1.0, 1e12, 1e300])
@pytest.mark.parametrize("z", [-37.0, -8.5, -1.0, 0.0, 1e-9, 0.5, 8.5, 1e5])
def test_normal_in_fifty_digits_for_any_std_and_far_tails(std, z):
    d, y = Normal([0.0], 0.6 * std, 0.8 * std), z * std
    s = mpmath.sqrt(mpmath.mpf(0.6 * std) ** 2 + mpmath.mpf(0.8 * std) ** 2)
    t = mpmath.mpf(y) / s
    phi, Phi = mpmath.npdf(t), mpmath.ncdf(t)
    crps = s * (t * (2 * Phi - 1) + 2 * phi - 1 / mpmath.sqrt(mpmath.pi))
    np.testing.assert_allclose(d.std, float(s), rtol=EPS)
    terms = z * z / 2 + abs(np.log(std)) + 1
    np.testing.assert_allclose(d.logpdf(y), float(mpmath.log(phi / s)), atol=2 * EPS * terms)
    np.testing.assert_allclose(
        d.cdf(y), float(Phi), rtol=2 * EPS * (2 + z * z)
    )  # its condition number
    np.testing.assert_allclose(d.crps(y), float(crps), rtol=4 * EPS)


def test_variances_add_without_overflow_or_underflow():
    for size in (1e-200, 1e200):
        d = Normal([0.0], 3 * size, 4 * size)
        np.testing.assert_allclose(d.std, 5 * size, rtol=2 * EPS)
        np.testing.assert_array_equal(d.epistemic_std, 3 * size)
        np.testing.assert_array_equal(d.aleatoric_std, 4 * size)
        m = Mixture([[-3 * size], [3 * size]], 0.0, 4 * size, [0.5, 0.5])
        np.testing.assert_allclose(m.std, 5 * size, rtol=4 * EPS)


@pytest.mark.parametrize(
    "d",
    [
        Normal([2.0] * 4, 0.0, 0.0),
        Mixture([[2.0] * 4] * 3, 0.0, 0.0, [0.5, 0.25, 0.25]),
    ],
)
def test_no_noise_and_no_uncertainty_is_a_point_mass(d):
    y = np.array([-1e300, 1.0, 2.0, 3.0])
    np.testing.assert_array_equal(d.std, 0.0)
    np.testing.assert_array_equal(d.cdf(y), [0, 0, 1, 1])
    np.testing.assert_array_equal(d.crps(y), abs(y - 2.0))
    np.testing.assert_array_equal(d.logpdf(y), [-np.inf, -np.inf, np.inf, -np.inf])
    np.testing.assert_array_equal(d.pdf(y), [0, 0, np.inf, 0])
    np.testing.assert_array_equal(d.quantile([0.0, 0.1, 0.5, 1.0]), 2.0)
    np.testing.assert_array_equal(d.sample(3, rng=0), 2.0)


def test_ends_of_the_line():
    for d in (normal(), mixture()):
        np.testing.assert_array_equal(d.quantile([0.0, 1.0]), [[-np.inf, np.inf]] * len(d))
        np.testing.assert_array_equal(d.cdf(np.inf), 1.0)
        np.testing.assert_array_equal(d.cdf(-np.inf), 0.0)
        np.testing.assert_array_equal(d.logpdf(np.inf), -np.inf)


# Mixture


def test_mixture_moments_are_those_of_the_definition():
    d = mixture()
    for row in range(0, 40, 7):
        parts = components(d, row)
        mean = sum(w * m for w, m, _ in parts)
        total = sum(w * (v + (m - mean) ** 2) for w, m, v in parts)
        aleatoric = sum(
            w * mpmath.mpf(a) ** 2
            for w, a in zip(map(mpmath.mpf, d.weights), d.aleatoric_stds.T[row], strict=True)
        )
        np.testing.assert_allclose(d.mean[row], float(mean), rtol=1e-14)
        np.testing.assert_allclose(d.std[row], float(mpmath.sqrt(total)), rtol=1e-14)
        np.testing.assert_allclose(d.aleatoric_std[row], float(mpmath.sqrt(aleatoric)), rtol=1e-14)
        epistemic = mpmath.sqrt(total - aleatoric)
        np.testing.assert_allclose(d.epistemic_std[row], float(epistemic), rtol=1e-14)


def test_mixture_density_and_cdf_in_fifty_digits():
    d, y = mixture(), targets()
    y[:2] = -200.0, 200.0  # logsumexp: no density of a component survives exp
    cdf = [float(exact_cdf(d, i, v)) for i, v in enumerate(y)]
    logpdf = [float(mpmath.log(exact_pdf(d, i, v))) for i, v in enumerate(y)]
    np.testing.assert_allclose(d.cdf(y)[1:], cdf[1:], rtol=1e-14)
    np.testing.assert_allclose(d.logpdf(y), logpdf, rtol=1e-14)


def test_mixture_crps_is_scoringrules():
    d, y = mixture(), targets()
    s = np.hypot(d.epistemic_stds, d.aleatoric_stds).T
    reference = scoringrules.crps_mixnorm(y, d.means.T, s, np.tile(d.weights, (40, 1)))
    np.testing.assert_allclose(d.crps(y), reference, rtol=1e-13)


@KINDS
def test_crps_is_the_integral_of_the_squared_distance_of_cdfs(make):
    d, y = make(n=3), targets(3)
    for row in range(3):
        one = d[[row]]

        def squared(t, one=one, row=row):
            return (one.cdf(t)[0] - (t >= y[row])) ** 2

        far = 12 * one.std[0] + 12
        cuts = np.sort(np.append(d.means[:, row], y[row]))
        cuts = np.concatenate([[cuts[0] - far], cuts, [cuts[-1] + far]])
        steps = [integrate.quad(squared, a, b, epsabs=1e-13)[0] for a, b in pairwise(cuts)]
        np.testing.assert_allclose(d.crps(y)[row], sum(steps), rtol=1e-11)


@GAUSSIAN
def test_density_is_the_slope_of_the_cdf(make):
    d, y, h = make(), targets(), 2e-3
    weights = np.array([1 / 280, -4 / 105, 1 / 5, -4 / 5, 0, 4 / 5, -1 / 5, 4 / 105, -1 / 280])
    slope = sum(c * d.cdf(y + k * h) for c, k in zip(weights, range(-4, 5), strict=True)) / h
    np.testing.assert_allclose(d.pdf(y), slope, atol=2e-13)


def test_one_component_is_a_normal():
    d, y = normal(), targets()
    m = Mixture(d.means, d.epistemic_stds, d.aleatoric_stds, [1.0])
    for f in (*METHODS, lambda d, y: d.std):
        np.testing.assert_allclose(f(m, y), f(d, y), rtol=1e-14)


METHODS = (
    lambda d, y: d.quantile([0.01, 0.5, 0.8]),
    lambda d, y: np.array(d.interval(0.5)),
    lambda d, y: d.cdf(y),
    lambda d, y: d.crps(y),
    lambda d, y: d.mean,
    lambda d, y: d.sample(5, rng=0),
)


def test_zero_weight_drops_a_component():
    d, y = mixture(), targets()
    more = np.vstack([d.means, np.full((1, 40), 1e6)])
    stds = [np.vstack([s, np.zeros((1, 40))]) for s in (d.epistemic_stds, d.aleatoric_stds)]
    padded = Mixture(more, *stds, np.append(d.weights, 0.0))
    for f in METHODS:
        np.testing.assert_allclose(f(padded, y), f(d, y), rtol=1e-13)


def test_mixture_of_flattens():
    a, b, y = normal(seed=1), mixture(seed=2), targets()
    d = Mixture.of([a, b], weights=[0.25, 0.75])
    np.testing.assert_allclose(d.cdf(y), 0.25 * a.cdf(y) + 0.75 * b.cdf(y), rtol=1e-14)
    np.testing.assert_allclose(d.pdf(y), 0.25 * a.pdf(y) + 0.75 * b.pdf(y), rtol=1e-13)
    equal = Mixture.of([a, b, a])
    np.testing.assert_allclose(equal.mean, (2 * a.mean + b.mean) / 3, rtol=1e-13)
    same = Mixture.of([a])
    np.testing.assert_allclose(same.crps(y), a.crps(y), rtol=1e-15)


# Quantiles


@GAUSSIAN
def test_quantile_inverts_the_cdf_in_both_tails(make):
    d = make()
    x = d.quantile(LEVELS)
    assert x.shape == (40, len(LEVELS))
    for k, q in enumerate(LEVELS):
        np.testing.assert_array_equal(d.quantile(q), x[:, k])
        np.testing.assert_allclose(d.cdf(x[:, k]), q, rtol=1e-14 * (1 - np.log(min(q, 1 - q))))
        for row in (0, 17):
            tail, sign = min((q, 1), (1 - q, -1))
            exact = float(exact_cdf(d, row, x[row, k], sign))
            np.testing.assert_allclose(exact, tail, rtol=10 * EPS * (1 - 2 * np.log(tail)))
    assert (np.diff(x, axis=1) > 0).all()


MIXTURES = st.integers(1, 8).flatmap(
    lambda m: st.tuples(
        st.lists(st.floats(-100, 100), min_size=m, max_size=m),
        st.lists(st.floats(-4, 4).map(lambda k: 10.0**k), min_size=m, max_size=m),
        st.lists(st.floats(1e-6, 1), min_size=m, max_size=m),
    )
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(MIXTURES, st.lists(st.floats(1e-12, 1 - 1e-12), min_size=1, max_size=6))
def test_quantile_of_any_mixture_inverts_the_cdf_and_never_crosses(parts, levels):
    means, stds, weights = (np.array(x)[:, None] for x in parts)
    d = Mixture(means, 0.0 * stds, stds, weights[:, 0] / weights.sum())
    x = d.quantile(levels)
    reached = [d.cdf(v)[0] for v in x[0]]
    np.testing.assert_allclose(reached, levels, rtol=0, atol=1e-10)
    np.testing.assert_allclose(reached, levels, rtol=1e-9)
    order = np.argsort(levels)
    assert (np.diff(x[0, order]) >= 0).all()
    apart = [d.quantile(q)[0] for q in levels]
    np.testing.assert_allclose(apart, x[0], rtol=1e-13, atol=1e-13)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(MIXTURES, st.floats(-3, 3), st.sampled_from([0.5, 0.05, 0.95, 1e-9]))
def test_quantile_with_point_masses_is_the_smallest_value_that_reaches_q(parts, at, q):
    means, stds, weights = (np.array(x)[:, None] for x in parts)
    stds[::2] = 0.0
    d = Mixture(means + at, 0.0 * stds, stds, weights[:, 0] / weights.sum())
    x = d.quantile(q)
    assert d.cdf(x)[0] >= q * (1 - 1e-9)
    assert d.cdf(np.nextafter(x, -np.inf))[0] <= q * (1 + 1e-9)


def test_quantiles_of_point_masses_are_those_points():
    d = Mixture([[3.0], [0.0], [1.0], [2.0]], 0.0, 0.0, [0.25] * 4)
    levels = [0.0, 0.1, 0.25, 0.26, 0.5, 0.75, 0.76, 1.0]
    np.testing.assert_array_equal(d.quantile(levels), [[0, 0, 0, 1, 1, 2, 3, 3]])


def test_quantiles_of_far_and_of_very_unequal_components():
    far = Mixture([[-1e8], [0.0], [1e8]], 0.0, [[1.0], [1e-8], [1e3]], [0.2, 0.5, 0.3])
    inside = far.quantile([0.1, 0.45, 0.85])[0]  # the middles of the three
    np.testing.assert_allclose(inside, [-1e8, 0.0, 1e8], rtol=1e-15, atol=1e-23)
    offset = Mixture([[1e9], [1e9 + 1]], 0.0, 1.0, [0.5, 0.5])  # x rounds to 1e-7
    np.testing.assert_allclose(offset.quantile(0.5), 1e9 + 0.5, rtol=EPS)
    huge = Mixture([[-1e308], [1e308]], 0.0, 1e307, [0.5, 0.5])
    np.testing.assert_allclose(huge.cdf(huge.quantile(0.3)), 0.3, rtol=1e-13)
    outside = Mixture([[-1e308], [1.7e308]], 0.0, 1e308, [0.5, 0.5])
    np.testing.assert_array_equal(outside.quantile(1 - 1e-9), np.inf)


# Samples


def test_samples_are_numpys_percentiles_and_moments():
    d = samples()
    np.testing.assert_array_equal(d.values, samples().means)
    np.testing.assert_allclose(d.mean, d.values.mean(axis=0), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(d.std, d.values.std(axis=0), rtol=1e-14)
    np.testing.assert_allclose(
        d.interval(), np.percentile(d.values, [2.5, 97.5], axis=0), rtol=1e-14
    )
    np.testing.assert_array_equal(d.quantile([0.0, 1.0]).T, [d.values.min(0), d.values.max(0)])


def test_samples_cdf_is_the_mid_rank():
    d = Samples(np.array([[1.0, 2.0, 2.0, 3.0, 5.0]]).T @ np.ones((1, 6)))
    y = [0.0, 1.0, 2.0, 2.5, 5.0, 6.0]
    np.testing.assert_allclose(d.cdf(y), [0.0, 0.1, 0.4, 0.6, 0.9, 1.0], rtol=EPS)


@pytest.mark.parametrize("s", [1, 2, 3, 50])
def test_samples_crps_is_the_energy_form(s):
    d, y = samples(s), targets()
    y[0] = d.values[0, 0]  # a tie
    pairs = abs(d.values[:, None] - d.values[None]).mean(axis=(0, 1))
    np.testing.assert_allclose(
        d.crps(y), abs(d.values - y).mean(0) - pairs / 2, rtol=1e-13, atol=1e-15
    )
    reference = scoringrules.crps_ensemble(y, d.values.T, estimator="nrg")
    np.testing.assert_allclose(d.crps(y), reference, rtol=1e-13, atol=1e-15)


def test_samples_crps_loses_nothing_to_an_offset():
    values, y = 1e9 + np.arange(7.0) ** 2, 1e9 + 3.5
    v = [Fraction(x) - Fraction(y) for x in values]
    exact = sum(abs(a) for a in v) / 7 - sum(abs(a - b) for a in v for b in v) / 98
    np.testing.assert_allclose(Samples(values[:, None]).crps(y), float(exact), rtol=4 * EPS)


def test_point_masses_in_a_mixture_score_as_weighted_draws():
    rng = np.random.default_rng(0)
    v, w, y = rng.standard_normal(9), rng.dirichlet(np.ones(9)), 0.3
    slow = w @ abs(v - y) - w @ abs(v[:, None] - v) @ w / 2
    np.testing.assert_allclose(Mixture(v[:, None], 0.0, 0.0, w).crps(y), slow, rtol=1e-14)


def test_samples_say_what_they_cannot_do():
    d = samples()
    for f in (
        lambda: d.logpdf(0.0),
        lambda: d.pdf(0.0),
        lambda: d.epistemic_std,
        lambda: d.aleatoric_std,
    ):
        with pytest.raises(InputError, match=r"draws only.*use crps"):
            f()


# Draws


@GAUSSIAN
def test_draws_have_a_uniform_pit(make):
    d = make(n=5)
    draws = d.sample(4000, rng=3)
    assert draws.shape == (5, 4000)
    for row in range(5):
        u = d[[row] * 4000].cdf(draws[row])
        assert stats.kstest(u, "uniform").pvalue > 0.01
    assert abs(np.corrcoef(draws)[np.triu_indices(5, 1)]).max() < 0.06  # rows are independent


@KINDS
def test_draws_depend_on_the_rng_argument_only(make):
    d = make()
    np.testing.assert_array_equal(d.sample(3, rng=7), d.sample(3, rng=np.random.default_rng(7)))
    assert not np.array_equal(d.sample(3, rng=7), d.sample(3, rng=8))
    assert not np.array_equal(d.sample(3), d.sample(3))
    assert d.sample().shape == (40, 1)


def test_samples_resample_their_own_values():
    d = samples(s=20, n=6)
    draws = d.sample(500, rng=0)
    assert all(set(draws[i]) == set(d.values[:, i]) for i in range(6))


# One interface


@KINDS
@pytest.mark.parametrize("k", [-300, -3, 0, 1, 400])
def test_affine_by_a_power_of_two_commutes_with_everything_to_the_bit(make, k):
    d, y, scale = make(), targets(), 2.0**k
    new = d.affine(scale)
    assert type(new) is type(d)
    for f in (lambda d, y: d.mean, lambda d, y: d.std, *METHODS):
        a, b = f(new, scale * y), f(d, y)
        power = 1.0 if f is METHODS[2] else scale  # a cdf has no unit
        np.testing.assert_array_equal(a, power * b)
    if make is not samples:
        np.testing.assert_array_equal(new.epistemic_std, scale * d.epistemic_std)
        np.testing.assert_array_equal(new.aleatoric_std, scale * d.aleatoric_std)
        shifted = d.logpdf(y) - k * np.log(2.0)
        np.testing.assert_allclose(new.logpdf(scale * y), shifted, rtol=1e-14, atol=1e-14)


@KINDS
def test_affine_is_the_distribution_of_shift_plus_scale_y(make):
    d, y = make(), targets()
    new, t = d.affine(7.3, -2.1), -2.1 + 7.3 * y
    np.testing.assert_allclose(new.mean, -2.1 + 7.3 * d.mean, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(new.std, 7.3 * d.std, rtol=1e-14)
    np.testing.assert_allclose(new.cdf(t), d.cdf(y), atol=2e-15)
    np.testing.assert_allclose(new.crps(t), 7.3 * d.crps(y), rtol=1e-13)
    np.testing.assert_allclose(
        new.quantile(0.2), -2.1 + 7.3 * d.quantile(0.2), rtol=1e-13, atol=1e-13
    )
    np.testing.assert_allclose(
        new.sample(3, rng=0), -2.1 + 7.3 * d.sample(3, rng=0), rtol=1e-13, atol=1e-13
    )
    if make is not samples:
        np.testing.assert_allclose(new.logpdf(t), d.logpdf(y) - np.log(7.3), rtol=1e-13)


@KINDS
@pytest.mark.parametrize(
    "rows", [slice(3, 20, 2), slice(0), np.array([5, 1, 1]), np.arange(40) % 3 == 0]
)
def test_rows_can_be_chosen(make, rows):
    d, y = make(), targets()
    part = d[rows]
    assert type(part) is type(d)
    assert len(part) == len(y[rows])
    for f in METHODS[:1] + METHODS[2:4]:
        np.testing.assert_array_equal(f(part, y[rows]), f(d, y)[rows])


@KINDS
def test_a_scalar_y_serves_all_rows(make):
    d = make()
    for f in (d.cdf, d.crps):
        np.testing.assert_array_equal(f(0.7), f(np.full(40, 0.7)))


@KINDS
def test_frozen_read_only_and_pickled(make):
    d, y = make(), targets()
    with pytest.raises(FrozenInstanceError):
        d.means = d.means
    with pytest.raises(ValueError, match="read-only"):
        d.means[0, 0] = 1.0
    again = pickle.loads(pickle.dumps(d))
    np.testing.assert_array_equal(again.crps(y), d.crps(y))


@KINDS
def test_blocks_of_rows_change_nothing(make):
    d = make(n=9000) if make is samples else make(n=100_000)[:90_000]
    y = targets(len(d))
    assert len(d) * len(d.weights) > 2**18 or make is normal
    rows = np.arange(0, len(d), 997)
    for f in METHODS[:1] + METHODS[2:4]:
        np.testing.assert_array_equal(f(d, y)[rows], f(d[rows], y[rows]))


def test_memory_of_a_score_does_not_grow_with_the_rows():
    d = Mixture(
        np.random.default_rng(0).standard_normal((30, 30_000)), 0.0, 1.0, np.full(30, 1 / 30)
    )
    tracemalloc.start()
    for f in (d.cdf, d.logpdf, d.crps, lambda y: d.quantile(0.9)):
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        f(0.5)
        assert tracemalloc.get_traced_memory()[1] - before < 14 * 8 * 2**18 + 8 * 4 * len(d)
    tracemalloc.stop()
    assert d.epistemic_stds.strides == (0, 0)  # a scalar stays a scalar


def test_every_class_is_abstract_or_final():
    assert inspect.isabstract(Distribution)
    assert all(kind.__final__ for kind in (Normal, Mixture, Samples))


def test_imports_stay_light():
    for module in (predictive, metrics):
        tree = ast.parse(Path(module.__file__).read_text())
        names = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
        names |= {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
        third = {n for n in names if n.split(".")[0] in ("scipy", "sklearn")}
        assert third <= {"scipy", "scipy.special"}  # a part of SciPy comes when it is asked for
        used = {
            n.attr
            for n in ast.walk(tree)
            if isinstance(n, ast.Attribute)
            and isinstance(n.value, ast.Name)
            and n.value.id == "scipy"
        }
        assert used <= {"special"}


# Errors name the quantity and its size


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Normal(0.0, 1.0, 1.0), r"means \(M, n\)"),
        (lambda: Normal(np.zeros((2, 3)), 1.0, 1.0), r"\(1, 2, 3\)"),
        (
            lambda: Normal([0.0, 1.0], [1.0] * 3, 1.0),
            r"epistemic_stds has shape \(1, 3\).*\(1, 2\)",
        ),
        (lambda: Normal([0.0, np.nan], 1.0, 1.0), "means has 1 of 2"),
        (lambda: Normal([0.0, 1.0], 1.0, [-1.0, np.inf]), "aleatoric_stds has 2 of 2"),
        (lambda: Mixture(np.zeros((2, 3)), 0.0, 1.0, [1.0]), r"\(2, 3\) and \(1,\)"),
        (lambda: Mixture(np.zeros((2, 3)), np.zeros(3), 1.0, [0.5, 0.5]), r"\(3,\); give \(2, 3\)"),
        (lambda: Mixture(np.zeros((2, 3)), 0.0, 1.0, [1.5, -0.5]), "2 weights must be >= 0"),
        (lambda: Mixture(np.zeros((2, 3)), 0.0, 1.0, [0.5, 0.6]), "sum to 1.1"),
        (lambda: Mixture(np.zeros((2, 3)), 0.0, 1.0, [0.5, np.nan]), "sum to nan"),
        (lambda: Mixture(np.zeros((0, 3)), 0.0, 1.0, []), "0 weights"),
        (lambda: Mixture.of([]), "need Normals or Mixtures"),
        (lambda: Mixture.of([normal(3), normal(4)]), "Normal of 3 rows.*Normal of 4 rows"),
        (lambda: Mixture.of([normal(3)], weights=[0.5, 0.5]), r"\(2,\)"),
        (lambda: Mixture.of([samples(n=3), normal(3)]), "Samples of 3 rows"),
        (lambda: Samples(np.zeros(3)), r"means \(M, n\)"),
        (lambda: Samples(np.zeros((0, 3))), "0 weights"),
        (lambda: normal().interval(0.0), r"coverage must be within \(0, 1\), got 0.0"),
        (lambda: normal().interval(1.0), "coverage"),
        (lambda: mixture().interval(np.nan), "coverage"),
        (lambda: samples().quantile(1.1), r"q must be .* \[0, 1\], got 1.1"),
        (lambda: normal().quantile([0.5, np.nan]), "q must be"),
        (lambda: normal().quantile([[0.5]]), "vector"),
        (lambda: normal().cdf(np.zeros(3)), r"y has shape \(3,\), the distribution has 40 rows"),
        (lambda: normal().affine(0.0), "scale=0.0"),
        (lambda: normal().affine(-1.0), "scale > 0"),
        (lambda: normal().affine(1.0, np.inf), "shift=inf"),
    ],
)
def test_errors(make, message):
    with pytest.raises(InputError, match=message):
        make()


def by_rows(m=6, n=40, seed=0):
    """A mixture whose weights differ by row, and one mixture per row that says the same."""
    plain, rng = mixture(m, n, seed), np.random.default_rng(seed + 1)
    w = rng.dirichlet(np.ones(m), size=n).T
    w[0, ::3] = 0.0
    w /= w.sum(axis=0)
    parts = (plain.means, plain.epistemic_stds, plain.aleatoric_stds)
    return Mixture(*parts, w), [
        Mixture(*(x[:, [k]] for x in parts), w[:, k] / w[:, k].sum()) for k in range(n)
    ]


def test_weights_by_row_are_one_mixture_per_row():
    d, rows = by_rows()
    y = targets()
    for name in ("mean", "std", "epistemic_std", "aleatoric_std"):
        np.testing.assert_allclose(
            getattr(d, name), [getattr(r, name)[0] for r in rows], rtol=1e-13, atol=1e-14
        )
    for name in ("logpdf", "cdf", "crps"):
        ones = [getattr(r, name)(y[k])[0] for k, r in enumerate(rows)]
        np.testing.assert_allclose(getattr(d, name)(y), ones, rtol=1e-12)
    np.testing.assert_allclose(
        d.quantile(LEVELS), [r.quantile(LEVELS)[0] for r in rows], rtol=1e-12
    )
    np.testing.assert_array_equal(d[5:9].logpdf(y[5:9]), d.logpdf(y)[5:9])
    np.testing.assert_array_equal(d.affine(2.0, 1.0).weights, d.weights)
    points = Mixture(d.means, 0.0, 0.0, d.weights).crps(y)
    single = [Mixture(r.means, 0.0, 0.0, r.weights).crps(y[k])[0] for k, r in enumerate(rows)]
    np.testing.assert_allclose(points, single, rtol=1e-12)


def test_draws_of_weights_by_row():
    d, _ = by_rows()
    draws = d.sample(40_000, rng=0)
    z = (draws.mean(axis=1) - d.mean) / (d.std / np.sqrt(40_000))
    assert np.max(np.abs(z)) < 4.5
    np.testing.assert_allclose(draws.std(axis=1), d.std, rtol=0.03)


def test_mixtures_of_mixtures_by_row():
    d, _ = by_rows()
    other, w = normal(), np.random.default_rng(2).dirichlet([1, 1], size=40).T
    both = Mixture.of([d, other], w)
    y = targets()
    density = w[0] * d.pdf(y) + w[1] * other.pdf(y)
    np.testing.assert_allclose(both.pdf(y), density, rtol=1e-12)
    with pytest.raises(InputError, match="sum to 1"):
        Mixture(d.means, 0.0, 1.0, 2 * d.weights)
