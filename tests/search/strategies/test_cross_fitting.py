"""Rows have no say in what is said of them."""

import numpy as np
import pytest

from tensorlace import Mixture, Normal
from tensorlace.machines.noise import GAUSSIAN, Noise
from tensorlace.machines.noises.registry import NOISES
from tensorlace.predictive.checks import check
from tensorlace.search.noise_selection import Residuals
from tensorlace.search.settings import SearchSettings
from tensorlace.search.stacking import Unseen, greedy
from tensorlace.search.strategies.cross_fitting import cross_fitted, side_by_side

SETTINGS = SearchSettings()
N, K = 200, 40


def crossed(y, means, stds, noise=GAUSSIAN, kinds=tuple(NOISES)):
    """K models picked greedily, fold by fold."""
    unseen = Unseen(means, 0.3 * stds, stds)
    folds = np.arange(len(y)) % 5

    def weights_without(rows):
        picked = greedy(unseen[:, rows], y[rows], None, 10)
        return picked / picked.sum()

    by_fold = [unseen.mixture(weights_without(folds != fold)) for fold in range(5)]
    return cross_fitted(
        [Residuals(np.zeros((len(y), 1)), y, None, dist) for dist in by_fold],
        *(noise, np.zeros(len(y)), folds, None, kinds, SETTINGS),
    )


def models(seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((K, N)), np.ones((K, N)), rng.standard_normal(N)


def test_parts_stand_side_by_side():
    rng = np.random.default_rng(0)
    whole = Mixture(rng.standard_normal((3, 12)), 0.2, 0.5, np.array([0.2, 0.3, 0.5]))
    first = np.arange(12) % 3 == 0
    few = Normal(np.arange(8.0), 0.1, 0.2)
    joined = side_by_side([(first, whole[first]), (~first, few)])
    y = rng.standard_normal(12)
    np.testing.assert_allclose(joined.logpdf(y)[first], whole[first].logpdf(y[first]), rtol=1e-14)
    np.testing.assert_allclose(joined.logpdf(y)[~first], few.logpdf(y[~first]), rtol=1e-14)
    np.testing.assert_allclose(joined.interval(0.9)[1][~first], few.interval(0.9)[1], rtol=1e-13)


def test_targets_of_a_fold_change_nothing_of_what_is_said_of_it():
    means, stds, y = models()
    other = np.where(np.arange(N) % 5 == 2, y + 3.0, y)
    before, after = (crossed(target, means, stds) for target in (y, other))
    fold = np.arange(N) % 5 == 2
    np.testing.assert_array_equal(before.dist.mean[fold], after.dist.mean[fold])
    np.testing.assert_array_equal(before.dist.std[fold], after.dist.std[fold])
    assert np.any(before.dist.mean[~fold] != after.dist.mean[~fold])
    scaled = [c.scaled(SETTINGS).std for c in (before, after)]
    assert np.any(scaled[0][~fold] != scaled[1][~fold])


def test_models_that_know_nothing_are_not_flattered():
    """Picking ten of forty at random fits the targets; new ones are no better foretold."""
    gaps = []
    for seed in range(5):
        means, stds, y = models(seed)
        picked = greedy(Unseen(means, 0.3 * stds, stds), y, None, 10)
        naive = Unseen(means, 0.3 * stds, stds).mixture(picked / picked.sum())
        fair = crossed(y, means, stds).dist
        fresh = np.random.default_rng(100 + seed).standard_normal(N)
        assert naive.logpdf(y).mean() > naive.logpdf(fresh).mean()
        gaps.append([fair.logpdf(y).mean(), naive.logpdf(y).mean(), naive.logpdf(fresh).mean()])
    fair, naive, fresh = np.mean(gaps, axis=0)
    assert abs(fair - fresh) < abs(naive - fresh)


@pytest.mark.parametrize("kinds", [tuple(NOISES), ("gaussian",)])
def test_widths_make_up_for_a_wrong_noise(kinds):
    means, stds, y = models(3)
    found = crossed(y, 0.0 * means, 0.4 * stds, Noise(), kinds)
    noise = found.noise(Noise(), 1.0, SETTINGS)
    assert np.isinf(noise.tails) or kinds != ("gaussian",)
    assert check(y, found.scaled(SETTINGS)).coverage[3] == pytest.approx(0.95, abs=0.03)
