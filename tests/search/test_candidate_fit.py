"""One candidate becomes a configuration, and is fitted."""

from dataclasses import replace

import numpy as np
import pytest

from tensorlace.columns.bases import Cosine, Legendre
from tensorlace.kinds import Categorical, Numeric
from tensorlace.search.candidate_fit import fit_candidate, width_of
from tensorlace.search.settings import CandidateSettings, FitSettings
from tensorlace.sources import ArraySource, Chunk
from tests.helpers.searching import config_of, table

CANDIDATES, SETTINGS = CandidateSettings(), FitSettings()


def fitted(candidate, n=80, **how):
    X, y = table(n)
    how = {"seed": 7, "max_steps": 45, "rough": False, **how}
    settings = how.pop("settings", SETTINGS)
    return fit_candidate(config_of(3), candidate, ArraySource(X, y), settings, **how)


@pytest.mark.parametrize(
    "candidate", [CANDIDATES.styles[3].of_size(2, 5), CANDIDATES.polynomials[1]]
)
def test_the_machine_is_what_the_candidate_says(candidate):
    machine = fitted(candidate)
    assert machine.columns.sizes == (candidate.n_basis,) * 3
    assert (machine.columns.rotation is not None) == candidate.rotate
    basis = {"cosine": Cosine, "legendre": Legendre}[candidate.basis]
    for column in machine.columns.columns:
        assert type(column.basis) is basis
        if basis is Cosine:
            assert column.basis.lengthscale == candidate.lengthscale


def test_seeds_and_steps_are_those_asked_for():
    candidate = CANDIDATES.styles[0].of_size(2, 5)
    a, b, c = fitted(candidate), fitted(candidate), fitted(candidate, seed=1)
    np.testing.assert_array_equal(a.mean(table(5)[0]), b.mean(table(5)[0]))
    assert not np.array_equal(a.mean(table(5)[0]), c.mean(table(5)[0]))
    assert fitted(candidate, max_steps=3).fit.n_steps == 3


def test_a_looser_tolerance_ends_a_fit_sooner():
    candidate = CANDIDATES.styles[0].of_size(2, 5)
    loose = fitted(candidate, settings=replace(SETTINGS, tol=1.0), max_steps=200)
    assert loose.fit.n_steps < fitted(candidate, max_steps=200).fit.n_steps


def test_levels_of_categories_are_functions_of_their_own():
    X = np.column_stack([np.arange(6) % 3, np.arange(6.0), np.arange(6) % 2])
    kinds = (Categorical(), Numeric(), Categorical())
    width = width_of(replace(config_of(3), kinds=kinds), Chunk(X, np.zeros(6), None, 0))
    assert (width.free, width.fixed) == (1, 5)
    assert width_of(config_of(3), Chunk(X, np.zeros(6), None, 0)).free == 3
