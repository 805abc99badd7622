"""What both strategies share: noise of few rows, the model without trials, results by member."""

import numpy as np
import pytest

from tensorlace.errors import TimeBudgetWarning
from tensorlace.machines.noise import GAUSSIAN
from tensorlace.search.parallel import Workers
from tensorlace.search.settings import CandidateSettings
from tensorlace.search.strategies.few_rows import FewRows
from tensorlace.search.task import Budget
from tensorlace.search.trials import Trial, Trials
from tensorlace.sources import ArraySource, Chunk
from tests.helpers.searching import table, task_for

CANDIDATES = CandidateSettings()


def strategy(n, budget=None, **how):
    """On n rows, all of them held out."""
    X, y = table(n)
    task = task_for(3, **how)
    everywhere = [(np.zeros(n, dtype=bool), np.ones(n, dtype=bool))]
    chunk = Chunk(X, y, None, 0)
    trials = Trials(task.config, chunk, ("a", "b", "c"), False, everywhere, task.settings)
    budget = budget or Budget.of(task, n)
    return FewRows(task, ArraySource(X, y), trials, budget, Workers())


def trial(y, std, candidate=CANDIDATES.parabolas):
    means, stds = np.zeros_like(y), np.full_like(y, std)
    return Trial(candidate, 0, means, 0.0 * stds, stds, 0.0, 0.0, 0.0, ())


def test_of_few_rows_the_variance_is_not_known():
    for n, degrees in ((3, 2.5), (12, 11.0), (39, 38.0)):
        s = strategy(n)
        noise, results, dist, _ = s.noise([trial(s.trials.sample.y, 1.0)], np.ones(1))
        assert (noise.kind, noise.degrees, results) == ("student", degrees, [])
        assert dist.std == pytest.approx(np.ones(n))
    s = strategy(12, noise=("gaussian",))
    assert s.noise([trial(s.trials.sample.y, 1.0)], np.ones(1))[0] is GAUSSIAN


def test_the_noise_of_a_plain_model_is_its_own_unless_another_is_clearly_better():
    s = strategy(200, noise=("gaussian", "student"))
    y = s.trials.sample.y
    for std, factor in ((1.02 * y.std(), 1.0), (3.0 * y.std(), 0.3)):
        plain = trial(y, std, CANDIDATES.constant)
        noise, results, dist, _ = s.noise([plain], np.ones(1))
        assert noise.variance_factor == pytest.approx(factor**2, abs=0.05)
        assert len(results) == 2
        assert dist.std == pytest.approx(np.full(200, std * noise.variance_factor**0.5))


def test_without_trials_there_is_the_constant():
    s = strategy(60)
    found = s.unjudged()
    y = s.trials.sample.y
    np.testing.assert_allclose(found.ensemble.mean(np.zeros((1, 3))), y.mean(), atol=0.05)
    assert (found.results, found.noise_results, found.unseen) == ([], [], None)


def test_results_name_the_weights_of_members():
    s = strategy(40)
    s.runner.tried = [trial(s.trials.sample.y, std) for std in (1.0, 2.0, 3.0)]
    lines = s.results(s.runner.tried[1:], np.array([0.25, 0.75]))
    assert [line["weight"] for line in lines] == [0.75, 0.25, 0.0]


def test_a_search_that_the_clock_has_ended_says_so():
    s = strategy(40, budget=Budget(7.0, 7.0, 0.0))
    with pytest.warns(TimeBudgetWarning, match="4 times its budget of 7 s and a minute"):
        s.warn_if_expired()
    strategy(40).warn_if_expired()
