"""The noise that residuals speak for: simulated noise of every kind is found."""

from dataclasses import replace

import numpy as np
import pytest

from tensorlace import MisspecificationWarning, TNKMRegressor
from tensorlace.machines.noise import GAUSSIAN, Noise, with_noise
from tensorlace.machines.noises.registry import NOISES
from tensorlace.predictive.distributions import Mixture, Normal
from tensorlace.search.noise_selection import (
    LogVariance,
    Residuals,
    choose_again,
    choose_noise,
    cross_scores,
    fit_log_variance,
)
from tensorlace.search.settings import FitSettings, NoiseSettings
from tests.helpers.searching import config_of

SETTINGS = NoiseSettings()


def mixture(n=30, seed=0):
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(3), size=n).T
    return Mixture(*(rng.gamma(2.0, size=(3, n)) for _ in range(3)), weights)


def test_scores_are_those_of_the_changed_distribution():
    d, rng = mixture(), np.random.default_rng(1)
    y, h = rng.normal(size=30), rng.normal(size=30)
    residuals = Residuals(np.zeros((30, 1)), y, None, d)
    for noise in (GAUSSIAN, Noise(0.7, 4.0), Noise(1.2, 3.0, 0.5)):
        expected = with_noise(d, noise, h).logpdf(y)
        np.testing.assert_allclose(residuals.log_scores(noise, h), expected, rtol=1e-11)


