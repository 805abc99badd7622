"""Held-out targets contradict wrong predictive distributions, and only those."""

import numpy as np
import pytest
from scipy import integrate, stats

from tensorlace import InputError, Mixture, Normal, Samples
from tensorlace.predictive.checks import SIGNIFICANCE, check, check_residuals
from tensorlace.predictive.quantile_residuals import from_residuals, residuals


def standard(n):
    return Normal(np.zeros(n), 0.0, 1.0)


def mixture(n, seed=0):
    rng = np.random.default_rng(seed)
    return Mixture(rng.normal(size=(3, n)), 0.1, rng.uniform(0.2, 1.0, (3, n)), [0.2, 0.5, 0.3])


# residuals ---------------------------------------------------------------------------------------


def test_residuals_of_a_normal_are_standardised_errors_however_far():
    mean, std = np.array([1.0, -2.0, 0.0, 5.0, 0.0]), np.array([0.5, 2.0, 1.0, 1e-3, 10.0])
    z = np.array([0.0, -1.5, 4.99, 1e6, -30.0])
    dist = Normal(mean, 0.6 * std, 0.8 * std)
    np.testing.assert_allclose(residuals(mean + std * z, dist), z, rtol=1e-9, atol=1e-12)


def test_residuals_of_a_mixture_invert():
    dist = mixture(7)
    levels = np.array([-80.0, -5.5, -4.0, -0.3, 0.0, 1.0, 4.9, 5.1, 60.0])
    y = from_residuals(levels, dist)
    assert np.all(np.diff(y, axis=1) > 0)
    for level, column in zip(levels, y.T, strict=True):
        np.testing.assert_allclose(residuals(column, dist), level, rtol=1e-8, atol=1e-12)


def test_residuals_of_a_mixture_are_normal_scores():
    dist = mixture(5)
    y = dist.mean + 0.3
    s = np.hypot(dist.epistemic_stds, dist.aleatoric_stds)
    F = sum(
        w * stats.norm.cdf(y, m, t) for w, m, t in zip(dist.weights, dist.means, s, strict=True)
    )
    np.testing.assert_allclose(residuals(y, dist), stats.norm.ppf(F), rtol=1e-12)


def test_infinite_residuals_and_levels():
    certain = Normal([1.0, 1.0, 1.0], 0.0, 0.0)
    assert residuals([1.0, 2.0, 0.0], certain).tolist() == [0.0, np.inf, -np.inf]
    assert from_residuals([-np.inf, np.inf], certain).tolist() == [[-np.inf, np.inf]] * 3


# what a check says -------------------------------------------------------------------------------


def test_numbers_of_a_check_by_hand():
    rng = np.random.default_rng(0)
    dist, z = mixture(60), rng.normal(0.1, 1.2, 60)
    y = np.diag(from_residuals(z, dist))
    found = check(y, dist)
    assert found.bias == pytest.approx(z.mean(), rel=1e-8)
    assert found.dispersion == pytest.approx(z.std(ddof=1), rel=1e-8)
    np.testing.assert_allclose(found.pit, stats.norm.cdf(z), atol=1e-9)
    for level, share in zip(found.levels, found.coverage, strict=True):
        lower, upper = dist.interval(level)
        assert share == pytest.approx(np.mean((lower <= y) & (y <= upper)), abs=1e-12)
    assert found.log_score == pytest.approx(dist.logpdf(y).mean())
    assert str(found) == found.message


def test_p_values_against_scipy():
    z = np.random.default_rng(3).normal(0.05, 1.02, 300)
    inside = 2 * stats.norm.cdf(abs(z)) - 1
    least = min(
        2 * stats.norm.sf(abs(z.mean()) * np.sqrt(300)),
        2 * min(stats.chi2.cdf(s := 299 * z.var(ddof=1), 299), stats.chi2.sf(s, 299)),
        stats.kstest(inside, "uniform").pvalue,
        stats.kstest(stats.norm.cdf(z), "uniform").pvalue,
    )
    assert check_residuals(z).p_value == pytest.approx(min(1.0, 4 * least), rel=0.01)


