"""Which candidates are tried, in order."""

from dataclasses import replace

from tensorlace.search.candidate import Style, Width
from tensorlace.search.cost_model import cost
from tensorlace.search.plan import enlarged, plan
from tensorlace.search.settings import CandidateSettings, CostSettings

CANDIDATES, COSTS = CandidateSettings(), CostSettings()


def planned(n_rows, width, work, **how):
    return plan(n_rows, width, work, CANDIDATES, COSTS, **how)


def test_plans_are_reproducible_and_fit_the_budget():
    for n in (20, 300, 5000):
        for work in (1.0, 10.0, 100.0):
            chosen = planned(n, Width(8), work)
            assert chosen == planned(n, Width(8), work)
            assert len(set(chosen)) == len(chosen) >= 3
            assert sum(cost(c, Width(8), n, COSTS) for c in chosen[3:]) <= work


def test_more_budget_means_more_candidates():
    sizes = [len(planned(1000, Width(8), work)) for work in (1, 10, 100)]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]


def test_many_rows_are_offered_polynomials():
    smooth = set(planned(2000, Width(8), 100.0, polynomials=True))
    new = smooth - set(planned(2000, Width(8), 100.0))
    assert sum(c.basis == "legendre" and c.rank > 2 for c in new) == 4


def test_wide_tables_are_offered_what_memory_allows():
    wide = Width(1500)
    chosen = planned(40, wide, 1e6)
    assert len(chosen) >= 2
    assert all(wide.weights(c) <= COSTS.most_weights for c in chosen)
    assert len(planned(40, Width(20_000), 1.0)) == 1  # the first, with too many weights or not


def test_enlarged_models_are_larger_and_keep_their_style():
    best = planned(1000, Width(8), 10.0)[2:5]
    for larger in enlarged(best, CANDIDATES.leaps, CANDIDATES):
        assert larger not in best
        like = [c for c in best if replace(larger, rank=c.rank, n_basis=c.n_basis) == c]
        assert any(larger.rank * larger.n_basis > c.rank * c.n_basis for c in like)


def test_the_simplest_models_come_first():
    first = planned(10_000, Width(8), 1e9, polynomials=True)
    assert first[:2] == (CANDIDATES.constant, CANDIDATES.lines)
    assert first[5:10] == (*CANDIDATES.polynomials, CANDIDATES.parabolas)
    assert first[2] == CANDIDATES.styles[0].of_size(*CANDIDATES.sizes[0])


def test_one_more_line_is_one_more_style_to_try():
    new = Style("minmax", None, additive=False, rotate=False, basis="fourier")
    settings = replace(CANDIDATES, styles=(new, *CANDIDATES.styles))
    chosen = plan(1000, Width(8), 100.0, settings, COSTS)
    assert chosen[2] == new.of_size(*CANDIDATES.sizes[0])
