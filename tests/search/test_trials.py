"""Trials: fits to parts, judged on the rows that they have not seen."""

from dataclasses import replace
from time import monotonic

import numpy as np

from tensorlace.predictive.distributions import Normal
from tensorlace.rows.stop import Request, Stop
from tensorlace.search import trials as module
from tensorlace.search.candidate_fit import fit_candidate
from tensorlace.search.parallel import Workers
from tensorlace.search.settings import CandidateSettings, SearchSettings
from tensorlace.search.trials import Trials
from tensorlace.sources import Chunk
from tests.helpers.searching import config_of, table

CANDIDATES, SETTINGS = CandidateSettings(), SearchSettings()
PAIR = [CANDIDATES.lines, CANDIDATES.parabolas]


def rows(n=60, weight=None):
    X, y = table(n)
    fold = np.arange(n) % 3
    parts = [(fold != k, fold == k) for k in range(2)]
    sample = Chunk(X, y, weight, 0)
    return Trials(config_of(3), sample, ("a", "b", "c"), False, parts, SETTINGS)


def test_a_trial_is_what_fits_to_the_parts_say_of_the_rest():
    trials = rows()
    found = trials.run(PAIR, [7, 8], Workers(), monotonic() + 60)
    y, _ = trials.targets
    assert len(y) == trials.n_held == 40
    for trial, candidate, seed in zip(found, PAIR, (7, 8), strict=True):
        assert (trial.candidate, trial.seed, trial.prolongations) == (candidate, seed, 0)
        dist = Normal(trial.means, trial.epistemic, trial.aleatoric)
        assert trial.score == np.mean(dist.logpdf(y))
        for (train, held), fit in zip(trials.parts, trial.fits, strict=True):
            again = fit_candidate(
                *(trials.config, candidate, trials.source(train), SETTINGS.fits),
                seed=seed,
                max_steps=SETTINGS.cost.steps,
                rough=False,
            )
            np.testing.assert_array_equal(again.fit.cores[0], fit.cores[0])
            said = again.linearized(trials.sample.X[held])
            np.testing.assert_array_equal(trial.means[held[trials.held]], said.mean)
    unseen = Trials.unseen(found)
    np.testing.assert_array_equal(unseen.means, np.stack([t.means for t in found]))


def test_fits_in_processes_stay_there_and_say_the_same():
    trials = rows()
    here = trials.run(PAIR, [7, 8], Workers(), monotonic() + 60)
    there = trials.run(PAIR, [7, 8], Workers(2, processes=True), monotonic() + 60)
    assert [t.fits for t in there] == [(), ()]
    for a, b in zip(here, there, strict=True):
        np.testing.assert_array_equal(a.means, b.means)


def test_nothing_begins_after_the_deadline():
    assert rows().run(PAIR, [7, 8], Workers(), monotonic()) == []


def test_a_fit_that_the_clock_has_cut_short_is_none(monkeypatch):
    trials, request = rows(), Request()
    config = replace(trials.config, stop=Stop(request=request))
    fits = []

    def fit_and_ask(*how, **options):
        fits.append(1)
        if len(fits) == 3:  # the first part of the second candidate
            request.make()
        return fit_candidate(*how, **options)

    monkeypatch.setattr(module, "fit_candidate", fit_and_ask)
    found = replace(trials, config=config).run(PAIR, [7, 8], Workers(), monotonic() + 60)
    assert [t.candidate for t in found] == PAIR[:1]
    assert len(fits) == 3
    request.close()


def test_a_fit_goes_on_where_another_ended():
    trials = rows()
    short = replace(trials, settings=replace(SETTINGS, cost=replace(SETTINGS.cost, steps=3)))
    first = short.run(PAIR, [7, 8], Workers(), monotonic() + 60)
    longer = short.run(PAIR, [7, 8], Workers(), monotonic() + 60, begins=first)
    for a, b in zip(first, longer, strict=True):
        assert b.log_evidence > a.log_evidence
        assert b.fits[0].history[0] < a.fits[0].history[0]


def test_weights_of_rows_are_repetitions():
    weight = np.where(np.arange(60) % 2, 2.0, 1.0)
    trials = rows(weight=weight)
    (trial,) = trials.run(PAIR[:1], [7], Workers(), monotonic() + 60)
    y, w = trials.targets
    dist = Normal(trial.means, trial.epistemic, trial.aleatoric)
    assert trial.score == np.average(dist.logpdf(y), weights=w)
    assert trials.n_held == w.sum() == 60.0
