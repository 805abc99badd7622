"""Candidates: what is plain, their style, and their number of weights."""

from tensorlace.search.candidate import Width
from tensorlace.search.settings import CandidateSettings

CANDIDATES = CandidateSettings()


def test_what_is_plain():
    c = CANDIDATES
    assert [x.plain for x in (c.constant, c.line, c.lines, c.parabolas)] == [
        True,
        True,
        False,
        False,
    ]
    assert [x.straight for x in (c.constant, c.line, c.lines)] == [False, True, False]


def test_a_style_is_all_but_the_size():
    for style in CANDIDATES.styles:
        candidate = style.of_size(3, 7)
        assert (candidate.rank, candidate.n_basis, candidate.style) == (3, 7, style)
    for candidate in CANDIDATES.polynomials:
        assert candidate.style.of_size(candidate.rank, candidate.n_basis) == candidate


def test_levels_of_categories_are_weights():
    for c in (CANDIDATES.line, *CANDIDATES.polynomials):
        assert Width(2, 30).weights(c) == (c.rank + c.additive) * (2 * c.n_basis + 30)
