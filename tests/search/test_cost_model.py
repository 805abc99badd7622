"""Seconds by the size of a fit, and what a budget pays for."""

from dataclasses import replace

import pytest

from tensorlace.search.candidate import Width
from tensorlace.search.cost_model import affordable, affordable_steps, cost, default_budget
from tensorlace.search.settings import (
    BudgetSettings,
    CandidateSettings,
    CostSettings,
    RowSettings,
    SearchSettings,
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


def test_seconds_of_this_machine_by_hand():
    """Reading and the posterior are paid once, and a machine twice as fast takes half."""
    model = replace(SearchSettings().measured, speed=2.0)
    c, width, n = LARGE, Width(3, 10), 5000.0  # a rank of 8 and an additive part
    P, D = 9 * (24 * 3 + 10), 4
    once = model.fit_overhead + (model.read_work * n * D + model.posterior_work * P * P * n) / 3e10
    work = 0.36 * P * P * n + 1.7 * P**3 + 135.0 * n * P + 150.0 * n * D
    step = model.step_overhead + work / 3e10
    assert cost(c, width, n, model, 7) == pytest.approx((once + 7 * step) / 2, rel=1e-12)
    few = 100.0  # more weights than rows
    once = model.fit_overhead + (4300.0 * few * D + 10.0 * few * few * P) / 3e10
    assert cost(c, width, few, model, 0) == pytest.approx(once / 2, rel=1e-12)


def test_units_of_the_default_budget_know_no_machine():
    assert cost(LARGE, Width(8), 1000, COSTS, 0) == 0.0
    assert COSTS.speed == 1.0


@pytest.mark.parametrize("steps", [0, 1, 17])
def test_steps_that_can_be_paid(steps):
    model, size = SearchSettings().measured, (Width(8), 20_000)
    enough = cost(LARGE, *size, model, steps) * (1 + 1e-9)
    assert affordable_steps(LARGE, *size, model, enough) == steps
    assert affordable_steps(LARGE, *size, model, 0.9 * cost(LARGE, *size, model, 0)) == 0


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


def test_only_the_first_may_exceed_the_ceiling():
    width, each = Width(8), cost(SMALL, Width(8), 1000, COSTS)
    candidates = [SMALL, LARGE, SMALL]
    for at_least in (0, 3):
        how = {"at_least": at_least, "ceiling": 1.1 * each}
        assert affordable(candidates, 1000, width, 1e9, COSTS, **how) == [SMALL, SMALL]
    assert affordable(candidates[1:], 1000, width, 0.0, COSTS, at_least=1, ceiling=0.0) == [LARGE]


def test_too_many_weights_are_no_choice_unless_there_is_no_other():
    wide = Width(4000)  # 16,000 weights
    assert affordable([SMALL, SMALL], 10, wide, 1e9, COSTS) == [SMALL]
