"""Weights of rows in fits and calibrations: repetitions, or relative to each other."""

import warnings

import numpy as np
import pytest

from tensorlace import InputError, TNKMRegressor
from tensorlace.errors import RowWeightWarning, SourceError
from tensorlace.sources import ArraySource, BlockSource

RNG = np.random.default_rng(3)
N = 120
X = RNG.uniform(-1.0, 1.0, size=(N, 2))
Y = np.sin(3.0 * X[:, 0]) * X[:, 1] + 0.1 * RNG.standard_normal(N)
NEW = RNG.uniform(-1.0, 1.0, size=(400, 2))
NEW_Y = np.sin(3.0 * NEW[:, 0]) * NEW[:, 1] + 0.1 * RNG.standard_normal(400)
SHARES = RNG.uniform(0.5, 1.5, size=N)
SHARES *= N / SHARES.sum()
WHOLE = RNG.integers(0, 4, size=N).astype(float)
SCALES = [1e-3, 1e-6, 1.0 / N, 1e4]

DEFAULT = {"rank": "auto", "time_budget": 0.3, "n_jobs": 1}
FIXED = {"rank": 2, "n_basis": 4}


def model(**settings):
    return TNKMRegressor(**{"random_state": 0, **settings})


def said(fitted):
    d = fitted.predict_dist(NEW)
    return np.stack([d.mean, d.std])


def quietly(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RowWeightWarning)
        return call()


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("settings", [FIXED, DEFAULT], ids=["fixed", "auto"])
def test_normalised_weights_are_weights_of_mean_one(settings, scale):
    expected = said(model(**settings).fit(X, Y, sample_weight=SHARES))
    with pytest.warns(RowWeightWarning, match="weights='repetitions' keeps it") as caught:
        fitted = model(**settings).fit(X, Y, sample_weight=scale * SHARES)
    assert [w.filename for w in caught if w.category is RowWeightWarning] == [__file__]
    np.testing.assert_allclose(said(fitted), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("settings", [FIXED, DEFAULT], ids=["fixed", "auto"])
def test_bands_hold_what_they_hold_without_weights(settings):
    def held(weight):
        fitted = quietly(lambda: model(**settings).fit(X, Y, sample_weight=weight))
        low, high = fitted.predict_interval(NEW, 0.95)
        return np.mean((low <= NEW_Y) & (high >= NEW_Y))

    assert 0.88 < held(None) < 0.99
    assert abs(held(np.full(N, 1e-3)) - held(None)) < 0.005
    assert abs(held(1e-6 * SHARES) - held(None)) < 0.03


def test_whole_numbers_are_repetitions_to_the_bit():
    repeated = model(**FIXED).fit(X, Y, sample_weight=1000.0 * WHOLE)
    kept = model(**FIXED, weights="repetitions").fit(X, Y, sample_weight=1000.0 * WHOLE)
    np.testing.assert_array_equal(said(repeated), said(kept))
    relative = model(**FIXED, weights="relative").fit(X, Y, sample_weight=1000.0 * WHOLE)
    assert np.min(said(relative)[1] / said(repeated)[1]) > 1.0


@pytest.mark.filterwarnings("error::tensorlace.errors.RowWeightWarning")
def test_a_meaning_that_is_given_is_not_told():
    expected = said(model(**FIXED).fit(X, Y, sample_weight=SHARES))
    relative = model(**FIXED, weights="relative").fit(X, Y, sample_weight=1e-3 * SHARES)
    np.testing.assert_allclose(said(relative), expected, rtol=1e-9, atol=1e-9)
    many = model(**FIXED, weights="repetitions").fit(X, Y, sample_weight=10.5 * SHARES)
    assert np.median(said(many)[1]) < 1.02 * np.median(expected[1])
    assert many.machines_[0].fit.determined > model(**FIXED).fit(X, Y).machines_[0].fit.determined


def test_blocks_and_arrays_see_the_same_weights():
    w = 1e-3 * SHARES

    def blocks():
        for start in range(0, N, 50):
            cut = slice(start, start + 50)
            yield X[cut], Y[cut], w[cut]

    sources = [ArraySource(X, Y, w), BlockSource(blocks)]
    fits = [quietly(lambda s=s: model(**FIXED).fit_rows(s)) for s in sources]
    arrays = quietly(lambda: model(**FIXED).fit(X, Y, sample_weight=w))
    for fitted in fits:
        np.testing.assert_array_equal(said(fitted), said(arrays))


def test_calibration_with_normalised_weights():
    fitted = model(**FIXED).fit(X, Y)
    w = RNG.uniform(0.5, 1.5, size=len(NEW))
    w *= len(NEW) / w.sum()
    once = fitted.calibrate(NEW, NEW_Y, w).calibration_
    with pytest.warns(RowWeightWarning, match="sums to 0.4 over 400 rows") as caught:
        again = fitted.calibrate(NEW, NEW_Y, 1e-3 * w).calibration_
    assert caught[0].filename == __file__
    assert again.n_rows == pytest.approx(400.0, rel=1e-12)
    np.testing.assert_allclose(again.upto, once.upto, rtol=1e-12)
    fitted.calibrate(None)
    with pytest.warns(RowWeightWarning):
        found = fitted.check_calibration(NEW, NEW_Y, 1e-3 * w)
    assert found.n_rows == pytest.approx(400.0, rel=1e-12)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.zeros(N), "sample_weight is zero in all 120 rows"),
        (np.where(np.arange(N) == 4, np.nan, 1.0), "sample_weight is nan in row 4"),
        (np.where(np.arange(N) == 4, -1.0, 1.0), "sample_weight is -1 in row 4"),
    ],
)
def test_impossible_weights_are_refused_in_one_line(weight, message):
    fitted = model(**FIXED).fit(X, Y)
    calls = [
        lambda: model(**FIXED).fit(X, Y, sample_weight=weight),
        lambda: fitted.calibrate(X, Y, weight),
        lambda: fitted.check_calibration(X, Y, weight),
    ]
    for call in calls:
        with pytest.raises(InputError, match=message) as caught:
            call()
        assert "\n" not in str(caught.value)


def test_a_source_without_any_weight():
    with pytest.raises(InputError, match="sample_weight sums to 0"):
        model(**FIXED).fit_rows(ArraySource(X, Y, np.zeros(N)))
    with pytest.raises(SourceError, match="negative in row 0"):
        model(**FIXED).fit_rows(ArraySource(X, Y, -SHARES))


def test_too_few_repetitions_are_refused():
    with pytest.raises(InputError, match="fewer than 2: give weights='relative'"):
        model(**FIXED, weights="repetitions").fit(X, Y, sample_weight=np.full(N, 1e-6))


def test_an_unknown_meaning():
    with pytest.raises(ValueError, match="'weights' parameter of TNKMRegressor"):
        model(weights="inverse").fit(X, Y)
