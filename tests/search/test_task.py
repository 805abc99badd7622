"""Budget, clock and progress of a search."""

from dataclasses import replace
from time import monotonic

import pytest

from tensorlace.rows.stop import Stop
from tensorlace.search.candidate import Width
from tensorlace.search.cost_model import cost
from tensorlace.search.settings import CandidateSettings, CostSettings, SearchSettings
from tensorlace.search.task import Budget, Progress
from tests.helpers.searching import task_for

LINE = CandidateSettings().line


def test_the_default_budget_pays_for_the_same_work_whatever_the_threads():
    one, many = (Budget.of(replace(task_for(3), threads=k, budget=None), 500) for k in (1, 8))
    assert one.work == many.work == 2 * one.seconds
    assert one.deadline > many.deadline
    given = [Budget.of(replace(task_for(3), threads=k, budget=5.0), 500).work for k in (1, 8)]
    assert given == [5.0, 40.0]


def test_budget_of_a_task():
    before = monotonic()
    budget = Budget.of(task_for(2, budget=3.0, threads=4), 100)
    assert (budget.seconds, budget.work) == (3.0, 12.0)
    assert before + 72.0 <= budget.deadline <= monotonic() + 72.0
    assert not budget.expired
    assert Budget(1.0, 1.0, before).expired
    assert Budget.of(task_for(2, budget=None), 1500).seconds == pytest.approx(48.0)


def test_a_limit_leaves_time_for_all_that_comes_after_trials():
    now = monotonic()
    task = task_for(2, budget=None, threads=2, stop=Stop(now + 10.0))
    budget = Budget.of(task, 100)
    assert budget.seconds == pytest.approx(6.5, abs=0.1)
    assert budget.work == 2 * budget.seconds
    assert budget.given
    ends = [stop.deadline - now for stop in (budget.trials, budget.noise, budget.finals)]
    assert ends == pytest.approx([6.5, 7.5, 9.0], abs=0.1)
    assert not budget.trials.due
    over = Budget.of(replace(task, stop=Stop(now - 1.0)), 100)
    assert over.work == 0.0
    assert over.trials.due
    assert over.finals.due


def test_a_limit_of_more_than_the_budget_changes_no_plan():
    task = task_for(2, budget=None)
    later = Budget.of(replace(task, stop=Stop(monotonic() + 1e6)), 100)
    assert (later.seconds, later.given) == (Budget.of(task, 100).seconds, False)
    assert Budget.of(task_for(2, budget=3.0), 100).given


def test_what_is_neither_trial_nor_final_fit_is_paid_first():
    settings = SearchSettings().budget
    budget = Budget(5.0, 10.0, 0.0, given=True)
    left = budget.less(1.0, 2.0, settings)
    assert (left.work, left.beside, left.varying_noise) == (7.0, 3.0, True)
    without = budget.less(1.0, 2.6, settings)  # more than a quarter for a noise that varies
    assert (without.work, without.beside, without.varying_noise) == (9.0, 1.0, False)
    assert budget.less(11.0, 0.0, settings).work == 0.0


def test_what_is_given_is_kept_and_each_candidate_tried_once():
    task = task_for(2, given={"warp": "quantile", "n_basis": 2, "prior_groups": "column"})
    c = CandidateSettings()
    assert len(task.distinct([c.lines, c.parabolas, c.lines])) == 2
    assert {x.warp for x in task.distinct(c.polynomials)} == {"quantile"}


def test_progress_tells_the_share_of_the_work():
    told = []
    each = cost(LINE, Width(3), 50, CostSettings())
    progress = Progress(told.append, 4 * each, CostSettings())
    for _ in range(5):
        progress.fitted(LINE, Width(3), 50)
    assert [text.split(" of the budget")[0] for text in told] == [
        *("fit 1, 25%", "fit 2, 50%", "fit 3, 75%", "fit 4, 100%", "fit 5, 100%")
    ]
    assert str(LINE) in told[0]
    silent = Progress(None, 1.0, CostSettings())
    silent.fitted(LINE, Width(3), 50)
    assert silent.spent == each
