"""Noise that fits: against scipy's t, quadrature and simulated noise."""

import numpy as np
import pytest
from scipy import integrate, stats

from tensorlace import MisspecificationWarning, TNKMRegressor
from tensorlace.machines.noise import GAUSSIAN, KINDS, Noise, scales, with_noise
from tensorlace.predictive.distributions import Mixture, Normal
from tensorlace.search.noise_selection import Residuals, choose_noise, choose_tails


@pytest.mark.parametrize("degrees", [2.5, 3.0, 4.0, 6.0, 10.0])
def test_normals_make_up_students_t(degrees):
    weights, stds = scales(degrees)
    assert weights.sum() == pytest.approx(1.0, abs=1e-15)
    assert weights @ stds**2 == pytest.approx(degrees / (degrees - 2.0), rel=1e-12)
    z = np.linspace(-8, 8, 4001)  # of 8 standard deviations
    density = (weights * stats.norm.pdf(z[:, None], 0.0, stds)).sum(axis=1)
    exact = stats.t.pdf(z, degrees)
    assert np.max(np.abs(np.log(density / exact))) < 0.08
    divergence = integrate.trapezoid(exact * np.log(exact / density), z)
    assert abs(divergence) < 6e-4


def test_no_tail_is_the_normal():
    assert [x.tolist() for x in scales(np.inf)] == [[1.0], [1.0]]


def mixture(n=30, seed=0):
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(3), size=n).T
    return Mixture(*(rng.gamma(2.0, size=(3, n)) for _ in range(3)), weights)


def test_with_noise_changes_the_aleatoric_part_alone():
    d, log_variance = mixture(), np.linspace(-1, 1, 30)
    changed = with_noise(d, Noise(0.5, strength=1.0), log_variance)
    np.testing.assert_allclose(changed.mean, d.mean, rtol=1e-14)
    np.testing.assert_allclose(changed.epistemic_std, d.epistemic_std, rtol=1e-13)
    by = 0.5 * np.exp(0.5 * log_variance)
    np.testing.assert_allclose(changed.aleatoric_std, by * d.aleatoric_std, rtol=1e-13)
    shrunk = with_noise(d, Noise(0.5, shrink=0.8), np.zeros(30))
    np.testing.assert_allclose(shrunk.aleatoric_std, 0.4 * d.aleatoric_std, rtol=1e-13)
    np.testing.assert_allclose(shrunk.epistemic_stds, 0.8 * d.epistemic_stds, rtol=1e-13)
    heavy = with_noise(d, Noise(degrees=5.0), np.zeros(30))
    np.testing.assert_allclose(heavy.aleatoric_std, d.aleatoric_std * np.sqrt(5 / 3), rtol=1e-12)


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


def network(r):
    """Fit as the search does."""

    def fit(target, rows):
        model = TNKMRegressor(
            rank=1, n_basis=4, additive=True, tol=1e-3, max_sweeps=40, random_state=0
        )
        return model.fit(r.X[rows], target[rows]).machines_[0]

    return fit


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_the_noise_there_is_is_chosen(kind):
    r = residuals(kind)
    folds = np.arange(len(r.y)) % 3
    noise, results = choose_noise(r, folds, network(r))
    assert noise.kind == kind
    assert [row["noise"] for row in results if row["chosen"]] == [kind]
    assert len(results) == 4
    if "varying" in kind:
        h = noise.log_variance(r.X)
        assert np.corrcoef(h, 2 * r.X[:, 0])[0, 1] > 0.9
        assert abs(np.mean(h)) < 0.2


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("before", ["gaussian", "varying_student"])
@pytest.mark.parametrize("now", ["gaussian", "student"])
def test_tails_are_chosen_again_and_the_variation_stays(before, now):
    r = residuals(before)
    noise, _ = choose_noise(r, np.arange(len(r.y)) % 3, network(r))
    h, rng = noise.log_variance(r.X), np.random.default_rng(9)
    z = rng.standard_t(3, len(h)) if now == "student" else rng.standard_normal(len(h))
    y = 0.5 * np.exp(0.5 * h) * z
    other = Residuals(r.X, y, None, Normal(np.zeros(len(y)), 0.01, np.ones(len(y))))
    again, results = choose_tails(other, noise)
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
    assert choose_tails(r, near)[0] is near
    assert (choose_tails(r, far)[0].factor, choose_tails(r, far)[0].degrees) == (0.5, 2.5)


def test_tails_that_are_not_allowed_are_not_chosen():
    noise, results = choose_tails(residuals("student"), GAUSSIAN, ("gaussian",))
    assert noise.kind == "gaussian"
    assert len(results) == 1


def test_kinds_that_are_not_allowed_are_not_tried():
    r = residuals("student")
    noise, results = choose_noise(r, np.arange(len(r.y)) % 3, None, ("gaussian",))
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