def test_expected_log_score_is_minus_the_entropy():
    normal = Normal([0.0, 3.0], 0.3, [0.4, 1.2])
    entropy = stats.norm.entropy(scale=normal.std).mean()
    assert check([0.0, 3.0], normal).expected_log_score == pytest.approx(-entropy, rel=1e-12)
    one = Mixture([[0.0], [2.0]], 0.0, [[0.5], [1.0]], [0.4, 0.6])

    def integrand(y):
        p = 0.4 * stats.norm.pdf(y, 0, 0.5) + 0.6 * stats.norm.pdf(y, 2, 1)
        return p * np.log(p)

    exact = integrate.quad(integrand, -8, 12, points=[0, 2])[0]
    many = Mixture(*(np.repeat(x, 4000, axis=1) for x in (one.means,)), 0.0,
                   np.repeat(one.aleatoric_stds, 4000, axis=1), one.weights)  # fmt: skip
    found = check(np.ones(4000), many).expected_log_score
    assert found == pytest.approx(exact, abs=0.01)  # 128,000 draws


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (lambda e: 1.5 * e, "intervals too narrow: 95 % intervals hold 81 % of 500 rows"),
        (lambda e: e / 2, "intervals too wide: 50 % intervals hold"),
        (lambda e: e + 0.5, "predictions too low"),
        (lambda e: e - 0.5, "predictions too high"),
        (lambda e: np.where(np.arange(500) < 5, 10.0, e), "a few errors far too large, up to 10 "),
        (lambda e: np.sign(e) * abs(e) ** 1.8 / 1.5, "shape of the distributions wrong: 50 %"),
        (
            lambda e: np.where(np.arange(500) % 100 < 61, 1, -1) * abs(e),
            "61 % of 500 targets lie above",
        ),
    ],
)
def test_the_sentence_says_what_is_wrong(y, words):
    e = stats.norm.ppf((np.arange(500) + 0.5) / 500)
    found = check(y(e), standard(500))
    assert found.contradicted
    assert words in found.message
    assert found.p_value < SIGNIFICANCE


# how often ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "times"), [(30, 600), (300, 500), (3000, 200)])
def test_false_alarms_are_rarer_than_one_in_a_hundred(n, times):
    rng = np.random.default_rng(n)
    alarms = [check_residuals(rng.normal(size=n)).contradicted for _ in range(times)]
    assert np.mean(alarms) < 0.01


@pytest.mark.parametrize("rho", [0.05, 0.4])
def test_an_error_that_all_rows_share_is_no_contradiction(rho):
    rng = np.random.default_rng(1)
    dist = Normal(np.zeros(500), np.sqrt(rho), np.sqrt(1 - rho))
    x = rng.uniform(-np.sqrt(3), np.sqrt(3), 500)
    alarms = []
    for k in range(200):
        f = np.sqrt(rho) * rng.normal() * (1.0 if k % 2 else x)  # an intercept, or a slope
        y = f + np.sqrt(1 - rho) * rng.normal(size=500)
        alarms.append(check(y, dist).contradicted)
    assert np.mean(alarms) < 0.015


@pytest.mark.parametrize(
    ("draw", "n"),
    [
        (lambda rng, n: 1.5 * rng.normal(size=n), 200),
        (lambda rng, n: rng.normal(size=n) / 1.5, 200),
        (lambda rng, n: rng.standard_t(3, size=n) / np.sqrt(3), 2000),
        (lambda rng, n: rng.standard_t(3, size=n), 2000),
        (lambda rng, n: rng.normal(0.5, size=n), 200),
    ],
    ids=["narrow", "wide", "t3 of unit variance", "t3", "bias"],
)
def test_what_must_be_found_is_found(draw, n):
    rng = np.random.default_rng(0)
    assert np.mean([check(draw(rng, n), standard(n)).contradicted for _ in range(50)]) >= 0.98


def test_with_many_rows_small_deviations_do_not_matter():
    rng = np.random.default_rng(0)
    found = check(rng.normal(0.05, 1.05, 100_000), standard(100_000))
    assert found.p_value < 1e-10
    assert not found.contradicted
    assert check(rng.normal(0.0, 1.2, 100_000), standard(100_000)).contradicted


def test_few_reference_rows_forgive():
    z = np.random.default_rng(0).normal(0.4, 1.0, 2000)
    assert check_residuals(z).contradicted
    assert not check_residuals(z, reference=50).contradicted


# weights and refusals ----------------------------------------------------------------------------


def test_a_weight_is_a_number_of_repetitions():
    rng = np.random.default_rng(0)
    y, w = rng.normal(0.2, 1.3, 200), rng.integers(0, 4, 200)
    dist = standard(200)
    weighted, repeated = check(y, dist, sample_weight=w), check(np.repeat(y, w), standard(w.sum()))
    for name in ("bias", "dispersion", "p_value", "coverage", "n_rows", "log_score"):
        assert getattr(weighted, name) == pytest.approx(getattr(repeated, name), rel=1e-10)
    assert weighted.message == repeated.message


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: check([0.0], standard(1)), "1 row cannot be checked"),
        (lambda: check([0.0, np.nan], standard(2)), "1 of 2 values that are not finite"),
        (lambda: check([0.0], standard(2)), "y has shape"),
        (lambda: check([0.0], Samples([[0.0], [1.0]])), "got Samples"),
        (lambda: check([0.0, 1.0], standard(2), sample_weight=[1.0, -1.0]), "sample_weight"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(InputError, match=words):
        call()
