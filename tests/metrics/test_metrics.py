"""Scores against loops over the formulas of the paper's appendix B, and against other libraries."""

import math

import numpy as np
import pytest
import scoringrules
from scipy import stats
from sklearn.metrics import root_mean_squared_error

from tensorlace import metrics
from tensorlace.errors import InputError
from tensorlace.predictive.distributions import Mixture, Normal, Samples

EPS = np.finfo(float).eps
N = 60
SCORES = (
    metrics.rmse,
    metrics.nll,
    metrics.crps,
    metrics.coverage,
    metrics.width,
    metrics.calibration_error,
)


def normal(seed=0, n=N):
    rng = np.random.default_rng(seed)
    return Normal(rng.standard_normal(n), rng.gamma(2, 0.3, n), rng.gamma(2, 0.3, n))


def mixture(seed=0, n=N):
    rng = np.random.default_rng(seed)
    means, stds = rng.standard_normal((5, n)), rng.gamma(2, 0.3, (2, 5, n))
    return Mixture(means, *stds, rng.dirichlet(np.ones(5)))


def samples(seed=0, n=N):
    return Samples(mixture(seed, n).sample(300, rng=seed).T)


def targets(n=N, seed=1):
    return 1.5 * np.random.default_rng(seed).standard_normal(n)


KINDS = pytest.mark.parametrize("make", [normal, mixture, samples])


# Appendix B, written as loops


def loop_ecp(y, dist, level):
    lower, upper = dist.interval(level)
    return sum(1.0 if lo <= t <= up else 0.0 for lo, t, up in zip(lower, y, upper, strict=True)) / N


@KINDS
def test_rmse_by_loop(make):
    y, dist = targets(), make()
    loop = math.sqrt(sum((t - m) ** 2 for t, m in zip(y, dist.mean, strict=True)) / N)
    assert metrics.rmse(y, dist) == pytest.approx(loop, rel=4 * EPS)
    assert metrics.rmse(y, dist.mean) == metrics.rmse(y, dist)
    assert metrics.rmse(y, dist) == pytest.approx(
        root_mean_squared_error(y, dist.mean), rel=4 * EPS
    )


def test_rmse_of_errors_whose_squares_leave_the_range():
    for size in (1e-200, 1e200):
        assert metrics.rmse([3 * size, 4 * size], [0.0, 0.0]) == pytest.approx(
            math.sqrt(12.5) * size, rel=4 * EPS
        )
    assert metrics.rmse([1.0, 2.0], [1.0, 2.0]) == 0.0


def test_nll_of_a_normal_by_loop():
    y, dist = targets(), normal()
    loop = 0.0
    for t, m, e, a in zip(y, dist.mean, dist.epistemic_std, dist.aleatoric_std, strict=True):
        v = e * e + a * a
        loop += 0.5 * math.log(2 * math.pi * v) + (t - m) ** 2 / (2 * v)
    assert metrics.nll(y, dist) == pytest.approx(loop / N, rel=8 * EPS)
    assert metrics.nll(y, dist) == pytest.approx(
        -stats.norm(dist.mean, dist.std).logpdf(y).mean(), rel=8 * EPS
    )


def test_nll_of_a_mixture_by_loop():
    y, dist = targets(), mixture()
    s = np.hypot(dist.epistemic_stds, dist.aleatoric_stds)
    loop = 0.0
    for i in range(N):
        p = sum(
            w
            * math.exp(-(((y[i] - dist.means[m, i]) / s[m, i]) ** 2) / 2)
            / (s[m, i] * math.sqrt(2 * math.pi))
            for m, w in enumerate(dist.weights)
        )
        loop -= math.log(p)
    assert metrics.nll(y, dist) == pytest.approx(loop / N, rel=16 * EPS)


@KINDS
@pytest.mark.parametrize("level", [0.05, 0.5, 0.95])
def test_coverage_and_width_by_loop(make, level):
    y, dist = targets(), make()
    lower, upper = dist.interval(level)
    assert metrics.coverage(y, dist, level) == pytest.approx(loop_ecp(y, dist, level), rel=EPS)
    loop = sum(up - lo for lo, up in zip(lower, upper, strict=True)) / N
    assert metrics.width(y, dist, level) == pytest.approx(loop, rel=8 * EPS)


