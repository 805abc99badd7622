"""Distributions of bounded targets: integration and draws are what they are compared with."""

import numpy as np
import pytest
from scipy import integrate

from tensorlace import metrics
from tensorlace.errors import InputError
from tensorlace.predictive.checks import check
from tensorlace.predictive.conformal import Calibration
from tensorlace.predictive.distributions import Mixture, Normal, Samples
from tensorlace.predictive.quantile_residuals import from_residuals, residuals
from tensorlace.predictive.transformed import Transformed, seen_through
from tensorlace.scales import IDENTITY
from tensorlace.scales.clip import Clip
from tensorlace.scales.log import Log
from tensorlace.scales.logit import Logit

SCALES = [Clip(low=0.0), Clip(0.0, 1.0), Clip(high=0.5), Clip(-1.0, 30.0)]


def base(m=5, n=24, seed=0):
    """Mixtures with members of very unlike width, some of them far beyond the bounds."""
    rng = np.random.default_rng(seed)
    means = 3 * rng.standard_normal((m, n))
    e = rng.gamma(0.5, size=(m, n))
    a = 0.02 + rng.gamma(1.0, size=(m, n)) ** 2
    means[:, 0], means[:, 1], means[0, 2] = 200.0, -60.0, -40.0
    return Mixture(means, e, a, rng.dirichlet(np.ones(m), n).T)


def by_row(scale, n=24):
    y = np.random.default_rng(1).uniform(-2, 3, n)
    return np.clip(y, scale.low, scale.high)


def jumps(dist, row):
    """Points between which the distribution function is smooth."""
    s = np.hypot(dist.epistemic_stds, dist.aleatoric_stds)[:, row]
    edges = (dist.means[:, row] + np.arange(-9, 10)[:, None] * s).ravel()
    return np.unique(np.clip(edges, dist.scale.low, dist.scale.high))


def integral(f, edges):
    nodes, weights = np.polynomial.legendre.leggauss(24)
    half, middle = 0.5 * np.diff(edges), 0.5 * (edges[1:] + edges[:-1])
    return float(np.sum(half[:, None] * weights * f(middle[:, None] + half[:, None] * nodes)))


def cdf_at(dist, row):
    def F(t):
        return dist[np.full(t.size, row)].cdf(t.ravel()).reshape(t.shape) if t.size else t

    return F


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_mean_and_std_from_the_distribution_function(scale):
    dist = Transformed(base(), scale)
    for row in range(12):
        edges, F = jumps(dist, row), cdf_at(dist, row)
        top = edges[-1]
        first = top - integral(F, edges)
        square = integral(lambda t, F=F, top=top: 2 * (top - t) * F(t), edges)  # E (top - Y)²
        std = np.sqrt(max(square - (top - first) ** 2, 0.0))
        assert dist.mean[row] == pytest.approx(first, rel=1e-9, abs=1e-9)
        assert dist.std[row] == pytest.approx(std, rel=1e-6, abs=1e-5)


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_crps_by_integration(scale):
    dist, y = Transformed(base(), scale), by_row(SCALES[0])
    found = dist.crps(y)
    for row in range(24):
        edges = np.union1d(jumps(dist, row), np.clip(y[row], scale.low, scale.high))
        F = cdf_at(dist, row)
        want = integral(lambda t, F=F, v=y[row]: (F(t) - (t >= v)) ** 2, edges)
        outside = max(scale.low - y[row], y[row] - scale.high, 0.0)
        assert found[row] == pytest.approx(want + outside, rel=1e-6, abs=1e-12)


def test_crps_of_one_normal_in_closed_form():
    """``E|Y - 0| - E|Y - Y'|/2`` for Y = max(U, 0): that of U on 0 less (√2 - 1) / 2√π."""
    dist = Transformed(Normal([0.0], 0.6, 0.8), Clip(low=0.0))
    want = Normal([0.0], 0.6, 0.8).crps(0.0) - (np.sqrt(2) - 1) / (2 * np.sqrt(np.pi))
    np.testing.assert_allclose(dist.crps(0.0), want, rtol=1e-8)
    np.testing.assert_allclose(dist.crps(-3.0), want + 3.0, rtol=1e-8)


