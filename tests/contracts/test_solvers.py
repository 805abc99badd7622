"""Every registered solver: one contract. Steps go down, remember nothing, and end at the MAP."""

from dataclasses import replace

import numpy as np
import pytest

from tensorlace.fitting.registry import SOLVERS
from tests.helpers.oracles import objective, problem, relative_gradient, response

ALL = pytest.mark.parametrize("solver", SOLVERS.values(), ids=list(SOLVERS))


def steps(solver, p, count, state=None, **options):
    """States and infos of some steps."""
    with p.rows(**options) as rows:
        state = solver.start(rows, p.network) if state is None else state
        out = []
        for _ in range(count):
            state, info = solver.step(rows, state, p.beta, p.gamma)
            out.append((state, info))
    return out


@ALL
@pytest.mark.parametrize("weighted", [False, True])
def test_starting_changes_no_response(solver, weighted):
    p = problem(4, weighted=weighted)
    with p.rows() as rows:
        state = solver.start(rows, p.network)
    np.testing.assert_allclose(
        response(state.network.cores, p.phi), response(p.cores, p.phi), rtol=1e-12, atol=1e-12
    )


@ALL
@pytest.mark.parametrize("seed", range(4))
def test_every_step_goes_down_and_says_how_far(solver, seed):
    p = problem(seed, N=60, weighted=seed % 2 == 1, gamma=0.5)
    before = np.inf
    for state, info in steps(solver, p, 12):
        at = p.at(state.network.cores)
        assert info.objective == pytest.approx(objective(at), rel=1e-9)
        assert info.objective <= before * (1 + 1e-12)
        rss = p.w @ (p.y - response(at.cores, p.phi)) ** 2
        assert info.rss == pytest.approx(rss, rel=1e-9)
        before = info.objective


@ALL
def test_it_ends_where_the_gradient_is_zero(solver):
    """One rank-one term, so that ALS is quick too."""
    p = problem(6, D=2, R=1, N=80, gamma=1.0, noise=0.1)
    found = steps(solver, p, 400)
    state = next((s for s, info in found if info.gradient < 1e-7 or info.stalled), found[-1][0])
    assert relative_gradient(p.at(state.network.cores)) < 1e-5


@ALL
def test_a_state_is_all_that_a_step_needs(solver):
    """What a solver keeps for itself is summed again to the same bits."""
    p = problem(2, N=60)
    (state, _), (there, _) = steps(solver, p, 2)
    bare = replace(state, linear=None, memo=None)
    ((again, _),) = steps(solver, p, 1, state=bare)
    for a, b in zip(there.network.cores, again.network.cores, strict=True):
        np.testing.assert_array_equal(a, b)


@ALL
def test_threads_and_memory_change_no_bit(solver):
    p = problem(2, N=400)
    one = steps(solver, p, 3)[-1][0]
    for options in ({"threads": 2}, {"memory_budget": 0}):
        other = steps(solver, p, 3, **options)[-1][0]
        for a, b in zip(one.network.cores, other.network.cores, strict=True):
            np.testing.assert_array_equal(a, b)


@ALL
def test_precisions_are_updated_after_some_steps(solver):
    assert solver.steps_per_round >= 1
