"""Rounds of trials: nothing twice, reproducible seeds, longer fits in place of shorter ones."""

from dataclasses import replace

import numpy as np

from tensorlace.search.candidate import Candidate
from tensorlace.search.parallel import Workers
from tensorlace.search.settings import CandidateSettings
from tensorlace.search.task import Budget
from tensorlace.search.trial_runner import TrialRunner, best_first, best_of_each_style
from tensorlace.search.trials import Trial, Trials
from tensorlace.sources import Chunk
from tests.helpers.searching import config_of, table, task_for

CANDIDATES = CandidateSettings()
PAIR = [CANDIDATES.lines, CANDIDATES.parabolas]


def runner(told=None, **how):
    X, y = table(60)
    parts = [(np.arange(60) % 3 > 0, np.arange(60) % 3 == 0)]
    task = task_for(3, report=told, **how)
    sample = Chunk(X, y, None, 0)
    trials = Trials(config_of(3), sample, ("a", "b", "c"), False, parts, task.settings)
    return TrialRunner(task, trials, Budget.of(task, 60), Workers())


def test_no_candidate_is_tried_twice_on_the_same_rows():
    told = []
    run = runner(told.append)
    first = run.run(PAIR)
    assert len(first) == len(told) == 2
    assert run.run([*PAIR, CANDIDATES.line])[0].candidate == CANDIDATES.line
    fewer = replace(run.trials, parts=[(np.arange(60) % 3 > 1, run.trials.parts[0][1])])
    assert len(run.run(PAIR, fewer)) == 2
    assert len(run.tried) == 5
    assert len({t.seed for t in run.tried}) == 5


def test_seeds_follow_from_the_task():
    a, b, c = (runner(seed=seed) for seed in (0, 0, 1))
    seeds = [[t.seed for t in run.run(PAIR)] for run in (a, b, c)]
    assert seeds[0] == seeds[1] != seeds[2]


def test_what_is_given_is_tried():
    (found,) = runner(given={"warp": "quantile"}).run(PAIR[:1])
    assert found.candidate.warp == "quantile"


def test_longer_fits_take_the_place_of_shorter_ones():
    run = runner()
    tried = run.run(PAIR)
    kept = run.prolong(tried, gain=-np.inf)
    assert [t.prolongations for t in kept if t not in tried] == [1 for t in kept if t not in tried]
    assert run.tried == kept
    for old, new in zip(tried, kept, strict=True):
        assert new.score >= old.score


def test_fits_that_the_clock_has_stopped_change_nothing():
    run = runner()
    tried = run.run(PAIR)
    run.budget = Budget(1.0, 1.0, 0.0)
    assert run.prolong(tried, gain=0.0) == tried == run.tried


def test_results_are_by_weight_and_then_by_score():
    run = runner()
    tried = run.run([*PAIR, CANDIDATES.constant])
    worst = best_first(tried)[-1]
    lines = run.results({id(worst): 1.0})
    assert [line["weight"] for line in lines] == [1.0, 0.0, 0.0]
    assert lines[0]["held_out_log_score"] == worst.score
    fits = worst.fits
    assert lines[0]["gradient"] == max(f.gradient for f in fits)
    assert lines[0]["decrement"] == max(f.convergence.decrement for f in fits)
    changes = [f.convergence.precision_change for f in fits]
    assert lines[0]["precision_change"] == max(changes) > 0.0
    assert lines[1]["held_out_log_score"] >= lines[2]["held_out_log_score"]
    assert {**vars(worst.candidate)}.items() <= lines[0].items()


def test_the_best_of_each_style_whatever_its_size():
    def scored(candidate, score):
        none = np.zeros(0)
        return Trial(candidate, 0, none, none, none, score, 0.0, 0.0, ())

    a, b = CANDIDATES.styles[:2]
    tried = [
        scored(a.of_size(2, 5), 1.0),
        scored(a.of_size(4, 5), 3.0),
        scored(b.of_size(8, 6), 2.0),
    ]
    best = best_of_each_style(tried, 2)
    assert best == [a.of_size(4, 5), b.of_size(8, 6)]
    assert all(isinstance(c, Candidate) for c in best)
    assert best_of_each_style(tried, 1) == best[:1]
