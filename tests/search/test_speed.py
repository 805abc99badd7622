"""How fast this machine is: the same whenever it is asked."""

import numpy as np
import pytest

from tensorlace.search import speed as module
from tensorlace.search.speed import ProbeSettings, machine_speed, rounded

SETTINGS = ProbeSettings()


@pytest.fixture(autouse=True)
def anew():
    machine_speed.cache_clear()
    yield
    machine_speed.cache_clear()


def test_speeds_are_rounded_to_a_grid():
    speeds = np.exp(np.random.default_rng(0).uniform(-4, 4, 500))
    found = np.array([rounded(s, SETTINGS) for s in speeds])
    np.testing.assert_allclose(2 * np.log2(found), np.round(2 * np.log2(found)), atol=1e-12)
    inside = (speeds > 0.25) & (speeds < 4.0)
    assert np.max(np.abs(np.log2(found / speeds))[inside]) <= 0.25 + 1e-12
    assert {found.min(), found.max()} == {0.25, 4.0}
    assert len(set(found)) == 9


def test_a_tenth_more_or_less_is_the_same_machine():
    """The middle of a step of the grid is the reference machine."""
    assert {rounded(s, SETTINGS) for s in (0.9, 0.95, 1.0, 1.05, 1.1)} == {1.0}


def test_the_speed_is_that_of_the_parts(monkeypatch):
    of = {
        "arithmetic": SETTINGS.arithmetic / 4.0,
        "functions_of_rows": SETTINGS.functions_of_rows / 2.0,
        "short_calls": SETTINGS.short_calls,
    }
    monkeypatch.setattr(module, "_least", lambda work, settings: of[work.__name__])
    assert machine_speed(SETTINGS) == pytest.approx(2.0)


def test_the_least_processor_time_counts(monkeypatch):
    """Not the clock on the wall: what others do on a busy machine is not in it."""
    readings = iter([0.0, 0.4, 1.0, 1.1, 2.0, 2.3] * 3)
    monkeypatch.setattr(module, "thread_time", lambda: next(readings))
    settings = ProbeSettings(0.1, 0.1, 0.1, repetitions=3)
    assert machine_speed(settings) == 1.0


def test_it_is_measured_once(monkeypatch):
    first = machine_speed(SETTINGS)
    assert 0.25 <= first <= 4.0
    monkeypatch.setattr(module, "_least", None)
    assert machine_speed(SETTINGS) == first
