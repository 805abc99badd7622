"""How wide intervals should be."""

import numpy as np
import pytest
from scipy import stats

from tensorlace import Mixture, Normal, TNKMRegressor, metrics
from tensorlace.likelihoods.student import row_weights
from tensorlace.machines.ensemble import Ensemble
from tensorlace.machines.noise import Noise, with_noise
from tensorlace.predictive.quantile_residuals import residuals
from tensorlace.search.interval_width import (
    learning_curve_factor,
    leave_one_out,
    scale_and_tails,
    widened,
)
from tensorlace.search.settings import WidthSettings

SETTINGS = WidthSettings()


def forecast(n, width, seed=0):
    """Targets with standard deviations between 0.5 and 2, and forecasts ``width`` times as wide."""
    rng = np.random.default_rng(seed)
    mean, std = rng.standard_normal(n), rng.uniform(0.5, 2.0, n)
    y = mean + std * rng.standard_normal(n)
    return y, Normal(mean, 0.3 * width * std, np.sqrt(1 - 0.09) * width * std)


def found(y, dist, weight=None, fall=1.0, *, tails=True):
    z = residuals(y, dist)
    return scale_and_tails(z, dist, y, weight, fall, SETTINGS, tails=tails)


@pytest.mark.parametrize("width", [0.7, 1.0, 1.5])
@pytest.mark.parametrize("tails", [False, True])
def test_widths_are_mended(width, tails):
    y, dist = forecast(4000, width)
    scale, degrees = found(y, dist, tails=tails)
    mended = widened(dist, scale, degrees)
    assert degrees >= 10.0
    assert metrics.coverage(y, mended, 0.95) == pytest.approx(0.95, abs=5e-4)
    assert metrics.calibration_error(y, mended) < 0.01
    if not tails:
        assert degrees == np.inf
        assert scale == pytest.approx(1.0 / width, abs=0.03)


@pytest.mark.parametrize("degrees", [3.0, 6.0])
def test_tails_of_the_whole_error_are_found(degrees):
    """Errors of Student's t, while nearly all of the forecast's spread is epistemic."""
    rng = np.random.default_rng(2)
    y = rng.standard_t(degrees, 20_000)
    dist = Normal(np.zeros(y.size), np.ones(y.size), np.full(y.size, 0.01))
    scale, nu = found(y, dist)
    assert nu == degrees
    assert scale == pytest.approx(1.0, abs=0.05)
    mended = widened(dist, scale, nu)
    assert metrics.calibration_error(y, mended) < 0.01
    assert np.mean(mended.logpdf(y)) > np.mean(Normal(0.0 * y, y.std(), 0.0).logpdf(y))


def test_wide_intervals_hold_what_conformal_prediction_promises():
    """New errors, of a law that the forecast has not: on average over draws at least 95 %."""
    rng = np.random.default_rng(4)
    held = []
    for _ in range(400):
        e = rng.laplace(size=(2, 59)) ** 3
        dist = Normal(np.zeros(59), np.zeros(59), np.ones(59))
        scale, degrees = found(e[0], dist)
        held.append(metrics.coverage(e[1], widened(dist, scale, degrees), 0.95))
    assert 0.945 < np.mean(held) < 0.975  # the rank of 59 rows promises 57 / 60


@pytest.mark.parametrize("weighted", [False, True])
def test_wide_intervals_hold_what_they_say_whatever_the_noise(weighted):
    """Noise far too heavy-tailed in the forecast: residuals are not proportional to errors."""
    rng = np.random.default_rng(7)
    means = rng.standard_normal((3, 2000))
    weight = rng.integers(1, 4, 2000).astype(float) if weighted else None
    said = Mixture(means, 0.3, 0.4, np.array([0.5, 0.3, 0.2]))
    dist = with_noise(said, Noise(degrees=2.5, factor=0.3), np.zeros(2000))
    y, middle = means[0] + rng.laplace(size=2000), []
    for tails in (False, True):
        scale, degrees = found(y, dist, weight, tails=tails)
        assert tails or np.isinf(degrees)
        mended = widened(dist, scale, degrees)
        held = metrics.coverage(y, mended, 0.95, sample_weight=weight)
        assert held == pytest.approx(0.95, abs=2e-3)
        middle.append(abs(metrics.coverage(y, mended, 0.5, sample_weight=weight) - 0.5))
    assert middle[1] <= middle[0]


def test_errors_that_fall_narrow_the_middle_alone():
    y, dist = forecast(4000, 1.0)
    scale, degrees = found(y, dist, fall=0.8)
    narrower = widened(dist, scale, degrees)
    assert degrees < 10.0
    assert metrics.coverage(y, narrower, 0.95) == pytest.approx(0.95, abs=5e-4)
    middle = 2.0 * stats.norm.cdf(0.8 * stats.norm.ppf(0.75)) - 1.0
    assert metrics.coverage(y, narrower, 0.5) == pytest.approx(middle, abs=0.02)


def test_weights_are_repetitions():
    y, dist = forecast(900, 1.25, seed=3)
    weight = np.random.default_rng(1).integers(1, 4, len(y))
    again = np.repeat(np.arange(len(y)), weight)
    assert found(y, dist, weight.astype(float)) == found(y[again], dist[again])


