"""Mixture weights: trust in picks, plain models, what can be paid for."""

from dataclasses import replace

import numpy as np
import pytest

from tensorlace.machines.ensemble import blend
from tensorlace.search.candidate import Candidate
from tensorlace.search.cost_model import cost
from tensorlace.search.settings import CandidateSettings, SearchSettings
from tensorlace.search.stacking import greedy, score_weights
from tensorlace.search.trials import Trial, Trials
from tensorlace.search.weights import (
    affordable_members,
    choice_folds,
    chosen_trust,
    enough_rows_for_row_weights,
    mixture_weights,
    n_picks,
    plain_model,
)
from tensorlace.sources import Chunk
from tests.helpers.searching import config_of

SETTINGS, CANDIDATES = SearchSettings(), CandidateSettings()


def held_out(n, seed=0, weight=None):
    """Rows of which all are held out."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((n, 2)), rng.standard_normal(n)
    everywhere = [(np.zeros(n, dtype=bool), np.ones(n, dtype=bool))]
    return Trials(config_of(2), Chunk(X, y, weight, 0), ("a", "b"), False, everywhere, SETTINGS)


def trial(means, std=1.0, candidate=CANDIDATES.parabolas):
    ones = np.ones(len(means))
    return Trial(candidate, 0, means, 0.0 * ones, std * ones, 0.0, 0.0, 0.0, ())


def test_picks_are_trusted_as_far_as_they_help_elsewhere():
    """Forty models: all alike but for chance, or one right and all others wrong together."""
    rows, rng = held_out(400), np.random.default_rng(1)
    X, (y, _) = rows.sample.X, rows.targets
    alike = [trial(m) for m in y + 0.7 * rng.standard_normal((40, 400))]
    folds = choice_folds(rows, SETTINGS)
    assert chosen_trust(rows, alike, 20, folds, SETTINGS)[0] == 0.2
    means = y + np.sin(2 * X[:, 0]) + 0.3 * rng.standard_normal((40, 400))
    means[7] = y + 0.3 * rng.standard_normal(400)
    assert chosen_trust(rows, [trial(m) for m in means], 20, folds, SETTINGS)[0] == 0.8


def test_nothing_is_chosen_by_too_few_rows_or_by_one_over_and_over():
    assert choice_folds(held_out(39), SETTINGS) is None
    assert len(np.unique(choice_folds(held_out(40), SETTINGS))) == 5
    rows = held_out(50)
    same = replace(rows, sample=Chunk(np.ones((50, 2)), np.ones(50), None, 0))
    assert choice_folds(same, SETTINGS) is None


@pytest.mark.parametrize(("helps", "plain"), [(0.0, 1), (0.9, None)])
def test_a_plain_model_unless_the_mixture_is_clearly_better(helps, plain):
    rows = held_out(200)
    y, _ = rows.targets
    means = helps * y + 0.05 * np.random.default_rng(3).standard_normal(200)
    tried = [trial(means), trial(np.zeros(200), candidate=CANDIDATES.constant)]
    folds = choice_folds(rows, SETTINGS)
    _, scores = chosen_trust(rows, tried[:1], 20, folds, SETTINGS)
    assert plain_model(rows, tried, scores, folds, SETTINGS) == plain


def test_weights_are_picks_and_scores_in_the_shares_that_are_trusted():
    rows, rng = held_out(60), np.random.default_rng(2)
    y, _ = rows.targets
    tried = [trial(y + s * rng.standard_normal(60), s) for s in (0.5, 0.6, 0.7, 3.0)]
    w = mixture_weights(rows, tried, np.arange(4), 0.5, 30, SETTINGS)
    unseen = Trials.unseen(tried)
    picked, trust = greedy(unseen, y, None, 20) / 20, 0.5 * 60 / 110
    expected = trust * picked + (1 - trust) * score_weights(unseen, y, None, 2.0)
    share = blend(expected, unseen.log_std).mean(axis=1)
    expected[share < SETTINGS.weights.least_share] = 0.0
    np.testing.assert_allclose(w, expected / expected.sum(), rtol=1e-12)
    assert w[3] == 0.0
    two = mixture_weights(rows, tried, np.arange(4), 0.5, 2, SETTINGS)
    assert np.count_nonzero(two) == 2
    only = mixture_weights(rows, tried, np.array([1, 2]), 0.5, 30, SETTINGS)
    assert np.flatnonzero(only).tolist() == [1, 2]


def test_of_few_rows_the_constant_keeps_its_share():
    for n in (19, 20):
        rows = held_out(n)
        y, _ = rows.targets
        tried = [trial(y, 0.01), trial(np.zeros(n), candidate=CANDIDATES.constant)]
        w = mixture_weights(rows, tried, np.arange(2), 0.5, 30, SETTINGS)
        assert enough_rows_for_row_weights(rows, SETTINGS) == (n == 20)
        assert (w[1] >= 1.0 / (n + 1.0)) == (n == 19)


def test_weights_of_rows_count_as_repetitions():
    assert enough_rows_for_row_weights(held_out(5, weight=np.full(5, 4.0)), SETTINGS)


def test_no_more_picks_than_members():
    assert [n_picks(m, k, SETTINGS) for m, k in ((4, 10), (4, 4), (30, 40))] == [4, 20, 20]


def test_members_are_those_that_can_be_paid_for_best_first():
    rows = held_out(100)
    y, _ = rows.targets
    large = Candidate(20, 10, "mixed", "column_order", None, False, False)
    tried = [trial(y + 2, candidate=CANDIDATES.lines), trial(y, candidate=large), trial(y + 1)]
    prices = [cost(t.candidate, rows.width, 10**6, SETTINGS.cost, 25) for t in tried]
    work = prices[1] + prices[2] * 1.01

    def kept(work):
        how = (rows, tried, [25, 25, 25], work, 10**6, SETTINGS)
        positions, steps = affordable_members(*how)
        assert steps == [25, 25, 25]
        return positions.tolist()

    assert kept(work) == [1, 2]
    assert kept(0.0) == [1]  # the best in any case
    assert kept(1e9) == [1, 2, 0]


def test_the_best_has_fewer_steps_where_a_given_budget_pays_for_no_more():
    rows = held_out(100)
    y, _ = rows.targets
    large = Candidate(20, 10, "mixed", "column_order", None, False, False)
    tried = [trial(y + 2, candidate=CANDIDATES.lines), trial(y, candidate=large)]
    small, best = (
        [cost(t.candidate, rows.width, 10**6, SETTINGS.cost, steps) for steps in (4, 10, 25)]
        for t in tried
    )

    def kept(work):
        how = (rows, tried, [25, 25], work, 10**6, SETTINGS)
        positions, steps = affordable_members(*how, fewest=4)
        return positions.tolist(), [steps[k] for k in positions]

    assert kept(best[2] + small[2]) == ([1, 0], [25, 25])
    assert kept(best[1] * 1.001) == ([1], [10])
    assert kept(best[0] * 0.99) == ([0], [25])  # not even four steps: the next best
    assert kept(small[1] * 1.001) == ([0], [10])
    assert kept(0.0) == ([0], [4])  # the cheapest in any case
