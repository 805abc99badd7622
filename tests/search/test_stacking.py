"""Picks and weights of members, against brute force."""

import numpy as np
import pytest
from scipy import stats

from tensorlace.machines.ensemble import SHARPNESS, blend
from tensorlace.search.stacking import Unseen, greedy


def unseen(K=6, n=40, seed=0):
    rng = np.random.default_rng(seed)
    return Unseen(rng.normal(size=(K, n)), rng.gamma(2.0, size=(K, n)), rng.gamma(2.0, size=(K, n)))


def log_score(u, counts, y, weight):
    """Of the blend, from densities and weights written out row by row."""
    total = 0.0
    for row in range(len(y)):
        s = np.hypot(u.epistemic[:, row], u.aleatoric[:, row])
        w = counts * s**-SHARPNESS
        w = w / w.sum()
        total += weight[row] * np.log(w @ stats.norm.pdf(y[row], u.means[:, row], s))
    return total


def test_density_and_mixture():
    u, y = unseen(), np.random.default_rng(1).normal(size=40)
    expected = stats.norm.logpdf(y, u.means, np.hypot(u.epistemic, u.aleatoric))
    np.testing.assert_allclose(u.log_density(y), expected, rtol=1e-12)
    counts = np.array([1.0, 2.0, 0.0, 0.0, 3.0, 1.0])
    mixture = u.mixture(counts / counts.sum())
    assert mixture.logpdf(y).sum() == pytest.approx(log_score(u, counts, y, np.ones(40)), rel=1e-12)


def test_greedy_picks_what_helps_the_mixture():
    u, y = unseen(), np.random.default_rng(1).normal(size=40)
    counts = np.zeros(6)
    for _ in range(5):  # by brute force: each pick is the best one given those before
        trials = [log_score(u, counts + np.eye(6)[k], y, np.ones(40)) for k in range(6)]
        counts[int(np.argmax(trials))] += 1
    np.testing.assert_array_equal(greedy(u, y, None, 5), counts)


def test_weights_of_held_out_rows_are_repetitions():
    u, rng = unseen(), np.random.default_rng(1)
    y, times = rng.normal(size=40), rng.integers(1, 4, 40)
    again = Unseen(*(a.repeat(times, axis=1) for a in (u.means, u.epistemic, u.aleatoric)))
    once = greedy(u, y, times.astype(float), 4)
    np.testing.assert_array_equal(once, greedy(again, y.repeat(times), None, 4))


def test_blend_sums_to_one_and_listens_to_the_sure():
    log_std = np.random.default_rng(0).normal(size=(4, 30))
    w = blend(np.array([0.1, 0.2, 0.0, 0.7]), log_std)
    np.testing.assert_allclose(w.sum(axis=0), 1.0, rtol=1e-14)
    assert not w[2].any()
    np.testing.assert_allclose(w[0] / w[1], 0.5 * np.exp(SHARPNESS * (log_std[1] - log_std[0])))
    assert np.all(np.isfinite(blend(np.ones(2) / 2, np.array([[-700.0], [700.0]]))))


def test_models_with_tails_are_judged_by_students_t():
    plain, y = unseen(K=3), np.random.default_rng(1).normal(size=40)
    nu = np.array([3.0, np.inf, 5.0])
    u = Unseen(plain.means, plain.epistemic, plain.aleatoric, nu)
    s = np.hypot(u.epistemic, u.aleatoric)
    expected = [
        stats.t.logpdf(y, 3.0, u.means[0], s[0]),
        stats.norm.logpdf(y, u.means[1], s[1]),
        stats.t.logpdf(y, 5.0, u.means[2], s[2]),
    ]
    np.testing.assert_allclose(u.log_density(y), expected, rtol=1e-12)
    np.testing.assert_allclose(u[[2, 0]].log_density(y), np.array(expected)[[2, 0]], rtol=1e-12)
    assert u[[2, 0]].degrees.tolist() == [5.0, 3.0]
    rows = u[:, np.arange(40) < 7]
    np.testing.assert_allclose(rows.log_density(y[:7]), np.array(expected)[:, :7], rtol=1e-12)