def residuals(kind, n=1500, seed=0):
    """Targets around a known mean with noise of a kind."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    std = np.exp(1.0 * X[:, 0]) if "varying" in kind else np.ones(n)
    z = rng.standard_t(3, n) if "student" in kind else rng.standard_normal(n)
    y = std * z
    dist = Normal(np.zeros(n), 0.01, np.full(n, y.std()))
    return Residuals(X, y, None, dist)


def variation(r, **changes):
    """Fit as the search does."""
    return fit_log_variance(
        r,
        np.arange(len(r.y)) % 3,
        config_of(r.X.shape[1]),
        ("a", "b"),
        missing=False,
        seed=0,
        settings=replace(SETTINGS, **changes),
        fits=FitSettings(),
    )


@pytest.mark.parametrize("kind", NOISES)
def test_the_noise_there_is_is_chosen(kind):
    r = residuals(kind)
    noise, results = choose_noise(r, variation(r), tuple(NOISES), SETTINGS)
    assert noise.kind == kind
    assert [row["noise"] for row in results if row["chosen"]] == [kind]
    assert len(results) == 4
    if "varying" in kind:
        h = noise.log_variance(r.X)
        assert np.corrcoef(h, 2 * r.X[:, 0])[0, 1] > 0.9
        assert abs(np.mean(h)) < 0.2


@pytest.mark.parametrize("before", ["gaussian", "varying_student"])
@pytest.mark.parametrize("now", ["gaussian", "student"])
def test_tails_are_chosen_again_and_the_variation_stays(before, now):
    r = residuals(before)
    noise, _ = choose_noise(r, variation(r), tuple(NOISES), SETTINGS)
    h, rng = noise.log_variance(r.X), np.random.default_rng(9)
    z = rng.standard_t(3, len(h)) if now == "student" else rng.standard_normal(len(h))
    y = 0.5 * np.exp(0.5 * h) * z
    other = Residuals(r.X, y, None, Normal(np.zeros(len(y)), 0.01, np.ones(len(y))))
    again, results = choose_again(other, noise, tuple(NOISES), SETTINGS)
    assert np.isfinite(again.degrees) == (now == "student")
    assert again.factor == pytest.approx(0.5, abs=0.1)
    assert (again.strength, again.machines) == (noise.strength, noise.machines)
    assert [row["noise"] for row in results if row["chosen"]] == [again.kind]
    expected = with_noise(other.dist, again, h).logpdf(y).mean()
    assert max(row["held_out_log_score"] for row in results if row["chosen"]) == pytest.approx(
        expected, rel=1e-11
    )


def test_a_noise_that_is_hardly_worse_stays():
    r = residuals("student")
    best, near, far = Noise(0.5, 2.5), Noise(0.5, 3.0), Noise(0.5, 6.0)
    scores = [r.log_scores(noise, 0.0).mean() for noise in (best, near, far)]
    assert scores[0] - 0.003 < scores[1] < scores[0]
    assert choose_again(r, near, tuple(NOISES), SETTINGS)[0] is near
    again, _ = choose_again(r, far, tuple(NOISES), SETTINGS)
    assert (again.factor, again.degrees) == (0.5, 2.5)


def test_tails_that_are_not_allowed_are_not_chosen():
    noise, results = choose_again(residuals("student"), GAUSSIAN, ("gaussian",), SETTINGS)
    assert noise.kind == "gaussian"
    assert len(results) == 1


def test_kinds_that_are_not_allowed_are_not_tried():
    r = residuals("student")
    noise, results = choose_noise(r, None, ("gaussian",), SETTINGS)
    assert noise.kind == "gaussian"
    assert len(results) == 1


def test_a_varying_noise_end_to_end():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (900, 2))
    y = X[:, 1] + np.exp(1.5 * X[:, 0]) * 0.2 * rng.standard_normal(900)
    model = TNKMRegressor(time_budget=2, random_state=0).fit(X, y)
    assert model.noise_.kind.startswith("varying")
    left, right = (model.predict_dist([[x, 0.0]]).aleatoric_std[0] for x in (-0.9, 0.9))
    assert 4.0 < right / left < 40.0  # exp(2.7) = 15
    draws = model.sample_y([[-0.9, 0.0], [0.9, 0.0]], 4000, random_state=0)
    dist = model.predict_dist([[-0.9, 0.0], [0.9, 0.0]])
    np.testing.assert_allclose(draws.std(axis=1), dist.std, rtol=0.1)
    # members of different widths would make up for some of it
    fixed = TNKMRegressor(time_budget=1, noise="gaussian", n_members=1, random_state=0)
    with pytest.warns(MisspecificationWarning, match="shape of the distributions"):
        fixed.fit(X, y)
    assert fixed.noise_.kind == "gaussian"


def test_rows_too_few_or_all_alike_have_no_variation():
    r = residuals("varying", 60)
    assert variation(r) is None
    assert isinstance(variation(r, varying_from=60), LogVariance)
    one_fold = np.zeros(60, dtype=int)
    how = {"missing": False, "seed": 0, "settings": replace(SETTINGS, varying_from=60)}
    assert (
        fit_log_variance(r, one_fold, config_of(2), ("a", "b"), **how, fits=FitSettings()) is None
    )
    # only a variation is allowed, and cannot be fitted: the factor of a constant noise remains
    noise, results = choose_noise(r, None, ("varying",), SETTINGS)
    assert noise.kind == "gaussian"
    assert [row["noise"] for row in results] == ["gaussian"]


def test_what_is_fitted_has_not_seen_the_row():
    """Predictions by folds are those of fits without the fold, one by one."""
    r = residuals("varying", 120)
    found = variation(r)
    assert found.level == pytest.approx(found.machine.mean(r.X).mean(), rel=1e-12)
    changed = replace(r, y=np.where(np.arange(120) % 3 == 0, 50.0 * r.y, r.y))
    again = variation(changed)
    np.testing.assert_array_equal(again.held_out[::3], found.held_out[::3])
    assert not np.any(again.held_out[1::3] == found.held_out[1::3])


def test_coarse_scores_are_those_of_the_best_constant_noise():
    r = residuals("student", 400)
    seen, unseen = r[np.arange(400) < 300], r[np.arange(400) >= 300]
    grid = [Noise(f, v) for f in SETTINGS.coarse_factors for v in SETTINGS.coarse_degrees]
    best = max(grid, key=lambda noise: seen.log_scores(noise, 0.0).mean())
    expected = with_noise(unseen.dist, best, np.zeros(100)).logpdf(unseen.y)
    np.testing.assert_allclose(cross_scores(seen, unseen, SETTINGS), expected, rtol=1e-11)
