"""How wide intervals should be, and when a fit goes on."""

from types import SimpleNamespace

import numpy as np
import pytest

from tensorlace import Normal, TNKMRegressor, metrics, rounds, search
from tensorlace.noise import Noise, with_noise
from tensorlace.sources import Chunk
from tensorlace.spread import covering, learnt


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


class Shifted:
    """A machine that is wrong by ``error`` everywhere where the target is 0."""

    def __init__(self, error):
        self.error = error

    def mean(self, X):
        return np.full(len(X), self.error)


@pytest.mark.parametrize(
    ("seen", "final", "n_rows", "factor"),
    [
        (1.0, 1.0, 800, 1.0),  # nothing learnt, no more rows, no gap
        (0.5, 0.5, 800, 1.0),  # the gap between seen (0.5) and unseen (1) stays with the rows
        (0.5, 0.5, 1600, 0.75),  # and is half as large with twice as many
        (1.0, 0.6, 800, 0.6),  # all that is learnt shows in the rows seen
        (1.0, 0.01, 800, 0.2),  # but no more than fivefold is believed
        (1.0, 1.5, 800, 1.0),  # nor that errors grew
    ],
)
def test_errors_of_rows_seen_say_what_was_learnt(seen, final, n_rows, factor):
    held = np.arange(1000) >= 800
    sample = Chunk(np.zeros((1000, 1)), np.zeros(1000), None, 0)
    trials = SimpleNamespace(sample=sample, parts=[(~held, held)], targets=(np.zeros(200), None))
    members = [SimpleNamespace(means=np.ones(200), seen=seen)] * 2
    ensemble = SimpleNamespace(machines=(Shifted(final), Shifted(-final)), weights=[0.3, 0.7])
    assert learnt(ensemble, trials, members, n_rows) == pytest.approx(factor, rel=1e-12)