def test_interval_of_samples_is_the_papers_percentiles():
    y, dist = targets(), samples()
    low, high = np.percentile(dist.values, [2.5, 97.5], axis=0)
    assert metrics.coverage(y, dist) == np.mean((low <= y) & (y <= high))
    assert metrics.width(y, dist) == pytest.approx(np.mean(high - low), rel=16 * EPS)


@KINDS
def test_calibration_error_by_loop(make):
    y, dist = targets(), make()
    published = [0.05 * k for k in range(1, 20)]  # 19 levels of the published code
    text = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95]  # those of the text
    for levels, value in (
        (published, metrics.calibration_error(y, dist)),
        (text, metrics.calibration_error(y, dist, text)),
        (text, metrics.calibration_error(y, dist, levels=np.array(text))),
    ):
        loop = sum(abs(loop_ecp(y, dist, a) - a) for a in levels) / len(levels)
        assert value == pytest.approx(loop, rel=16 * EPS)


def test_crps_is_that_of_scoringrules():
    y, a, b, c = targets(), normal(), mixture(), samples()
    s, w = np.hypot(b.epistemic_stds, b.aleatoric_stds), np.tile(b.weights, (N, 1))
    for value, reference in (
        (metrics.crps(y, a), scoringrules.crps_normal(y, a.mean, a.std)),
        (metrics.crps(y, b), scoringrules.crps_mixnorm(y, b.means.T, s.T, w)),
        (metrics.crps(y, c), scoringrules.crps_ensemble(y, c.values.T, estimator="nrg")),
    ):
        assert value == pytest.approx(reference.mean(), rel=1e-14)


# What they mean


@pytest.mark.parametrize("make", [normal, mixture])
def test_targets_drawn_from_the_distribution_look_calibrated(make):
    dist = make(n=4000)
    y = dist.sample(rng=5)[:, 0]
    assert stats.kstest(metrics.pit(y, dist), "uniform").pvalue > 0.01
    assert metrics.coverage(y, dist) == pytest.approx(0.95, abs=3 * 0.0035)
    assert metrics.calibration_error(y, dist) < 0.015
    assert metrics.nll(y, dist) < metrics.nll(y, dist.affine(1.3))
    assert metrics.crps(y, dist) < metrics.crps(y, dist.affine(1.3))


def test_many_draws_approach_the_distribution_they_come_from():
    y, dist = targets(), normal()
    draws = Samples(dist.sample(20_000, rng=0).T)
    for name, value in metrics.summary(y, draws).items():
        if name != "nll":
            assert value == pytest.approx(metrics.summary(y, dist)[name], abs=0.03)


@KINDS
@pytest.mark.parametrize("k", [-7, 3])
def test_change_of_units_by_a_power_of_two(make, k):
    y, dist, scale = targets(), make(), 2.0**k
    old, new = metrics.summary(y, dist), metrics.summary(scale * y, dist.affine(scale))
    for name in ("rmse", "crps", "wcpi95"):
        assert new[name] == scale * old[name]
    for name in ("ecp95", "rce"):
        assert new[name] == old[name]
    if make is not samples:
        assert new["nll"] == pytest.approx(old["nll"] + math.log(scale), rel=8 * EPS)


def test_a_certain_prediction_covers_only_itself():
    y = np.array([1.0, 2.0, 3.0, 4.0])
    for dist in (
        Normal([1.0, 2.0, 0.0, 0.0], 0.0, 0.0),
        Mixture([[1.0, 2, 0, 0]], 0.0, 0.0, [1.0]),
    ):
        assert metrics.coverage(y, dist) == 0.5
        assert metrics.calibration_error(y, dist, [0.4, 0.8]) == pytest.approx(0.2)
        assert metrics.width(y, dist) == 0.0
        assert metrics.crps(y, dist) == 7 / 4
        np.testing.assert_array_equal(metrics.pit(y, dist), [1, 1, 1, 1])
        assert math.isnan(metrics.nll(y, dist))  # -inf for some rows, +inf for others
        assert metrics.nll(y, dist, sample_weight=[0, 0, 1, 1]) == np.inf


