"""Effects in pictures: one axis, ticks where rows are, the most frequent categories."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest

from tensorlace.displays import EffectsDisplay
from tensorlace.displays.effects import MOST_CATEGORIES, axis_limits, most_frequent
from tensorlace.explain.effects import Effects
from tensorlace.kinds import Categorical, Numeric

K = 40


def curve(mean, width, grid=None, kind=None, counts=None, name="x"):
    n = len(mean)
    return Effects(
        column=name,
        kind=kind or Numeric(),
        grid=np.arange(n) / n if grid is None else grid,
        mean=mean,
        std=width / 1.64,
        lower=mean - width,
        upper=mean + width,
        coverage=0.9,
        method="accumulated",
        counts=np.full(n, 20) if counts is None else counts,
        rows=np.linspace(-0.2, 1.2, 29),
    )


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def test_all_panels_have_one_axis_with_all_averages():
    one = curve(np.linspace(0.0, 10.0, K), np.full(K, 1.0))
    two = curve(np.linspace(-3.0, -2.0, K), np.full(K, 0.5))
    low, high = axis_limits([one, two])
    assert low < -3.5 < 11.0 < high
    assert high - low < 1.2 * 14.5
    display = EffectsDisplay([one, two]).plot()
    assert [ax.get_ylim() for ax in display.axes_] == [(low, high)] * 2


def test_single_wide_bands_do_not_flatten_all_curves():
    width = np.full(200, 0.5)
    width[0] = 1e4
    low, high = axis_limits([curve(np.linspace(0.0, 10.0, 200), width)])
    assert -6.5 < low <= -5.0
    assert 15.0 <= high < 16.5
    # wide bands that are the rule are shown
    low, high = axis_limits([curve(np.zeros(200), np.full(200, 7.0))])
    assert low < -7.0 < 7.0 < high


def test_constant_effects_have_an_axis():
    low, high = axis_limits([curve(np.full(3, 5.0), np.zeros(3))])
    assert low < 5.0 < high
    low, high = axis_limits([curve(np.zeros(3), np.zeros(3))])
    assert low < 0.0 < high


def test_ticks_are_rows_and_the_axis_ends_with_the_curve():
    (ax,) = EffectsDisplay([curve(np.linspace(0.0, 1.0, K), np.full(K, 0.1))]).plot().axes_
    band, ticks = ax.lines[0], ax.lines[1]
    assert np.array_equal(ticks.get_xdata(), np.linspace(-0.2, 1.2, 29))
    assert band.get_xdata()[-1] == (K - 1) / K
    low, high = ax.get_xlim()
    assert -0.1 < low < 0.0
    assert (K - 1) / K < high < 1.1


def test_of_many_categories_the_most_frequent_are_shown():
    n = MOST_CATEGORIES + 5
    counts = np.random.default_rng(0).permutation(np.arange(1, n + 1))
    names = np.array([f"level {k}" for k in range(n)], dtype=object)
    width = np.where(counts > 5, 0.1, 1e6)
    e = curve(np.arange(float(n)), width, names, Categorical(), counts, name="place")
    shown = most_frequent(e, MOST_CATEGORIES)
    assert np.array_equal(shown, np.flatnonzero(counts > 5))
    (ax,) = EffectsDisplay([e]).plot().axes_
    assert [t.get_text() for t in ax.get_xticklabels()] == names[shown].tolist()
    assert ax.get_xlabel() == f"place (the {MOST_CATEGORIES} most frequent of {n})"
    assert ax.get_ylim()[1] < n + 3
