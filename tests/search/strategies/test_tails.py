"""Fits of a search with tails: where rows ask for them, and not elsewhere."""

from dataclasses import replace

import numpy as np
import pytest

from tensorlace.machines.distrusted import Judge, distrusted_of
from tensorlace.machines.noise import Noise
from tensorlace.predictive.distributions import Normal
from tensorlace.search.search import search
from tensorlace.search.settings import RowSettings, SearchSettings
from tensorlace.search.strategies import strategy
from tensorlace.search.strategies.tails import degrees_of, tails_allowed, trusted, with_tails
from tensorlace.sources import ArraySource
from tensorlace.sources.sampling import sample_of
from tests.helpers.searching import auto, table, task_for

quiet = pytest.mark.filterwarnings("ignore::tensorlace.MisspecificationWarning")


def error(model):
    """RMSE on clean rows that are new."""
    X, y = table(2000, seed=9)
    return np.sqrt(np.mean((model.predict(X) - y) ** 2))


@pytest.fixture(scope="module")
def clean():
    return auto(n_jobs=1).fit(*table(300))


@pytest.mark.parametrize("far", [100.0, 1e6])
def test_one_wild_row_hardly_moves_the_mixture(far, clean):
    X, y = table(300)
    y[7] += far * y.std()
    model = auto(n_jobs=1).fit(X, y)
    assert error(model) < 1.05 * error(clean)
    assert model.distrusted_["row"].tolist() == [7]
    assert all(np.isinf(m.fit.degrees) for m in model.machines_)  # nothing else is wrong
    # nor its widths: those of others hold
    new, unseen = table(1000, seed=5)
    lower, upper = model.predict_interval(new, coverage=0.95)
    assert 0.92 < np.mean((unseen >= lower) & (unseen <= upper)) < 0.99
    low, high = clean.predict_interval(new, coverage=0.95)
    assert np.mean(upper - lower) < 1.3 * np.mean(high - low)


def test_rows_of_heavy_tails_are_no_mistakes():
    """Where the noise itself is Student's t, all fits have tails, and hardly a row is left out."""
    X, _ = table(400)
    y = X[:, 0] + 0.1 * np.random.default_rng(3).standard_t(1.5, 400)
    model = auto(n_jobs=1).fit(X, y)
    assert all(np.isfinite(m.fit.degrees) for m in model.machines_)
    assert len(model.distrusted_) < 0.05 * len(y)


def test_clean_tables_get_the_same_bits_as_without(clean, monkeypatch):
    X, y = table(300)
    assert len(clean.distrusted_) == 0
    monkeypatch.setattr(strategy, "tails_help", lambda *_: None)
    monkeypatch.setattr(strategy, "tails_allowed", lambda *_: False)
    without = auto(n_jobs=1).fit(X, y)
    a, b = clean.predict(X, return_std=True), without.predict(X, return_std=True)
    assert all(map(np.array_equal, a, b))


@quiet
def test_normal_noise_is_respected():
    X, y = table(150)
    y[7] += 100.0
    model = auto(noise="gaussian", n_jobs=1).fit(X, y)
    assert all(np.isinf(m.fit.degrees) for m in model.machines_)
    assert model.noise_.kind == "gaussian"


def test_a_wild_row_that_no_candidate_saw_is_found_in_the_last_fits():
    X, y = table(2000)
    rows = RowSettings(sample_size=1200, few=600)
    task = task_for(3, settings=SearchSettings(rows=rows))
    sampled = set(sample_of(ArraySource(X, y), 1200).y)
    wild = next(n for n in range(2000) if y[n] not in sampled)
    far = y.copy()
    far[wild] += 1e4
    clean, found = (search(task, ArraySource(X, target)).ensemble for target in (y, far))
    assert all(np.isinf(m.fit.degrees) for m in clean.machines)
    assert all(np.isfinite(m.fit.degrees) for m in found.machines)
    assert distrusted_of(Judge(found), X, far).row.tolist() == [wild]
    new, unseen = table(2000, seed=9)
    errors = [np.sqrt(np.mean((e.mean(new) - unseen) ** 2)) for e in (clean, found)]
    assert errors[1] < 1.05 * errors[0]
    # the noise that unseen rows have chosen stays
    widths = [np.mean(e.dist(new).aleatoric_std) for e in (clean, found)]
    assert widths[1] == pytest.approx(widths[0], rel=0.1)


def test_many_rows():
    assert SearchSettings().rows.few < 3000
    X, y = table(3000)
    far = y.copy()
    far[7] += 1e6
    first, second = (auto(n_jobs=1).fit(X, target) for target in (y, far))
    assert error(second) < 1.05 * error(first)
    assert second.distrusted_["row"].tolist() == [7]
    assert len(first.distrusted_) == 0


def test_a_task_with_tails():
    task = task_for(3)
    heavy = with_tails(task)
    assert tails_allowed(task)
    assert not tails_allowed(heavy)
    assert heavy.config == replace(task.config, tails=True)
    assert np.all(np.isfinite(heavy.settings.noise.coarse_degrees))
    assert not tails_allowed(replace(task, noise=("gaussian", "varying")))


def test_wild_rows_have_no_say():
    dist = Normal(np.zeros(3), 0.0, np.ones(3))
    y = np.array([0.0, 3.0, 100.0])
    weight = trusted(dist, y, None, 4.0)
    np.testing.assert_allclose(weight, [1.0, 1.0, 5.0 / 10_004.0], rtol=1e-12)
    np.testing.assert_allclose(trusted(dist, y, 2.0 * np.ones(3), 4.0), 2.0 * weight, rtol=1e-12)
    assert trusted(dist, y, None, np.inf) is None
    assert degrees_of([4.0, 9.0], np.array([0.5, 0.5])) == pytest.approx(6.0)
    assert degrees_of([4.0, np.inf], np.array([0.5, 0.5])) == np.inf


def test_noise_times():
    noise = Noise(factor=0.5, degrees=4.0).times(3.0)
    assert (noise.factor, noise.degrees) == (1.5, 4.0)
