"""Sums over rows: the same bits however the work is cut up."""

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

from tensorlace.laplace.curvature import Diag
from tensorlace.solvers.als import core_system, sweep
from tensorlace.solvers.linearisation import linearise, loss, residual_curvature
from tests.helpers.oracles import Problem, error, problem

WEIGHTED = pytest.mark.parametrize("weighted", [False, True])


def everything(p, **options):
    """All numbers that the library sums over rows."""
    with p.rows(**options) as rows:
        linear = linearise(rows, p.network)
        systems = [core_system(rows, p.network, d) for d in range(len(p.cores))]
        network, info = sweep(rows, p.network, p.beta, p.gamma)
        return [
            *(x for s in systems for x in (s.gram, s.residual, s.rss)),
            *(linear.gram if linear.gram is not None else linear.rows, linear.slope, linear.rss),
            residual_curvature(rows, p.network),
            loss(rows, p.network),
            Diag().evaluate(rows, p.network, None).squares,
            *network.cores,
            info.objective,
            info.gradient,
        ]


def same_bits(a, b):
    return len(a) == len(b) and all(map(np.array_equal, a, b))


@WEIGHTED
@pytest.mark.parametrize("N", [20, 1000])  # fewer and more rows than weights
def test_threads_and_memory_do_not_change_a_bit(weighted, N):
    p = problem(0, D=3, R=3, N=N, weighted=weighted)
    block = {"block_rows": 2 if N == 20 else 32}
    reference = everything(p, **block)
    assert same_bits(everything(p, threads=2, **block), reference)
    assert same_bits(everything(p, memory_budget=0, **block), reference)
    assert same_bits(everything(p, threads=2, memory_budget=0, **block), reference)
    assert not same_bits(everything(p, block_rows=17), reference)  # bits do depend on the order


def test_features_are_computed_once_if_there_is_room():
    p = problem(1, D=2, N=64)
    with p.rows() as rows:
        block = rows.blocks[0]
        assert block.phi(0) is block.phi(0)
        assert block.psi(1) is block.psi(1)
    with p.rows(memory_budget=0) as rows:
        block = rows.blocks[0]
        assert block.phi(0) is not block.phi(0)


@pytest.mark.parametrize("D", [1, 2, 4])
def test_environments_kept_and_recomputed_are_the_same(D):
    p = problem(D, D=D, R=3, N=50)
    kept, recomputed = p.network.surroundings(keep=True), p.network.surroundings(keep=False)
    moving = p.cores
    with p.rows() as rows:
        for d in range(D):
            for block in rows.blocks:
                sides = kept.around(block, d, moving), recomputed.around(block, d, moving)
                for a, b in zip(*sides, strict=True):
                    assert (a is None) == (b is None)
                    if a is not None:
                        np.testing.assert_array_equal(a, b)
            # what a sweep does: the core that was just seen moves
            moving = (*moving[:d], moving[d] + 0.1, *moving[d + 1 :])


@pytest.mark.parametrize("seed", range(5))
def test_a_weight_is_a_number_of_repetitions(seed):
    p = problem(seed, D=3, R=2, N=60)
    times = np.random.default_rng(seed).integers(1, 5, 60)
    weighted = Problem(p.bases, p.u, p.y, times.astype(float), p.cores, p.beta, p.gamma)
    repeated = Problem(
        p.bases, p.u.repeat(times, axis=1), p.y.repeat(times), None, p.cores, p.beta, p.gamma
    )
    for a, b in zip(everything(weighted), everything(repeated), strict=True):
        assert error(a, b) < 1e-13
    with weighted.rows() as a, repeated.rows() as b:
        assert a.total_weight == b.total_weight == b.n_rows


class Term:
    """Writes down in which order it was added."""

    dtype = None

    def __init__(self, text):
        self.text = text

    def __add__(self, other):
        return Term(f"({self.text}+{other.text})")


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("n_blocks", "expected"),
    [
        (1, "0"),
        (4, "(((0+1)+2)+3)"),
        (6, "((((0+1)+2)+3)+(4+5))"),
        (13, "(((((0+1)+2)+3)+(((4+5)+6)+7))+((((8+9)+10)+11)+12))"),
        (18, "((((((0+1)+2)+3)+(((4+5)+6)+7))+((((8+9)+10)+11)+(((12+13)+14)+15)))+(16+17))"),
    ],
)
def test_blocks_are_added_in_a_fixed_tree(threads, n_blocks, expected):
    p = problem(0, D=1, R=1, N=n_blocks)
    with p.rows(block_rows=1, threads=threads) as rows:
        (total,) = rows.reduce(lambda block: (Term(str(block.index)),))
    assert total.text == expected


@pytest.mark.parametrize("block_rows", [1, 7, 60, 61, 1000])
def test_blocks_hold_every_row_once(block_rows):
    p = problem(0, D=2, N=61, weighted=True)
    with p.rows(block_rows=block_rows) as rows:
        assert [b.index for b in rows.blocks] == list(range(-(-61 // block_rows)))
        np.testing.assert_array_equal(np.concatenate([b.y for b in rows.blocks]), p.y)
        np.testing.assert_array_equal(np.concatenate([b.weight for b in rows.blocks]), p.weight)
        phi = np.concatenate([b.phi(1) for b in rows.blocks], axis=1)
        assert error(phi, p.phi[1]) < 1e-15
        assert sum(b.n_rows for b in rows.blocks) == rows.n_rows == 61


def test_an_error_in_a_thread_comes_out():
    def refuse(block):
        raise ZeroDivisionError(block.index)

    p = problem(0, N=64)
    with p.rows(block_rows=4, threads=2) as rows, pytest.raises(ZeroDivisionError):
        rows.reduce(refuse)


def test_blas_is_held_to_one_thread_and_given_back():
    controller = ThreadpoolController()

    def limits():
        return [x["num_threads"] for x in controller.info() if x["user_api"] == "blas"]

    before = limits()
    with problem(0).rows():
        assert set(limits()) == {1}
    assert limits() == before
