"""What a long fit shows while it runs."""

import re

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from tensorlace import TNKMRegressor
from tensorlace.estimators.messages import FAR, _count, _duration, progress_printer, warn_unfinished
from tensorlace.machines.fitted import Convergence
from tensorlace.solvers.solver import Info

INFO = Info(objective=12.5, gradient=1e-3, rss=3.0)


def clock(*times):
    ticks = iter(times)
    return lambda: next(ticks)


def printer(*times, **changes):
    settings = {"verbose": 1, "n_members": 1, "n_rows": 1000, "max_steps": 100, **changes}
    return progress_printer(0, clock=clock(*times), **settings)


def test_silent_by_default():
    assert printer(0.0, verbose=0) is None


def test_a_line_every_two_seconds(capsys):
    report = printer(0.0, 0.5, 1.9, 2.5, 3.0, 5.0)
    for step in range(1, 6):
        report(step, INFO, 4.0)
    lines = capsys.readouterr().err.splitlines()
    assert [re.search(r"step (\d+)/100", line)[1] for line in lines] == ["3", "5"]
    assert "objective 12.5" in lines[0]
    assert "noise std 0.5" in lines[0]
    assert lines[1].endswith("1 k rows/s  at most 1:35 min left")


def test_steps_from_a_checkpoint_do_not_count(capsys):
    report = printer(0.0, 10.0, 20.0, verbose=2)
    report(91, INFO, 1.0)
    report(92, INFO, 1.0)
    assert capsys.readouterr().err.splitlines()[1].endswith("100 rows/s  at most 1:20 min left")


@pytest.mark.parametrize(
    ("seconds", "text"), [(3.4, "3 s"), (61, "1:01 min"), (3599, "59:59 min"), (7300, "2:01 h")]
)
def test_durations(seconds, text):
    assert _duration(seconds) == text


def test_counts():
    assert [_count(x) for x in (12.0, 3.21e4, 5.6e6, 2e9)] == ["12", "32.1 k", "5.6 M", "2 G"]


def test_a_fit_reports_every_step(capsys):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(60, 2))
    model = TNKMRegressor(
        rank=1, n_basis=3, max_sweeps=4, tol=1, verbose=2, random_state=0, n_members=2
    ).fit(X, X[:, 0])
    lines = capsys.readouterr().err.splitlines()
    steps = [machine.fit.n_steps for machine in model.machines_]
    assert len(lines) == sum(steps)
    assert sum(f"member 2/2 step {steps[1]}/4" in line for line in lines) == 1


class Ended:
    """A fit of which nothing is known but how it ended."""

    def __init__(self, decrement):
        self.convergence = None
        if decrement is not None:
            self.convergence = Convergence(decrement, 0.0, 0, 1, arrived=False)


def test_most_of_a_mixture_stopped_early():
    fits = [Ended(3.2), Ended(0.5 * FAR), Ended(None)]
    with pytest.warns(ConvergenceWarning, match=r"count 60%.*up to 3\.2 standard") as caught:
        warn_unfinished(fits, np.array([0.6, 0.3, 0.1]))
    assert "\n" not in str(caught[0].message)


@pytest.mark.filterwarnings("error")
def test_no_warning_of_a_minority_or_of_what_is_not_known():
    warn_unfinished([Ended(3.2), Ended(0.9 * FAR)], np.array([0.5, 0.5]))
    warn_unfinished([Ended(None)], np.array([1.0]))