def test_crps_of_certain_predictions_is_the_error():
    dist = Transformed(Normal([-1.0, 0.5, 4.0], 0.0, 0.0), Clip(0.0, 1.0))
    assert dist.crps([0.0, 0.5, 0.25]).tolist() == [0.0, 0.0, 0.75]
    two = Transformed(Mixture([[-1.0], [0.5]], 0.0, [[0.0], [0.1]], [0.5, 0.5]), Clip(low=0.0))
    draws = Samples(two.sample(200_000, rng=0).T)
    assert two.crps(0.2)[0] == pytest.approx(draws.crps(0.2)[0], abs=2e-3)


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_draws_agree(scale):
    dist = Transformed(base(), scale)
    draws = dist.sample(40_000, rng=0)
    assert draws.min() >= scale.low
    assert draws.max() <= scale.high
    error = dist.std / np.sqrt(40_000) + 1e-12
    assert np.all(abs(draws.mean(axis=1) - dist.mean) < 4.5 * error)
    for y in (0.0, 0.3, 1.0):
        np.testing.assert_allclose((draws <= y).mean(axis=1), dist.cdf(y), atol=0.012)
        np.testing.assert_allclose((draws < y).mean(axis=1), dist.cdf_below(y), atol=0.012)


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_quantiles_are_those_of_u_within_the_bounds(scale):
    u = base()
    dist, levels = Transformed(u, scale), np.array([1e-12, 0.025, 0.5, 0.975])
    q = dist.quantile(levels)
    np.testing.assert_array_equal(q, np.clip(u.quantile(levels), scale.low, scale.high))
    assert np.all(np.diff(q, axis=1) >= 0)
    lower, upper = dist.interval(0.999999)
    assert lower.min() >= scale.low
    assert upper.max() <= scale.high


def test_far_rows_are_those_of_u_to_the_bit():
    u = base()
    dist = Transformed(u, Clip(low=0.0))
    for name in ("mean", "std", "epistemic_std", "aleatoric_std"):
        assert getattr(dist, name)[0] == getattr(u, name)[0]
    assert dist.crps(np.full(24, 199.0))[0] == u.crps(np.full(24, 199.0))[0]


def test_variances_add_up():
    dist = Transformed(base(), Clip(0.0, 1.0))
    total = dist.epistemic_std**2 + dist.aleatoric_std**2
    np.testing.assert_allclose(total, dist.std**2, rtol=1e-12, atol=1e-300)


def test_densities_are_those_of_u():
    u, y = base(), by_row(SCALES[0])
    dist = Transformed(u, Clip(low=0.0))
    np.testing.assert_array_equal(dist.logpdf(y), u.logpdf(y))
    np.testing.assert_array_equal(dist.pdf(-1.0), u.pdf(-1.0))


def test_coverage_counts_targets_on_a_bound():
    dist = Transformed(Normal([-1.0, 0.1, 2.0, -9.0], 0.0, 1.0), Clip(0.0, 1.0))
    y = np.array([0.0, 0.0, 1.0, 0.2])
    lower, upper = dist.interval(0.9)
    inside = (lower <= y) & (y <= upper)
    assert metrics.coverage(y, dist, 0.9) == inside.mean() == 0.75


def test_residuals_look_through_the_bounds():
    u, y = base(), by_row(SCALES[0])
    dist = Transformed(u, Clip(low=0.0))
    np.testing.assert_array_equal(residuals(y, dist), residuals(y, u))
    z = np.array([-9.0, -1.0, 0.0, 1.0, 9.0])
    np.testing.assert_array_equal(from_residuals(z, dist), np.maximum(from_residuals(z, u), 0.0))
    ends = Calibration.of(np.linspace(-12.0, 12.0, 99)).interval(dist, 0.9)
    assert ends[0].min() == 0.0
    assert check(y, dist).bias == check(y, u).bias
    assert check(y, dist).expected_log_score == check(y, u).expected_log_score


