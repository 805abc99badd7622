"""Seconds by the size of a fit, and what a budget pays for."""

import pytest

from tensorlace.search.candidate import Width
from tensorlace.search.cost_model import affordable, cost, default_budget
from tensorlace.search.settings import (
    BudgetSettings,
    CandidateSettings,
    CostSettings,
    RowSettings,
)

COSTS, CANDIDATES = CostSettings(), CandidateSettings()
SMALL = CANDIDATES.lines
LARGE = CANDIDATES.styles[0].of_size(8, 24)


def test_more_of_anything_costs_more():
    c, width = LARGE, Width(8)
    base = cost(c, width, 1000, COSTS)
    assert cost(SMALL, width, 1000, COSTS) < base < cost(c, width, 2000, COSTS)
    assert cost(c, Width(8, 30), 1000, COSTS) > base < cost(c, Width(9), 1000, COSTS)
    assert cost(c, width, 1000, COSTS, 2 * COSTS.steps) == pytest.approx(2 * base)


def test_seconds_by_hand():
    seconds = cost(SMALL, Width(5), 100, COSTS, steps=1)  # 20 weights
    work = 0.9 * 20 * 20 * 100 + 3.0 * 20**3 + 300.0 * 100 * 20
    assert seconds == pytest.approx(0.003 + work / 2.2e10, rel=1e-12)


@pytest.mark.parametrize(
    ("n_rows", "seconds"),
    [(0, 38.0), (1500, 48.0), (2500, 38 + 2500 / 150), (5000, 250), (1e7, 370)],
)
def test_default_budget(n_rows, seconds):
    budget = default_budget(n_rows, BudgetSettings(), RowSettings())
    assert budget == pytest.approx(seconds, rel=1e-12)


def test_affordable_candidates_keep_their_order():
    width, each = Width(8), cost(SMALL, Width(8), 1000, COSTS)
    three = [SMALL, LARGE, SMALL]
    assert affordable(three, 1000, width, 2.5 * each, COSTS) == [SMALL, SMALL]
    assert affordable(three, 1000, width, 2.5 * each, COSTS, fits=2.0) == [SMALL]
    assert affordable(three, 1000, width, 0.0, COSTS, at_least=2) == [SMALL, LARGE]
    plenty = 1.5 * cost(LARGE, width, 1000, COSTS) + 2 * each
    assert affordable(three, 1000, width, plenty, COSTS, share=0.5) == [SMALL, SMALL]


def test_too_many_weights_are_no_choice_unless_there_is_no_other():
    wide = Width(4000)  # 16,000 weights
    assert affordable([SMALL, SMALL], 10, wide, 1e9, COSTS) == [SMALL]
