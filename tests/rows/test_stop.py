"""Fits that end when they have to: by the clock, by request, at the first Ctrl-C."""

import os
import pickle
import signal
from dataclasses import replace
from threading import Thread
from time import monotonic

import numpy as np
import pytest
from joblib import Parallel, delayed

from tensorlace.fitting.config import Config
from tensorlace.fitting.fit_machines import fit_machines
from tensorlace.rows.stop import (
    NEVER,
    PassEndedError,
    Request,
    Stop,
    guarded,
    part_of_more,
    request_end,
    stoppable,
)
from tensorlace.solvers.als import ALS
from tensorlace.solvers.gauss_newton import GaussNewton
from tensorlace.solvers.matrix_free import MatrixFree
from tensorlace.sources import ArraySource
from tests.helpers.searching import config_of, table


@pytest.fixture(autouse=True)
def interrupts():
    """As in a program of its own: who runs tests in the background has told them to ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_due_by_the_clock_or_by_request():
    now, request = monotonic(), Request()
    assert not NEVER.due
    assert Stop(now - 1.0).due
    assert not Stop(now + 60.0).due
    assert Stop(now + 60.0).by(now - 1.0).due
    assert Stop(now - 1.0).by(now + 60.0).due
    stop = Stop(request=request)
    assert not stop.due
    request.make()
    assert stop.due
    assert stop.asked
    assert not Stop(now - 1.0).asked
    request.close()


def test_other_processes_see_a_request_and_nothing_is_left_of_it():
    request = Request()
    stop = Stop(request=request)

    def due(stop):
        return os.getpid(), stop.due

    seen = []
    for _ in range(2):
        seen.append(Parallel(2)(delayed(due)(stop) for _ in range(1))[0])
        request.make()
    assert [d for _, d in seen] == [False, True]
    assert os.getpid() not in [pid for pid, _ in seen]
    (file,) = [v for v in vars(request).values() if hasattr(v, "exists")]
    assert file.exists()
    request.close()
    assert not file.exists()


class Rows:
    """What a pass needs of rows: a few blocks."""

    bases, n_rows, total_weight, memory_budget, keeps_blocks = (), 3, 3.0, 0, True
    engine = likelihood = None

    def reduce(self, kernel, *, light=False):
        return tuple(map(sum, zip(*map(kernel, (1, 2, 3)), strict=True)))


def pair(block):
    return block, block**2


def test_a_pass_ends_between_blocks():
    rows, request = Rows(), Request()
    assert guarded(rows, NEVER) is rows
    watched = guarded(rows, Stop(request=request))
    assert watched.reduce(pair) == rows.reduce(pair) == (6, 14)
    seen = []

    def kernel(block):
        seen.append(block)
        request.make()
        return pair(block)

    with pytest.raises(PassEndedError):
        watched.reduce(kernel)
    assert seen == [1]
    request.close()


def test_on_another_machine_a_kernel_is_only_itself():
    class Sent(Rows):
        def reduce(self, kernel, *, light=False):
            return pickle.loads(pickle.dumps(kernel))(3)

    assert guarded(Sent(), Stop(monotonic() - 1.0)).reduce(pair) == (3, 9)


SOLVERS = [ALS(), GaussNewton(), MatrixFree()]


def fit(config, stop, progress=None, n=200):
    X, y = table(n)
    config = replace(config, stop=stop)
    (machine,) = fit_machines(config, ArraySource(X, y), seeds=[0], progress=[progress])
    return machine.fit


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda s: type(s).__name__)
def test_a_fit_ends_after_the_step_in_which_it_was_asked(solver):
    config = replace(config_of(3, rank=3), solver=solver)
    whole = fit(config, NEVER)
    for steps in (1, 4, 12):
        request = Request()

        def ask(step, info, beta, request=request, steps=steps):
            if step == steps:
                request.make()

        cut = fit(config, Stop(request=request), ask)
        assert cut.n_steps == steps < whole.n_steps
        assert cut.history == whole.history[:steps]
        assert np.isfinite(cut.log_evidence)
        assert np.all(cut.posterior.variances() > 0)
        request.close()


def test_a_step_under_way_is_given_up(monkeypatch):
    """The weights are those after the last whole step, to the bit."""
    config = replace(config_of(3, rank=3), solver=GaussNewton())
    request, calls, after = Request(), [], []
    step = GaussNewton.step

    def watched(self, rows, state, beta, gamma):
        if len(calls) == 5:
            request.make()
        calls.append(state.network)
        found = step(self, rows, state, beta, gamma)
        after.append(found[0].network)
        return found

    monkeypatch.setattr(GaussNewton, "step", watched)
    cut = fit(config, Stop(request=request))
    assert (len(calls), cut.n_steps) == (6, 5)
    for ours, last in zip(cut.network.cores, after[-1].cores, strict=True):
        np.testing.assert_array_equal(ours, last)
    request.close()


def test_a_fit_that_has_not_begun_is_as_unsure_as_its_residuals():
    """β is that of an update and not where it begins: nothing was found yet, so all is noise."""
    config = config_of(3, rank=2)
    found = fit(config, Stop(monotonic() - 1.0))
    assert found.n_steps == 0
    assert found.beta == pytest.approx((200 - found.determined) / found.rss, rel=0.5)
    assert found.beta < 2.0


def test_the_first_interrupt_asks_and_the_second_raises():
    with stoppable() as request:
        os.kill(os.getpid(), signal.SIGINT)
        assert request.made
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)


def test_interrupts_that_are_not_ours_are_left_alone():
    came = []
    signal.signal(signal.SIGINT, lambda *_: came.append(1))
    with stoppable() as request:
        os.kill(os.getpid(), signal.SIGINT)
        assert came == [1]
        assert not request.made
        assert request_end()  # the handler may do so
        assert request.made
        assert not request_end()
    assert not request_end()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for inside in (stoppable(on_interrupt=False), part_of_more()):
        with inside, stoppable(on_interrupt=False) as request:
            assert not request_end()
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGINT)
            assert not request.made
    with part_of_more(), stoppable(), pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)


def test_only_the_main_thread_takes_the_signal():
    seen = []

    def elsewhere():
        with stoppable() as request:
            seen.append(signal.getsignal(signal.SIGINT))
            seen.append(request_end() and request.made)

    thread = Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler, True]


def test_a_checkpoint_does_not_know_of_it():
    assert replace(Config(2), stop=Stop(1.0)).what_is_fitted() == Config(2).what_is_fitted()