def test_rows_and_units():
    dist = Transformed(base(), Clip(0.0, 1.0))
    assert len(dist) == 24
    np.testing.assert_array_equal(dist[3:5].mean, dist.mean[3:5])
    other = dist.affine(20.0, 5.0)
    assert other.scale == Clip(5.0, 25.0)
    np.testing.assert_allclose(other.mean, 5.0 + 20.0 * dist.mean, rtol=1e-12)
    np.testing.assert_allclose(other.std, 20.0 * dist.std, rtol=1e-7, atol=1e-12)


def test_what_is_refused():
    u = Normal([1.0], 0.0, 1.0)
    once = Transformed(u, Clip(low=0.0))
    with pytest.raises(InputError, match="has one already"):
        Transformed(once, Clip(low=0.0))
    with pytest.raises(InputError, match="Normals or Mixtures"):
        Mixture.of([once, once])
    assert seen_through(u, IDENTITY) is u
    assert seen_through(u, Clip(low=0.0)).base is u


LOGS = [Log(high=1e4), Log(high=6.0), Log(-1.0, 50.0), Logit(), Logit(-2.0, 40.0)]


def log_base(n=24):
    u = base()
    return Mixture(u.means / 3, u.epistemic_stds / 3, np.sqrt(u.aleatoric_stds) / 3, u.weights)


@pytest.mark.parametrize("scale", LOGS, ids=str)
def test_log_scale_by_integration(scale):
    u = log_base()
    dist, y = Transformed(u, scale), np.concatenate([by_row(scale)[:20], [-2.0, 7.0, 60.0, 0.0]])
    scores = dist.crps(y)
    for row in range(2, 24):
        s = np.hypot(u.epistemic_stds, u.aleatoric_stds)[:, row]
        ends = (u.means[:, row] + np.linspace(-9, 9, 37)[:, None] * s).ravel()
        edges = np.unique(
            np.append(
                scale.forward(np.sort(ends)), [scale.low, np.clip(y[row], scale.low, scale.high)]
            )
        )
        F = cdf_at(dist, row)
        top = edges[-1]
        first = top - integral(F, edges)
        square = integral(lambda t, F=F, top=top: 2 * (top - t) * F(t), edges)
        assert dist.mean[row] == pytest.approx(first, rel=1e-8)
        assert dist.std[row] == pytest.approx(np.sqrt(square - (top - first) ** 2), rel=1e-5)
        want = integral(lambda t, F=F, v=y[row]: (F(t) - (t >= v)) ** 2, edges)
        want += max(scale.low - y[row], y[row] - top, 0.0)
        assert scores[row] == pytest.approx(want, rel=1e-6)
        density = integral(
            lambda t, row=row: dist[np.full(t.size, row)].pdf(t.ravel()).reshape(t.shape), edges
        )
        assert density == pytest.approx(u.cdf(scale.inverse(np.array(top)))[row], abs=1e-6)


@pytest.mark.parametrize("scale", LOGS, ids=str)
def test_log_scale_by_draws(scale):
    dist = Transformed(log_base(), scale)
    draws = dist.sample(40_000, rng=0)
    assert draws.min() >= scale.low
    assert draws.max() <= scale.high
    error = dist.std / np.sqrt(40_000) + 1e-12
    assert np.all(abs(draws.mean(axis=1) - dist.mean) < 5 * error)
    q = dist.quantile([0.1, 0.5, 0.9])
    np.testing.assert_allclose(
        dist.cdf(q[:, 1])[2:], np.where(q[2:, 1] < scale.high, 0.5, 1), atol=1e-9
    )
    z = np.array([-9.0, -1.0, 0.0, 1.0, 9.0])
    assert from_residuals(z, dist).min() >= scale.low
    back = residuals(np.minimum(q[:, 1], 0.999 * scale.high), dist)
    inner = q[:, 1] < 0.99 * scale.high
    np.testing.assert_allclose(back[inner & (q[:, 1] > scale.low)], 0.0, atol=1e-6)


def test_integration_helper_itself():
    want = integrate.quad(lambda t: np.exp(-t) * t, 0, 3)[0]
    assert integral(lambda t: np.exp(-t) * t, np.array([0.0, 1.0, 3.0])) == pytest.approx(want)
