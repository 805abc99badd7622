"""Budget, clock and progress of a search."""

from time import monotonic

import pytest

from tensorlace.search.candidate import Width
from tensorlace.search.cost_model import cost
from tensorlace.search.settings import CandidateSettings, CostSettings
from tensorlace.search.task import Budget, Progress
from tests.helpers.searching import task_for

LINE = CandidateSettings().line


def test_budget_of_a_task():
    before = monotonic()
    budget = Budget.of(task_for(2, budget=3.0, threads=4), 100)
    assert (budget.seconds, budget.work) == (3.0, 12.0)
    assert before + 72.0 <= budget.deadline <= monotonic() + 72.0
    assert not budget.expired
    assert Budget(1.0, 1.0, before).expired
    assert Budget.of(task_for(2, budget=None), 1500).seconds == pytest.approx(48.0)


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
    Progress(None, 1.0, CostSettings()).fitted(LINE, Width(3), 50)