def test_rows_left_out_are_refits_without_them():
    """One column and one term: a linear model, so each refit is a closed form."""
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (40, 1))
    y = 3.0 + np.sin(3 * X[:, 0]) + 0.2 * rng.standard_normal(40)
    model = TNKMRegressor(
        rank=1, n_basis=7, solver="als", noise_precision=30.0, prior_precision=0.3, curvature="ggn"
    ).fit(X, y)
    (machine,) = model.machines_
    ensemble = Ensemble((machine,), np.ones(1))
    said = leave_one_out(ensemble, X, y, None, SETTINGS)
    (column,) = machine.columns.columns
    phi = column.phi(machine.columns.variables(X)[0])  # (I, n)
    z, beta, scale = machine.target(y), machine.fit.beta, machine.target.scale
    for n in range(len(y)):
        rest = np.arange(len(y)) != n
        H = beta * phi[:, rest] @ phi[:, rest].T + 0.3 * np.eye(7)
        mean = phi[:, n] @ np.linalg.solve(H, beta * phi[:, rest] @ z[rest])
        variance = phi[:, n] @ np.linalg.solve(H, phi[:, n])
        assert said.mean[n] == pytest.approx(machine.target.inverse(mean), rel=1e-10)
        assert said.epistemic_std[n] == pytest.approx(scale * np.sqrt(variance), rel=1e-9)
        assert said.aleatoric_std[n] == pytest.approx(1.0 / np.sqrt(30.0), rel=1e-12)


def test_rows_left_out_of_a_fit_with_tails_are_refits_without_them():
    """Weights of the other rows stay what they are, as precisions do."""
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (40, 1))
    y = 3.0 + np.sin(3 * X[:, 0]) + 0.2 * rng.standard_normal(40)
    y[[4, 9]] += (6.0, -3.0)
    model = TNKMRegressor(
        rank=1, n_basis=7, noise_precision=30.0, prior_precision=0.3, noise="student", tol=1e-12
    ).fit(X, y)
    (machine,) = model.machines_
    said = leave_one_out(Ensemble((machine,), np.ones(1)), X, y, None, SETTINGS)
    (column,) = machine.columns.columns
    phi = column.phi(machine.columns.variables(X)[0])
    z, beta, scale = machine.target(y), machine.fit.beta, machine.target.scale
    v = machine.fit.cores[0].ravel()
    tau = row_weights(beta * (z - v @ phi) ** 2, machine.fit.degrees)
    for n in range(len(y)):
        rest = np.arange(len(y)) != n
        H = beta * (tau * phi)[:, rest] @ phi[:, rest].T + 0.3 * np.eye(7)
        mean = phi[:, n] @ np.linalg.solve(H, beta * (tau * phi)[:, rest] @ z[rest])
        away = abs(said.mean[n] - machine.target.inverse(mean))
        assert away < 4e-3 * scale / np.sqrt(beta)


def test_equal_rows_leave_together_and_weights_are_repetitions():
    rng = np.random.default_rng(8)
    X = rng.uniform(-1, 1, (30, 1))
    y, weight = np.sin(2 * X[:, 0]) + 0.3 * rng.standard_normal(30), rng.integers(1, 4, 30)
    how = {"rank": 1, "n_basis": 5, "solver": "als", "noise_precision": 9.0, "prior_precision": 1.0}
    weighted = TNKMRegressor(**how).fit(X, y, sample_weight=weight)
    ensemble = Ensemble(weighted.machines_, np.ones(1))
    said = leave_one_out(ensemble, X, y, weight.astype(float), SETTINGS)
    again = np.repeat(np.arange(30), weight)
    repeated = leave_one_out(ensemble, X[again], y[again], None, SETTINGS)
    np.testing.assert_allclose(repeated.mean, said.mean[again], rtol=1e-12)
    np.testing.assert_allclose(repeated.std, said.std[again], rtol=1e-12)
    alone = leave_one_out(ensemble, X, y, None, SETTINGS)
    assert np.all(np.abs(alone.mean - y)[weight > 1] < np.abs(said.mean - y)[weight > 1])


def test_no_row_is_left_with_less_than_nothing():
    """As many weights as rows and next to no noise: a leverage of one to rounding."""
    rng = np.random.default_rng(6)
    X, y = rng.uniform(-1, 1, (6, 1)), rng.standard_normal(6)
    model = TNKMRegressor(rank=1, n_basis=8, noise_precision=1e12, prior_precision=1e-6).fit(X, y)
    ensemble = Ensemble(model.machines_, np.ones(1))
    said = leave_one_out(ensemble, X, y, None, SETTINGS)
    assert np.all(np.isfinite(said.mean))
    assert np.all(said.std > 0.0)


def test_errors_fall_as_a_power_of_the_rows():
    """Errors like 1 / sqrt(n): half of the rows double their square."""
    by_half = np.log(np.full(500, np.sqrt(2.0)))
    factor = learning_curve_factor(np.zeros(500), by_half, None, 0.9, SETTINGS)
    assert factor == pytest.approx(np.sqrt(0.9), rel=1e-12)
    least = learning_curve_factor(np.zeros(500), by_half, None, 0.1, SETTINGS)
    assert least == pytest.approx(np.sqrt(SETTINGS.least_extrapolated), rel=1e-12)


def test_errors_that_fall_by_chance_are_not_extrapolated():
    rng = np.random.default_rng(0)
    noise = rng.standard_normal(100)
    assert learning_curve_factor(np.zeros(100), noise - noise.mean(), None, 0.8, SETTINGS) == 1.0
    falls = 0.3 + noise - noise.mean()
    weight = rng.integers(1, 4, 100)
    sure, repeated = (
        learning_curve_factor(np.zeros(len(x)), x, w, 0.8, SETTINGS)
        for x, w in ((falls, weight.astype(float)), (np.repeat(falls, weight), None))
    )
    assert sure == pytest.approx(repeated, rel=1e-12)
    assert sure < 1.0
