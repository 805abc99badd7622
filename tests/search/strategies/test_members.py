"""Members: fitted to all rows, in order, pruned, and reported."""

import numpy as np

from tensorlace.machines.pruning import prune
from tensorlace.search.candidate_fit import fit_candidate
from tensorlace.search.parallel import Workers
from tensorlace.search.settings import CandidateSettings
from tensorlace.search.strategies.members import Member, fit_members
from tensorlace.sources import ArraySource
from tests.helpers.searching import table, task_for

CANDIDATES = CandidateSettings()


def test_members_are_pruned_fits_to_all_rows_in_order():
    X, y = table(90)
    source, told = ArraySource(X, y), []
    task = task_for(3, report=told.append)
    members = [Member(CANDIDATES.parabolas, 1, 45), Member(CANDIDATES.lines, 2, 45)]
    machines = fit_members(members, source, task, Workers(2))
    for machine, m in zip(machines, members, strict=True):
        fits = task.settings.fits
        fitted = fit_candidate(
            *(task.config, m.candidate, source, fits), seed=m.seed, max_steps=45, rough=False
        )
        np.testing.assert_array_equal(machine.mean(X), prune(fitted).mean(X))
    assert [text.split(":")[0] for text in told] == ["member 1/2", "member 2/2"]
    assert str(CANDIDATES.lines) in told[1]


def test_a_member_goes_on_from_where_a_trial_ended():
    X, y = table(90)
    source, task = ArraySource(X, y), task_for(3)
    (first,) = fit_members([Member(CANDIDATES.parabolas, 1, 45)], source, task, Workers())
    further = Member(CANDIDATES.parabolas, 1, 2, begin=first.fit, bends=True)
    (again,) = fit_members([further], source, task, Workers())
    assert again.fit.history[0] < first.fit.history[0]
    assert again.fit.n_steps <= 2