def test_point_masses_are_covered_as_their_intervals_say():
    points = Mixture(np.arange(5.0)[:, None] * np.ones(6), 0.0, 0.0, np.full(5, 0.2))
    y = np.array([0.0, 1.0, 2.0, 2.5, 4.0, 9.0])
    for level in (0.1, 0.5, 0.7, 0.9):
        lower, upper = points.interval(level)
        assert metrics.coverage(y, points, level) == np.mean((lower <= y) & (y <= upper))


# Weights


@pytest.mark.parametrize(
    ("make", "score"),
    [
        (m, s)
        for m in (normal, mixture, samples)
        for s in SCORES
        if (m, s) != (samples, metrics.nll)
    ],
)
def test_weights_count_rows(make, score):
    y, dist = targets(), make()
    counts = np.random.default_rng(0).integers(0, 4, N)
    rows = np.repeat(np.arange(N), counts)
    weighted = score(y, dist, sample_weight=counts)
    assert weighted == pytest.approx(score(y[rows], dist[rows]), rel=1e-14)
    assert score(y, dist, sample_weight=5.0 * counts) == pytest.approx(weighted, rel=1e-14)
    assert score(y, dist, sample_weight=np.ones(N)) == pytest.approx(score(y, dist), rel=1e-14)
    assert isinstance(weighted, float)


def test_summary_holds_each_score():
    y, dist, w = targets(), mixture(), np.arange(N) % 3
    out = metrics.summary(y, dist, sample_weight=w)
    assert list(out) == ["rmse", "nll", "crps", "ecp95", "wcpi95", "rce"]
    for score, value in zip(SCORES, out.values(), strict=True):
        assert value == score(y, dist, sample_weight=w)
        assert type(value) is float
    of_samples = metrics.summary(y, samples())
    assert math.isnan(of_samples.pop("nll"))
    assert all(map(math.isfinite, of_samples.values()))


def test_pit_is_the_cdf():
    y, dist = targets(), normal()
    np.testing.assert_allclose(
        metrics.pit(y, dist), stats.norm(dist.mean, dist.std).cdf(y), rtol=1e-14
    )


# Errors name the quantity and its size


@pytest.mark.parametrize("score", [*SCORES, metrics.pit, metrics.summary])
@KINDS
def test_every_score_checks_its_targets(score, make):
    for y, message in (
        (np.zeros(3), r"y has shape \(3,\), the prediction \(60,\)"),
        (0.0, r"y has shape \(\)"),
        (np.zeros((N, 1)), r"y has shape \(60, 1\)"),
        (np.append(np.zeros(N - 2), [np.nan, np.inf]), "y has 2 of 60 values that are not finite"),
    ):
        with pytest.raises(InputError, match=message):
            score(y, make())
    with pytest.raises(InputError, match=r"\(0,\).*n >= 1"):
        score([], make()[:0])


@pytest.mark.parametrize("score", [*SCORES, metrics.summary])
def test_every_score_checks_its_weights(score):
    for w, message in (
        (np.ones(3), r"sample_weight has shape \(3,\)"),
        (np.full(N, np.nan), "sample_weight has 60 of 60"),
        (-np.ones(N), "sample_weight must be >= 0"),
        (np.zeros(N), "one > 0"),
    ):
        with pytest.raises(InputError, match=message):
            score(targets(), normal(), sample_weight=w)


def test_other_errors():
    y, dist = targets(), normal()
    with pytest.raises(InputError, match=r"draws only.*crps"):
        metrics.nll(y, samples())
    with pytest.raises(InputError, match="need a Normal, Mixture or Samples, got ndarray"):
        metrics.crps(y, y)
    with pytest.raises(InputError, match=r"mean has 1 of 60"):
        metrics.rmse(y, np.append(y[1:], np.nan))
    for levels in ([], [0.5, 1.0], [0.0], [np.nan]):
        with pytest.raises(InputError, match=r"levels must be within \(0, 1\)"):
            metrics.calibration_error(y, dist, levels)
    for score in (metrics.coverage, metrics.width):
        with pytest.raises(InputError, match=r"within \(0, 1\), got .*1.5"):
            score(y, dist, 1.5)
