"""Fits that end by the clock or at the first Ctrl-C, with the best they have."""

import os
import signal
import warnings
from threading import Event, Thread
from time import monotonic, sleep

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from tensorlace import InputError, TimeBudgetWarning, TNKMRegressor, TNKMRegressorCV
from tensorlace.sources import ArraySource
from tests.helpers.searching import table

GRACE = 8.0
"""Seconds beyond a limit on a machine that others keep busy: what is summed after the last step, a
constant, the rows that a model keeps. Far less than any of these fits takes."""

LARGE = table(20_000, D=8)


@pytest.fixture(autouse=True)
def interrupts():
    """As in a program of its own: who runs tests in the background has told them to ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def timed(model, X, y):
    """The fitted model, its seconds, and the warnings by kind."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        start = monotonic()
        model.fit(X, y)
        seconds = monotonic() - start
    return model, seconds, {w.category: str(w.message) for w in said}


def predicts(model, X, y, share):
    """Whether predictions are numbers whose errors are below a share of the variance."""
    mean, std = model.predict(X[:500], return_std=True)
    assert np.all(np.isfinite(mean))
    assert np.all(std > 0)
    return np.mean((mean - y[:500]) ** 2) < share * np.var(y)


@pytest.mark.parametrize("limit", [0.5, 2.0])
def test_a_search_ends_by_the_clock(limit):
    model, seconds, said = timed(TNKMRegressor(time_limit=limit, random_state=0), *LARGE)
    assert seconds < limit + GRACE
    assert predicts(model, *LARGE, 1.2)
    for text in said.get(TimeBudgetWarning, "time_limit ended the search"), *said.values():
        assert "Traceback" not in text
    assert set(said) <= {TimeBudgetWarning, ConvergenceWarning}


@pytest.mark.parametrize("limit", [0.02, 1.0])
def test_a_fit_of_a_fixed_rank_ends_by_the_clock(limit):
    model = TNKMRegressor(rank=8, n_basis=10, time_limit=limit, random_state=0)
    model, seconds, said = timed(model, *LARGE)
    assert seconds < limit + GRACE
    assert model.n_iter_ < 300
    assert (
        f"time_limit={limit:g} s ended the fit after {model.n_iter_} of at most 300 steps"
        in (said[TimeBudgetWarning])
    )
    assert f"in {model.n_iter_} steps" in said[ConvergenceWarning]
    assert predicts(model, *LARGE, 1.5)


def test_members_that_had_no_time_are_not_mixed_in():
    X, y = table(5000, D=8)
    model = TNKMRegressor(rank=4, n_members=40, n_jobs=1, time_limit=3.0, random_state=0)
    model, _, said = timed(model, X, y)
    assert 0 < len(model.machines_) < 40
    assert all(machine.fit.n_steps for machine in model.machines_)
    assert f"with {len(model.machines_)} of 40 members" in said[TimeBudgetWarning]
    assert model.weights_.sum() == pytest.approx(1.0)


def test_a_limit_that_is_not_reached_changes_no_bit():
    X, y = table(100)
    plain = TNKMRegressor(rank=2, random_state=0).fit(X, y)
    limited = TNKMRegressor(rank=2, random_state=0, time_limit=600.0).fit(X, y)
    np.testing.assert_array_equal(plain.predict(X), limited.predict(X))


@pytest.mark.parametrize("limit", [0.0, -1.0, "soon"])
def test_a_limit_is_a_number_of_seconds(limit):
    with pytest.raises(ValueError, match="time_limit"):
        TNKMRegressor(time_limit=limit).fit(*table(30))


class Interrupting:
    """Sends interrupts to this process, each when something has been seen."""

    def __init__(self, *when):
        self._when, self._over = when, Event()
        self._thread = Thread(target=self._watch)

    def _watch(self):
        for seen in self._when:
            while not seen() and not self._over.is_set():
                sleep(0.01)
            if not self._over.is_set():
                os.kill(os.getpid(), signal.SIGINT)

    def __enter__(self):
        self._thread.start()

    def __exit__(self, *exception):
        self._over.set()
        self._thread.join()


def said_so(capsys, text, times):
    """A function that looks whether a verbose fit has said a text so many times."""
    heard = []

    def seen():
        heard.append(capsys.readouterr().err)
        return "".join(heard).count(text) >= times

    return seen


def test_an_interrupt_keeps_the_best_of_a_search(capsys):
    X, y = table(4000)
    model = TNKMRegressor(time_budget=300, random_state=0, verbose=1)
    with Interrupting(said_so(capsys, "fit ", 8)):
        model, _, said = timed(model, X, y)
    assert "an interrupt ended the search" in said[TimeBudgetWarning]
    assert len(model.search_results_) >= 3
    assert predicts(model, X, y, 0.5)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_keeps_the_steps_of_a_fixed_rank(capsys):
    model = TNKMRegressor(rank=12, n_basis=12, random_state=0, verbose=2)
    with Interrupting(said_so(capsys, "step ", 15)):
        model, _, said = timed(model, *LARGE)
    assert 15 <= model.n_iter_ < 300
    assert "an interrupt ended the fit" in said[TimeBudgetWarning]
    assert predicts(model, *LARGE, 0.5)


def test_an_interrupt_before_there_is_anything_is_one():
    at_once = Interrupting(lambda: signal.getsignal(signal.SIGINT).__name__ == "first")
    with at_once, pytest.raises(KeyboardInterrupt):
        TNKMRegressor(rank=40, n_basis=20, random_state=0).fit(*table(200_000, D=10))


def test_a_checkpoint_takes_an_interrupt_as_it_comes(tmp_path):
    X, y = LARGE
    model = TNKMRegressor(rank=8, n_basis=10, random_state=0)
    written = tmp_path / "fit.0.npz"
    with Interrupting(written.exists), pytest.raises(KeyboardInterrupt):
        model.fit_rows(ArraySource(X, y), checkpoint=tmp_path / "fit")
    assert int(np.load(written)["counters"][0]) >= 1


def test_a_cross_validation_is_interrupted_as_a_whole(capsys):
    X, y = table(400)
    model = TNKMRegressorCV(TNKMRegressor(rank=2), n_jobs=1, verbose=1, random_state=0)
    with Interrupting(said_so(capsys, "fit ", 1)), pytest.raises(KeyboardInterrupt):
        model.fit(X, y)


def test_refused_as_before():
    with pytest.raises(InputError, match="needs rank='auto'"):
        TNKMRegressor(rank=1, noise="varying", time_limit=1.0).fit(*table(30))
