"""How wide intervals should be, and when a fit goes on."""

import numpy as np
import pytest

from tensorlace import Normal, TNKMRegressor, metrics
from tensorlace.machines.ensemble import Ensemble
from tensorlace.machines.noise import Noise, with_noise
from tensorlace.search import schedule as rounds
from tensorlace.search import search
from tensorlace.search.interval_width import covering, left_out


def forecast(n, width, seed=0):
    """Targets with standard deviations between 0.5 and 2, and forecasts ``width`` times as wide."""
    rng = np.random.default_rng(seed)
    mean, std = rng.standard_normal(n), rng.uniform(0.5, 2.0, n)
    y = mean + std * rng.standard_normal(n)
    return y, Normal(mean, 0.3 * width * std, np.sqrt(1 - 0.09) * width * std)


@pytest.mark.parametrize("n", [60, 500, 4000])
def test_right_widths_are_left_alone(n):
    y, dist = forecast(n, 1.0)
    assert covering(dist, y, None) == 1.0


@pytest.mark.parametrize("width", [0.7, 1.5])
def test_wrong_widths_are_mended(width):
    y, dist = forecast(4000, width)
    scale = covering(dist, y, None)
    assert scale == pytest.approx(1.0 / width, abs=0.06)
    mended = with_noise(dist, Noise(shrink=scale), np.zeros(len(y)))
    assert metrics.calibration_error(y, mended) < 0.03 < metrics.calibration_error(y, dist)


def test_a_few_rows_prove_nothing():
    y, dist = forecast(20, 1.3)
    assert covering(dist, y, None) == 1.0


def test_coverage_does_not_cost_the_log_score():
    """A tenth of the errors is huge: right coverage of the rest would ruin the score."""
    y, dist = forecast(3000, 1.0)
    y[::10] = dist.mean[::10] + 8.0 * dist.std[::10]
    wide = with_noise(dist, Noise(shrink=2.5), np.zeros(len(y)))
    best = max(
        np.mean(with_noise(wide, Noise(shrink=0.05 * k), np.zeros(len(y))).logpdf(y))
        for k in range(10, 31)
    )
    mended = with_noise(wide, Noise(shrink=covering(wide, y, None)), np.zeros(len(y)))
    assert np.mean(mended.logpdf(y)) >= best - 0.005


def test_weights_are_repetitions():
    y, dist = forecast(900, 1.25, seed=3)
    weight = np.random.default_rng(1).integers(1, 4, len(y))
    again = np.repeat(np.arange(len(y)), weight)
    assert covering(dist, y, weight.astype(float)) == covering(dist[again], y[again], None) < 1.0


@pytest.fixture
def searched(monkeypatch):
    """Fit 3,000 rows with a given noise; what the search tried, and the model."""

    def fit(noise):
        seen = {}

        def spy(run):
            seen["tried"] = rounds.held_out(run)
            seen["run"] = run
            return seen["tried"]

        monkeypatch.setattr(search, "held_out", spy)
        rng = np.random.default_rng(0)
        X = rng.uniform(-1, 1, (3000, 3))
        y = np.exp(X[:, 0] * X[:, 1]) * (1 + X[:, 2]) + noise * rng.standard_normal(3000)
        seen["model"] = TNKMRegressor(time_budget=4.0, random_state=0).fit(X, y)
        return seen

    return fit


def test_fits_go_on_where_there_is_no_noise(searched):
    seen = searched(0.0)
    tried, run = seen["tried"], seen["run"]
    assert max(t.longer for t in tried) >= 1
    assert {id(t) for t in tried} <= {id(t) for t in run.tried}  # the table shows the longer ones
    scores = [t.score for t in tried if t.longer]
    assert max(scores) == max(t.score for t in tried)


def test_fits_end_where_there_is_noise(searched):
    seen = searched(1.0)
    assert max(t.longer for t in seen["tried"]) == 0
    assert seen["model"].noise_.shrink == pytest.approx(1.0, abs=0.05)


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
    said = left_out(ensemble, X, y)
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


def test_equal_rows_leave_together_and_weights_are_repetitions():
    rng = np.random.default_rng(8)
    X = rng.uniform(-1, 1, (30, 1))
    y, weight = np.sin(2 * X[:, 0]) + 0.3 * rng.standard_normal(30), rng.integers(1, 4, 30)
    how = {"rank": 1, "n_basis": 5, "solver": "als", "noise_precision": 9.0, "prior_precision": 1.0}
    weighted = TNKMRegressor(**how).fit(X, y, sample_weight=weight)
    ensemble = Ensemble(weighted.machines_, np.ones(1))
    said = left_out(ensemble, X, y, weight.astype(float))
    again = np.repeat(np.arange(30), weight)
    repeated = left_out(ensemble, X[again], y[again])
    np.testing.assert_allclose(repeated.mean, said.mean[again], rtol=1e-12)
    np.testing.assert_allclose(repeated.std, said.std[again], rtol=1e-12)
    alone = left_out(ensemble, X, y)
    assert np.all(np.abs(alone.mean - y)[weight > 1] < np.abs(said.mean - y)[weight > 1])


def test_no_row_is_left_with_less_than_nothing():
    """As many weights as rows and next to no noise: a leverage of one to rounding."""
    rng = np.random.default_rng(6)
    X, y = rng.uniform(-1, 1, (6, 1)), rng.standard_normal(6)
    model = TNKMRegressor(rank=1, n_basis=8, noise_precision=1e12, prior_precision=1e-6).fit(X, y)
    said = left_out(Ensemble(model.machines_, np.ones(1)), X, y)
    assert np.all(np.isfinite(said.mean))
    assert np.all(said.std > 0.0)
